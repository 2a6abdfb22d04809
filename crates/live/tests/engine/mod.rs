//! The engine on real memory, with every means that works for this user; the others must be refused
//! clearly. Run as root, the whole suite is run once more as an ordinary user.

mod far_below;
pub mod memory;

mod changes;
mod held;
mod locks;
mod means;
pub mod ordinary;
mod places;
mod threads;
mod writers;
