//! All integration tests of this crate, in one program: the code they share compiles once.

mod figure4;
mod hints;
mod homes;
mod kernel_balancing;
mod order;
mod pairing;
mod placement;
mod plans;
mod regions;
mod regions_policy;
mod scene;
mod slots;
mod slots_model;
mod touched;
mod weigh;
mod worth;
