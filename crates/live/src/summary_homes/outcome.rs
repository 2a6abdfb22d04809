//! The outcome, counted when the program ends by a look at the pages.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use results::run::{HomesReport, HomesWhen, LeftOut, NodeHomes};
use sys::move_pages::PageError;

use super::placing::{BATCH, address};
use super::{Moment, SummaryHomes, length};

impl SummaryHomes {
    /// The outcome so far, and notes. If `look`, it counts all pages; else those numbers are 0.
    pub fn outcome(&mut self, look: bool) -> (HomesReport, Vec<String>) {
        let mut nodes: BTreeMap<u32, NodeHomes> = BTreeMap::new();
        for (pages, &node) in self.homes.iter() {
            let of = nodes.entry(node).or_insert(NodeHomes {
                node,
                ..NodeHomes::default()
            });
            of.pages += length(&pages);
        }
        let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
        for (pages, why) in self.left.iter() {
            *reasons.entry(why).or_default() += length(&pages);
        }
        let mut left_out: Vec<LeftOut> = reasons
            .into_iter()
            .map(|(why, pages)| LeftOut {
                why: why.to_string(),
                pages,
            })
            .collect();
        left_out.sort_by_key(|left| Reverse(left.pages));
        let loops = self.program.loops();
        let mut report = HomesReport {
            policy: self.policy.clone(),
            loops: loops.len() as u64,
            again: self.again,
            refused: self.refused,
            arrays: self.program.arrays() as u64,
            threads: loops.iter().map(|known| u64::from(known.threads)).max().unwrap_or(0),
            openmp: crate::summaries::has_openmp(),
            pages: self.homes.pages(),
            left_out,
            start: when(&self.start),
            later: when(&self.later),
            ..HomesReport::default()
        };
        let mut notes = self.notes.clone();
        if look && let Err(error) = self.look(&mut report, &mut nodes) {
            notes.push(format!(
                "where the pages are in the end may not be asked (move_pages): {error}"
            ));
        }
        report.nodes = nodes.into_values().collect();
        (report, notes)
    }

    fn look(&mut self, report: &mut HomesReport, nodes: &mut BTreeMap<u32, NodeHomes>) -> std::io::Result<()> {
        report.unknown = report.pages;
        let SummaryHomes { linux, homes, .. } = self;
        for (pages, node) in homes.iter() {
            for first in (pages.start..pages.end).step_by(BATCH as usize) {
                let addresses: Vec<usize> = (first..pages.end.min(first + BATCH)).map(address).collect();
                for now in linux.nodes_of(&addresses)? {
                    report.unknown -= 1;
                    match now {
                        Ok(now) if now == *node => {
                            report.at_home += 1;
                            nodes.entry(*node).or_default().at_home += 1;
                        }
                        Ok(_) => report.elsewhere += 1,
                        Err(PageError::ABSENT) => report.absent += 1,
                        Err(PageError::UNMAPPED) => report.out_of_sight += 1,
                        Err(_) => report.unknown += 1,
                    }
                }
            }
        }
        Ok(())
    }
}

fn when(moment: &Moment) -> HomesWhen {
    HomesWhen {
        times: moment.times,
        pages: moment.pages,
        moved: moment.moved,
        us: moment.duration.as_micros() as u64,
    }
}
