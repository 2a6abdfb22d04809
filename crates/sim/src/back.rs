//! The part of a run that placement decides: the caches beyond the first, and memory.
//!
//! An [`Engine`] whose first caches stay empty: it is given what they passed on.

use std::slice::Iter;

use policy::Page;

use crate::engine::{Access, Engine, Who};
use crate::error::SimError;
use crate::front::{Chunk, FETCH, FIRST_TOUCH, KEPT, Passed, READS, THROUGH, TIME, WRITE};

impl Engine {
    /// Carries on with what the first caches passed on.
    pub fn carry_on(&mut self, chunk: &Chunk) -> Result<(), SimError> {
        match self.classes {
            true => self.carry::<true>(chunk),
            false => self.carry::<false>(chunk),
        }
    }

    fn carry<const CLASSES: bool>(&mut self, chunk: &Chunk) -> Result<(), SimError> {
        let mut pages = chunk.pages.iter();
        for passed in &chunk.passed {
            self.cpus[0].clock += u64::from(passed.time);
            if passed.what & (FIRST_TOUCH | TIME) != 0 {
                self.rare(&mut pages, passed)?;
                continue;
            }
            let a = self.passed_piece(passed);
            if passed.what & THROUGH != 0 {
                self.pass_on::<false, CLASSES>(&a, 0);
            } else {
                self.walk::<false, CLASSES>(&a, passed.start());
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn passed_piece(&self, passed: &Passed) -> Access {
        let (page_bits, piece_bits) = (self.layout.page_bits, self.layout.piece_bits);
        let bits = page_bits - piece_bits;
        let page = passed.piece >> bits;
        let offset = u64::from(passed.piece & ((1 << bits) - 1)) << piece_bits;
        let copy = &self.copies[page as usize];
        Access {
            who: Who {
                cpu: 0,
                thread: 0,
                space: 0,
            },
            core: 0,
            page,
            copy: page,
            virtual_address: copy.number << page_bits | offset,
            physical_address: copy.frame << page_bits | offset,
            bytes: 1,
            pc_site: 0,
            write: passed.what & WRITE != 0 && passed.what & KEPT == 0,
            reads: passed.what & READS != 0,
            fetch: passed.what & FETCH != 0,
            now: self.cpus[0].clock,
        }
    }

    #[cold]
    #[inline(never)]
    fn rare(&mut self, pages: &mut Iter<Page>, passed: &Passed) -> Result<(), SimError> {
        if passed.what & TIME != 0 {
            self.cpus[0].clock += u64::from(passed.piece) << 32 | u64::from(passed.other);
            return Ok(());
        }
        let Some(page) = pages.next() else { return Ok(()) };
        let (number, _) = self.table.touch(page.space, page.number);
        let who = Who {
            cpu: 0,
            thread: passed.other,
            space: page.space,
        };
        self.first_touch(who, number, passed.what & WRITE != 0)
    }
}
