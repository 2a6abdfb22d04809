//! Region scheduling: threads that follow their data from cache to cache (Lee12, its figures).
//!
//! Everything is simulated on the paper's two machines. Differences between recordings of a program (the places of its
//! data, its start, the order of its random reads) are not results: each number is the median over several recordings,
//! and a conclusion holds only if it holds in each of them.

mod draw;
mod grid;
#[cfg(target_arch = "x86_64")]
mod live;
mod loads;
mod mechanism;
mod parts;
mod processes;
mod programs;
mod recordings;
mod together;

use sim::{Item as Reference, PolicySpec};
use trace::{Op, Ref};

use crate::error::ReproduceError;
use crate::line::Line;
use crate::paper::Item;
use crate::region_items::View;
use crate::reproduce::{Reproduction, Section};
use crate::several::Several;

impl Reproduction<'_> {
    /// An item of regions.
    pub(crate) fn regions(&mut self, item: &Item, section: &mut Section) -> Result<(), ReproduceError> {
        let Some(regions) = &item.regions else {
            return Ok(());
        };
        match regions.view {
            #[cfg(target_arch = "x86_64")]
            View::Memlat if self.options.live => self.live_memlat(item, section)?,
            View::Memlat => self.memlat(item, regions, section)?,
            View::Processes => self.processes(item, regions, section)?,
            View::Programs => self.programs(item, regions, section)?,
            View::Together => self.together(item, regions, section)?,
            View::Loads => self.loads(item, regions, section)?,
            View::Overhead => self.mechanism(item, regions, section)?,
        }
        section
            .notes
            .extend(item.says.iter().map(|says| format!("the paper: {says}")));
        Ok(())
    }

    /// A row of the item: the median over recordings compared with the paper's number, and the spread over recordings.
    fn several(&self, item: &Item, row: &str, section: &mut Section, of: impl Fn(&str) -> (&'static str, Several)) {
        let paper = item.rows.iter().find(|known| known.name == row);
        for (at, column) in item.columns.iter().enumerate() {
            let (unit, several) = of(column);
            let paper = paper.and_then(|row| row.value(at));
            let line = Line::of_several(self.place(item, row, column, unit), paper, &several);
            // A claim may be about a missing number.
            if paper.is_some() || line.value.is_some() || item.claims.iter().any(|claim| claim.row == row) {
                section.lines.push(line);
            }
        }
    }
}

/// Policy `policy` with parameters of `regions`.
fn spec(policy: &str, set: &[String]) -> Result<PolicySpec, ReproduceError> {
    let name = policy
        .parse()
        .map_err(|error| ReproduceError::Host(format!("policy {policy}: {error}")))?;
    Ok(PolicySpec {
        sets: set.iter().map(|set| format!("regions.{set}")).collect(),
        ..PolicySpec::new(name)
    })
}

/// A read of an artificial process, this many instructions after the previous one.
fn read(addr: u64, insns: u8) -> Reference {
    Reference::Ref(Ref {
        addr,
        site: 0,
        insns,
        op: Op::Read,
        size: 8,
    })
}
