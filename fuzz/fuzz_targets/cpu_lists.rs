//! Any text as the kernel's lists and masks of cpus; a list that was understood is understood again when it is written.
#![no_main]

use sys::cpus::{CPU_NUMBER_MAX, list, parse_list, parse_mask};

libfuzzer_sys::fuzz_target!(|text: &str| {
    for cpus in [parse_list(text), parse_mask(text)].into_iter().flatten() {
        assert!(cpus.is_sorted_by(|a, b| a < b));
        assert!(cpus.iter().all(|cpu| *cpu <= CPU_NUMBER_MAX) && cpus.capacity() <= 1 << 18);
        assert_eq!(parse_list(&list(&cpus)), Some(cpus));
    }
});
