//! Any bytes as a trace in the format `lackey`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::import(trace::import::Format::Lackey, data));
