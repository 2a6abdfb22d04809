//! The simulator against oracles: a second implementation, laws of conservation, textbooks, and
//! other people's simulators on real programs.
#![forbid(unsafe_code)]

mod both;
mod cachegrind;
mod cdpc;
mod changes;
mod conservation;
mod detail;
mod dynamic;
mod engine;
mod exactness;
mod faults;
mod hints;
mod homes;
mod kernel_balancing;
mod machines;
mod moving_threads;
mod overlap;
mod pairing;
mod peers;
mod prefetch;
mod presets;
mod programs;
mod pycachesim;
mod regions;
mod scheduled;
mod settled;
mod slots;
mod software_prefetch;
mod summary_homes;
mod textbook;
mod together;
mod waits;
mod warmed;
mod windows;
