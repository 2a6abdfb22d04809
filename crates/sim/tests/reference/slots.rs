//! A program's statements about its cache slots: the policy hears them, and the pages that it wants elsewhere are
//! moved.

use machine::{Index, Kind, Machine};
use policy::slots::{self, Caches};
use policy::{Observation, SlotWord};
use trace::Event;

use super::Model;

/// The outermost caches for data, if placement decides the set.
pub fn caches(machine: &Machine) -> Option<Caches> {
    let outer = machine.caches.iter().rfind(|cache| cache.kind != Kind::Instruction)?;
    let slices = outer.hash.as_ref().map_or(1, |hash| u64::from(hash.slices));
    let way = outer.bytes / u64::from(outer.ways) / slices;
    // So many frames until the sets repeat.
    let colors = (1..).find(|frames| (frames * machine.page_bytes).is_multiple_of(way))?;
    let shared = |first: u32| (first..(first + outer.cpus_per_instance).min(machine.cpus)).collect();
    let caches = Caches {
        colors: colors as u32,
        color_bytes: outer.bytes / colors,
        page_bytes: machine.page_bytes,
        cpus: (0..machine.cpus)
            .step_by(outer.cpus_per_instance as usize)
            .map(shared)
            .collect(),
    };
    (outer.index == Index::Physical && colors > 1).then_some(caches)
}

impl Model<'_> {
    /// The time that the policy keeps the cpu.
    pub fn slots(&mut self, cpu: usize, thread: u32, event: &Event, clock: u64) -> u64 {
        let space = self.program.spaces[thread as usize];
        match self.word(space, event) {
            Some(word) if self.pages.interest().slots => self.observe(cpu, &Observation::Slots(word), clock),
            _ => 0,
        }
    }

    fn word(&self, space: u32, event: &Event) -> Option<SlotWord> {
        let word = match *event {
            Event::Slot { slot, bytes, private } => {
                let kind = if private {
                    slots::Kind::Private
                } else {
                    slots::Kind::Shared
                };
                SlotWord::Slot { slot, bytes, kind }
            }
            Event::SlotFree { slot } => SlotWord::SlotFree { slot },
            Event::DataRange { set, addr, bytes } => SlotWord::Range {
                set,
                space,
                addr,
                bytes,
            },
            Event::DataThread { set, thread } => SlotWord::User {
                set,
                cpu: thread % self.machine.cpus,
            },
            Event::Allocate { set, slot } => SlotWord::Allocate { set, slot },
            Event::DataFree { set } => SlotWord::Free { set },
            _ => return None,
        };
        Some(word)
    }
}
