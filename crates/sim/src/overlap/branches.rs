//! Mispredicted branches: until one is resolved, no later instruction enters.
//!
//! The input knows how many there are before the references of a site, and which loads decide their way, but not which
//! ones they are. So they come at equal distances: item 11 of "A processor that overlaps" in the contract.

use machine::Machine;
use trace::Misprediction;

use super::depends::Depends;
use crate::clock::{Units, units};

/// References of a site in which its mispredictions are counted.
const IN: u64 = 1024;

pub struct Branches {
    takes: Units,
    /// By site: its number among those with mispredictions, or [`NONE`].
    numbers: Vec<u32>,
    of: Vec<Of>,
    /// By cpu and number: mispredictions in 1024ths that have not come yet.
    due: Vec<u64>,
}

const NONE: u32 = u32::MAX;

struct Of {
    per_1024: u64,
    /// Numbers of the loads that its branches wait for.
    on: Vec<u32>,
}

impl Branches {
    /// `None` if all branches are predicted correctly.
    pub fn new(machine: &Machine, mispredictions: &[Misprediction], depends: &mut Depends) -> Option<Branches> {
        let takes = units(machine.core?.misprediction_ns);
        let sites = mispredictions.iter().map(|one| one.site as usize + 1).max()?;
        if takes == 0 {
            return None;
        }
        let mut numbers = vec![NONE; sites];
        let of: Vec<Of> = mispredictions
            .iter()
            .zip(0..)
            .map(|(one, number)| {
                numbers[one.site as usize] = number;
                Of {
                    per_1024: one.per_1024.into(),
                    on: one.on.iter().map(|&site| depends.number(site)).collect(),
                }
            })
            .collect();
        Some(Branches {
            takes,
            due: vec![0; of.len() * machine.cpus as usize],
            numbers,
            of,
        })
    }

    #[inline(always)]
    fn number(&self, site: u32) -> Option<usize> {
        let number = self.numbers.get(site as usize).filter(|number| **number != NONE);
        number.map(|number| *number as usize)
    }

    /// A reference of a site follows. Returns the time of the mispredictions before it, if there are any.
    #[inline(always)]
    pub fn mispredicted(&mut self, cpu: u32, site: u32) -> Option<Units> {
        let number = self.number(site)?;
        let due = &mut self.due[cpu as usize * self.of.len() + number];
        *due += self.of[number].per_1024;
        let count = *due / IN;
        *due %= IN;
        (count > 0).then_some(count * self.takes)
    }

    /// The numbers of the loads that the branches before a site's reference wait for.
    pub fn on(&self, site: u32) -> &[u32] {
        self.number(site).map_or(&[], |number| &self.of[number].on)
    }
}
