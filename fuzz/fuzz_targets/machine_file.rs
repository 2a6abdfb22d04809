//! Any text as a machine file.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = machine::from_toml(text, "fuzz.toml");
});
