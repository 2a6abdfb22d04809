//! All integration tests of this crate, in one program: shared code compiles once.

mod advise;
mod cdpc;
mod changes;
mod compare;
mod daemon;
mod homes;
mod house;
mod lists;
mod order;
mod probe;
mod profiles;
mod regions;
mod reproduce;
mod reproduce_grid;
mod reproduce_slots;
mod saved;
mod sharing;
mod simulate;
mod slots;
mod slow;
mod summary_homes;
mod sweeps;
mod traces;
mod truth;
mod usage;
mod ways;
