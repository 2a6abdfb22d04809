//! Any text as a plan of slots; what was understood is understood again when it is written.
#![no_main]

use policy::slots::Plan;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(plan) = Plan::read(text, "fuzz.toml") {
        assert_eq!(Plan::read(&plan.write(), "again.toml").as_ref(), Ok(&plan), "{}", plan.write());
    }
});
