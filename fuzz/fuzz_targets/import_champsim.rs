//! Any bytes as a trace in the format `champsim`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::import(trace::import::Format::Champsim, data));
