//! The requests to Linux; tests put a made-up process in its place.

use std::io;

use sys::mappings::{self, Mapping};
use sys::mbind;
use sys::memory::Span;
use sys::move_pages::{self, Pages};
use sys::numa_maps::Wish;

pub trait Linux {
    /// The mappings, ascending.
    fn mappings(&mut self) -> io::Result<Vec<Mapping>>;
    /// How many mappings there may be.
    fn most_mappings(&mut self) -> usize;
    /// As [`mbind::wish`].
    fn wish(&mut self, span: Span, wish: &Wish) -> io::Result<()>;
    /// As [`move_pages::nodes_of`].
    fn nodes_of(&mut self, addresses: &[usize]) -> io::Result<Pages>;
    /// As [`move_pages::move_to`].
    fn move_to(&mut self, addresses: &[usize], nodes: &[u32]) -> io::Result<Pages>;
}

/// This process.
pub struct Here;

impl Linux for Here {
    fn mappings(&mut self) -> io::Result<Vec<Mapping>> {
        mappings::all(None)
    }

    fn most_mappings(&mut self) -> usize {
        mappings::limit()
    }

    fn wish(&mut self, span: Span, wish: &Wish) -> io::Result<()> {
        mbind::wish(span, wish)
    }

    fn nodes_of(&mut self, addresses: &[usize]) -> io::Result<Pages> {
        move_pages::nodes_of(None, addresses)
    }

    fn move_to(&mut self, addresses: &[usize], nodes: &[u32]) -> io::Result<Pages> {
        move_pages::move_to(None, addresses, nodes)
    }
}
