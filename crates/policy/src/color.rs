//! Policies that choose a page's color: which sets of a physically indexed cache it competes for.

pub mod bin_hopping;
pub mod directed;
pub mod page_coloring;
pub mod random;
pub mod slots;
