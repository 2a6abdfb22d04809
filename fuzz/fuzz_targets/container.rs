//! Any bytes at all as a trace, and as changes to a trace that was whole.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fuzz::read(data);
    fuzz::read(&fuzz::changed(data));
});
