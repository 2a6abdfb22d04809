//! Branches that are foretold wrongly: until one knows its way, nothing behind it enters.
//!
//! The input knows how many there are before the references of a site, and which loads decide their way, but not which
//! ones they are. So they come at equal distances: item 11 of "A processor that overlaps" in the contract.

use machine::Machine;
use trace::Misprediction;

use super::depends::Depends;
use crate::clock::{Units, units};

/// References of a site in which its mispredictions are counted.
const IN: u32 = 1024;

pub struct Branches {
    takes: Units,
    /// By site.
    of: Vec<Of>,
    /// By cpu and site: mispredictions in 1024ths that have not come yet.
    due: Vec<Vec<u32>>,
}

#[derive(Clone, Default)]
struct Of {
    per_1024: u32,
    /// Numbers of the loads that its branches wait for.
    on: Vec<u32>,
}

impl Branches {
    /// `None` where all branches are foretold rightly.
    pub fn new(machine: &Machine, mispredictions: &[Misprediction], depends: &mut Depends) -> Option<Branches> {
        let takes = units(machine.core?.misprediction_ns);
        if takes == 0 || mispredictions.is_empty() {
            return None;
        }
        let sites = mispredictions.iter().map(|one| one.site as usize + 1).max()?;
        let mut of = vec![Of::default(); sites];
        for one in mispredictions {
            of[one.site as usize] = Of {
                per_1024: one.per_1024,
                on: one.on.iter().map(|&site| depends.number(site)).collect(),
            };
        }
        Some(Branches {
            takes,
            of,
            due: vec![vec![0; sites]; machine.cpus as usize],
        })
    }

    /// A reference of a site follows: what the mispredictions before it take, if there are any.
    #[inline(always)]
    pub fn mispredicted(&mut self, cpu: u32, site: u32) -> Option<Units> {
        let of = self.of.get(site as usize).filter(|of| of.per_1024 > 0)?;
        let due = &mut self.due[cpu as usize][site as usize];
        *due += of.per_1024;
        let count = *due / IN;
        *due %= IN;
        (count > 0).then_some(Units::from(count) * self.takes)
    }

    /// When what the branches before a site's reference wait for has come.
    pub fn known(&self, depends: &Depends, thread: u32, site: u32) -> Units {
        depends.came(thread, &self.of[site as usize].on)
    }
}
