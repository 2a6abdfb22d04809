//! All integration tests of this crate, in one program: the code they share compiles once.

mod calibrate;
mod detail;
mod misses;
mod oracle;
mod order;
mod pairing;
mod reference;
mod regions;
mod regions_together;
mod samples;
mod slots;
mod stacks;
