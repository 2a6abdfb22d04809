//! All integration tests of this crate, in one program: what they share compiles once.

mod beginnings;
mod branches;
mod broken;
mod dependences;
mod differences;
mod endings;
mod interpreted;
mod killed;
mod meaning;
mod paces;
mod places;
mod prefetches;
mod references;
mod slow;
mod workshop;
