//! Figure 9: `memlat` with two regions, over sizes and stays.

use serde::{Deserialize, Serialize};
use sim::calibrate::{Memlat, Point, Walk, point};

use super::draw;
use crate::error::ReproduceError;
use crate::paper::Item;
use crate::region_items::{Experiment, Regions, Variant};
use crate::reproduce::{Reproduction, Section};
use crate::several::{Several, short};
use crate::watch::Step;
use machine::Machine;

/// The orders of reads, and their names in rows.
pub const WALKS: [(Walk, &str); 2] = [(Walk::Cyclic, "cyclic"), (Walk::Random, "random")];

/// One recording: the measurements at each size (row) and stay.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    pub sizes_kb: Vec<u64>,
    pub stays: Vec<u32>,
    pub points: Vec<Vec<Point>>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    confined_ns: f64,
    followed_ns: f64,
}

impl Grid {
    fn gain(&self, size: usize, stay: usize) -> f64 {
        self.points[size][stay].gain()
    }

    /// The place of the largest gain.
    fn peak(&self) -> (usize, usize) {
        let places = (0..self.sizes_kb.len()).flat_map(|size| (0..self.stays.len()).map(move |stay| (size, stay)));
        let gain = |&(size, stay): &(usize, usize)| self.gain(size, stay);
        places.max_by(|a, b| gain(a).total_cmp(&gain(b))).unwrap_or_default()
    }

    /// A number of the figure, by its column.
    pub fn number(&self, column: &str) -> Result<f64, String> {
        let (size, stay) = self.peak();
        let moves = || {
            let gaining = self.points.iter().flatten().filter(|point| point.gains());
            gaining.map(|point| 1e9 / point.followed_ns)
        };
        let none = || "nothing gains".to_string();
        match column {
            "largest gain" => Ok((self.gain(size, stay) - 1.0) * 100.0),
            "fewest moves" => moves().min_by(f64::total_cmp).ok_or_else(none),
            "most moves" => moves().max_by(f64::total_cmp).ok_or_else(none),
            "size that loses" => (0..size)
                .rev()
                .find(|&size| !self.points[size][stay].gains())
                .map(|size| self.sizes_kb[size] as f64 / 1024.0)
                .ok_or_else(|| format!("even {} MB gains", short(self.sizes_kb[0] as f64 / 1024.0))),
            "size too large" => (size..self.sizes_kb.len())
                .find(|&size| !self.points[size][stay].gains())
                .map(|size| self.sizes_kb[size] as f64 / 1024.0)
                .ok_or_else(|| "every larger size gains".to_string()),
            "stay that loses" => (0..stay)
                .rev()
                .find(|&stay| !self.points[size][stay].gains())
                .map(|stay| f64::from(self.stays[stay]))
                .ok_or_else(|| format!("even 2^{} reads gain", self.stays[0])),
            "stay of little gain" => (stay..self.stays.len())
                .find(|&stay| self.gain(size, stay) < LITTLE)
                .map(|stay| f64::from(self.stays[stay]))
                .ok_or_else(|| format!("2^{} reads gain more", self.stays[self.stays.len() - 1])),
            "smallest size" => Ok(most((0..self.stays.len()).map(|stay| self.gain(0, stay)))),
            "largest size" => {
                let last = self.sizes_kb.len() - 1;
                Ok(most((0..self.stays.len()).map(|stay| self.gain(last, stay))))
            }
            "shortest stay" => Ok(most((0..self.sizes_kb.len()).map(|size| self.gain(size, 0)))),
            "longest stay" => {
                let last = self.stays.len() - 1;
                Ok(most((0..self.sizes_kb.len()).map(|size| self.gain(size, last))))
            }
            other => Err(format!("`{other}` is not counted")),
        }
    }

    /// The gains as lines of text.
    fn in_words(&self) -> Vec<String> {
        let stays: Vec<String> = self
            .stays
            .iter()
            .map(|stay| format!("{:>6}", format!("2^{stay}")))
            .collect();
        let head = format!("{:>12} {}", "", stays.join(" "));
        let row = |(size, kb): (usize, &u64)| {
            let gains: Vec<String> = (0..self.stays.len())
                .map(|stay| format!("{:>6.2}", self.gain(size, stay)))
                .collect();
            format!(
                "{:>9} MB {}",
                format!("2 x {:.1}", *kb as f64 / 1024.0),
                gains.join(" ")
            )
        };
        std::iter::once(head)
            .chain(self.sizes_kb.iter().enumerate().map(row))
            .collect()
    }
}

/// The largest gain, in percent.
fn most(gains: impl Iterator<Item = f64>) -> f64 {
    (gains.fold(0.0, f64::max) - 1.0) * 100.0
}

/// A gain of less than this is "marginal" (section 3.1).
const LITTLE: f64 = 1.1;

fn unit(column: &str) -> &'static str {
    match column {
        "fewest moves" | "most moves" => "a second",
        "size that loses" | "size too large" => "MB of a region",
        "stay that loses" | "stay of little gain" => "log2 of reads",
        _ => "percent",
    }
}

impl Reproduction<'_> {
    pub(super) fn memlat(
        &mut self,
        item: &Item,
        regions: &Regions,
        section: &mut Section,
    ) -> Result<(), ReproduceError> {
        let mut drawn = Vec::new();
        let mut rows: Vec<(String, Vec<Grid>)> = Vec::new();
        for variant in &regions.machines {
            let machine = machine::load(&variant.preset)?;
            for (walk, order) in WALKS {
                let name = format!("{}, {order}", variant.name);
                let grids = self.grids(&machine, variant, walk, &name)?;
                drawn.push((name.clone(), grids[0].clone()));
                rows.push((name, grids));
            }
            for experiment in regions.experiments.iter().filter(|one| one.machine == variant.name) {
                let changed = experiment.changed(&machine);
                for (walk, order) in WALKS {
                    let name = format!("{}, {order}, {}", variant.name, experiment.name);
                    let grids = self.grids(&changed, variant, walk, &name)?;
                    rows.push((name, grids));
                }
            }
        }
        let several = |row: &str, column: &str| {
            let grids = rows.iter().find(|(name, _)| name == row);
            let grids = grids.map_or(&[][..], |(_, grids)| grids);
            Several(grids.iter().map(|grid| grid.number(column)).collect())
        };
        for (name, _) in &rows {
            self.several(item, name, section, |column| (unit(column), several(name, column)));
        }
        section.notes.extend(experiments(&regions.experiments));
        section.notes.push(format!(
            "`memlat` with two regions, confined to one cache and following its regions to two, simulated on machines/*.toml; {}",
            self.recordings_in_words()
        ));
        for (name, grid) in &drawn {
            section.notes.push(format!(
                "{name}: times as fast, by the size of the regions and the reads of a stay"
            ));
            section.notes.extend(grid.in_words());
        }
        section.drawing = Some(draw::panels(&item.title, &drawn));
        Ok(())
    }

    fn grids(&self, machine: &Machine, variant: &Variant, walk: Walk, what: &str) -> Result<Vec<Grid>, ReproduceError> {
        let (sizes, stays) = (&variant.sizes_kb, &variant.stays);
        let total = self.recordings() * (sizes.len() * stays.len()) as u64;
        let mut done = 0;
        let mut grids = Vec::new();
        for recording in 0..self.recordings() {
            let mut points = Vec::new();
            for &kb in sizes {
                let mut row = Vec::new();
                for &stay in stays {
                    let memlat = Memlat {
                        walk,
                        bytes: kb << 10,
                        stay: 1 << stay,
                        recording,
                    };
                    (self.watch)(Step::Simulating { what, done, total });
                    done += 1;
                    row.push(self.point(machine, &memlat)?);
                }
                points.push(row);
            }
            grids.push(Grid {
                sizes_kb: sizes.clone(),
                stays: stays.clone(),
                points,
            });
        }
        Ok(grids)
    }

    /// `memlat` at one size and stay.
    pub(super) fn point(&self, machine: &Machine, memlat: &Memlat) -> Result<Point, ReproduceError> {
        let key = format!("{memlat:?}\n{}", machine.to_toml());
        let kept = self.kept(&key, || {
            let failed = |source| ReproduceError::Simulate {
                line: "memlat".to_string(),
                source,
            };
            let point = point(machine, memlat).map_err(failed)?;
            let point = point.ok_or_else(|| ReproduceError::Host(format!("{} has one cache", machine.name)))?;
            Ok(Kept {
                confined_ns: point.confined_ns,
                followed_ns: point.followed_ns,
            })
        })?;
        Ok(Point {
            confined_ns: kept.confined_ns,
            followed_ns: kept.followed_ns,
        })
    }
}

fn experiments(experiments: &[Experiment]) -> impl Iterator<Item = String> + '_ {
    experiments
        .iter()
        .map(|one| format!("experiment `{}`: {}", one.name, one.why))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes of 1, 2, 3 MB; stays of 2^4, 2^8, 2^12. The middle gains most, both edges of the sizes and short stays lose.
    fn grid() -> Grid {
        let point = |gain: f64| Point {
            confined_ns: gain * 1000.0,
            followed_ns: 1000.0,
        };
        let rows = [[0.5, 0.9, 1.0], [0.8, 1.5, 1.05], [0.7, 0.9, 1.0]];
        Grid {
            sizes_kb: vec![1024, 2048, 3072],
            stays: vec![4, 8, 12],
            points: rows
                .iter()
                .map(|row| row.iter().map(|gain| point(*gain)).collect())
                .collect(),
        }
    }

    #[test]
    fn numbers_are_read_off_a_grid() {
        let grid = grid();
        let near = |column: &str, expected: f64| {
            let number = grid.number(column).unwrap();
            assert!((number - expected).abs() < 1e-9, "{column}: {number}");
        };
        near("largest gain", 50.0);
        near("fewest moves", 1e6);
        near("most moves", 1e6);
        near("size that loses", 1.0);
        near("size too large", 3.0);
        near("stay that loses", 4.0);
        near("stay of little gain", 12.0);
        near("smallest size", 0.0);
        near("largest size", 0.0);
        near("shortest stay", -20.0);
        near("longest stay", 5.0);
        assert!(grid.number("other").is_err());
    }

    #[test]
    fn what_no_size_shows_has_a_reason() {
        let mut grid = grid();
        grid.points[0][1].confined_ns = 1400.0;
        assert_eq!(grid.number("size that loses"), Err("even 1.00 MB gains".to_string()));
        grid.points[1][2].confined_ns = 1200.0;
        assert_eq!(
            grid.number("stay of little gain"),
            Err("2^12 reads gain more".to_string())
        );
        assert_eq!(grid.in_words().len(), 4);
        assert!(grid.in_words()[2].contains("2 x 2.0 MB"), "{:?}", grid.in_words());
    }
}
