//! All integration tests of this crate, in one program: shared code compiles once.

mod alone;
mod anew;
mod ends;
mod engine;
mod following;
mod forks;
mod regions_undone;
mod slots;
mod slots_served;
mod slow;
