//! A paper's tables and figures as data: the files under `papers/`, which are compiled in.

use serde::Deserialize;
use thiserror::Error;

use crate::claims::{Claim, LARGEST};
use crate::grid::Grid;
use crate::papers::About;
use crate::region_items::Regions;
use crate::traces::Traces;

/// A paper and its reproduced items.
#[derive(Clone, Debug)]
pub struct Paper {
    pub name: &'static str,
    pub about: About,
    /// In the order of the paper.
    pub items: Vec<Item>,
}

/// One table or figure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Item {
    /// `table3`; the name of its file.
    #[serde(skip)]
    pub name: String,
    pub title: String,
    pub section: String,
    pub kind: Kind,
    pub unit: String,
    #[serde(default)]
    pub columns: Vec<String>,
    #[serde(rename = "row", default)]
    pub rows: Vec<Row>,
    /// The program version for a column (of counts) or a row (of times).
    #[serde(rename = "run", default)]
    pub runs: Vec<Run>,
    #[serde(flatten)]
    pub job: Job,
    /// The row that speedups are relative to.
    pub baseline: Option<String>,
    /// Threads that are forked, for a table of overheads.
    pub threads: Option<u64>,
    /// The item with the simulated counts of the same runs, for a figure of pairs.
    pub counts: Option<String>,
    /// The numbers in the paper's text, if they are drawn and not printed.
    pub says: Option<String>,
    /// Sizes by the cache that has the colors, the smallest first, for a figure of pairs.
    #[serde(rename = "scale", default)]
    pub scales: Vec<Scale>,
    /// The paper's conclusions from its numbers; grids and traces have their own.
    #[serde(rename = "claim", default)]
    pub claims: Vec<Claim>,
    /// Programs by cpus by policies.
    pub grid: Option<Grid>,
    /// Policies over the misses of recorded workloads.
    pub traces: Option<Traces>,
    /// Threads that follow their data, simulated over several recordings.
    pub regions: Option<Regions>,
    /// Why its numbers are unavailable here; in a table of traces, those of rows without a bar.
    pub absent: Option<String>,
}

/// The origin of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The cost of threads, measured here.
    Overhead,
    /// Times of programs, measured here.
    Times,
    /// References and misses of programs at the paper's size, simulated on the paper's machine.
    Counts,
    /// Times over block sizes, measured here.
    Blocks,
    /// Misses that cache slots save, simulated on the paper's machine, for each number of threads.
    Saved,
    /// Times with slots and without, measured here, for each number of threads.
    Pairs,
    /// The cost of giving a data set a slot, measured here.
    Slots,
    /// Programs by numbers of cpus by policies, simulated on the paper's machines.
    Grid,
    /// Policies of homes over the misses of recorded workloads, on the paper's machines.
    Traces,
    /// Threads that follow their data from cache to cache, simulated on the paper's machines.
    Regions,
    /// Unavailable here: only the paper's numbers, and why.
    Absent,
}

/// Arguments for caches from a size on.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// Bytes.
    pub cache: u64,
    pub arguments: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Row {
    pub name: String,
    /// The paper's, in the order of the columns; an empty text if it has none.
    #[serde(default)]
    values: Vec<Cell>,
    pub measure: Option<Measure>,
    /// Set where the number is in the paper's text and not in its table.
    pub source: Option<String>,
    /// The row that this one is a speedup over, if it is not the table's.
    pub baseline: Option<String>,
    #[serde(flatten)]
    pub job: Job,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Cell {
    Number(f64),
    Nothing(String),
}

/// The measure of a simulation in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    Instructions,
    References,
    L1Misses,
    L1Rate,
    L2Misses,
    L2Rate,
    L2Compulsory,
    L2Capacity,
    L2Conflict,
    /// Percent of the first column's references that are saved; and of its misses, of all and of a class.
    ReferencesSaved,
    L1Saved,
    L2Saved,
    CapacitySaved,
    /// Threads that were forked (each, not thousands).
    Threads,
    /// Bins that they fell into (each, not thousands).
    Bins,
}

/// A program and the size at which it is run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Job {
    pub program: Option<String>,
    /// `{n}` stands for the size, `{block}` for the bytes of a block.
    #[serde(default)]
    pub arguments: Vec<String>,
    pub size: Option<Size>,
}

/// A size that grows with the cache.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    pub paper: u64,
    pub grows: Grows,
}

/// How data grows with the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grows {
    /// With its square: the size is the side of a matrix.
    Side,
    /// In proportion to it.
    Bytes,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The column or row.
    pub of: String,
    pub version: Option<String>,
    /// Why there is no such version.
    pub absent: Option<String>,
    /// For a threaded version: the hints of each thread. A block's dimensions then add up to the cache.
    pub hints: Option<u64>,
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Instead of `arguments`, for the paper's full size if that takes hours.
    pub full: Option<Vec<String>>,
}

/// An item's file is wrong: a defect of this program, not an error of its user.
#[derive(Debug, Error)]
#[error("papers/{paper}/{item}.toml: {what}")]
pub struct Malformed {
    paper: &'static str,
    item: String,
    what: String,
}

impl Malformed {
    pub(crate) fn new(paper: &'static str, file: &str, what: String) -> Malformed {
        Malformed {
            paper,
            item: file.to_string(),
            what,
        }
    }
}

/// Reads one item's file.
pub(crate) fn item(paper: &'static str, name: &str, text: &str) -> Result<Item, Malformed> {
    let wrong = |what: String| Malformed::new(paper, name, what);
    let mut item: Item = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
    item.name = name.to_string();
    item.check().map_err(wrong)?;
    Ok(item)
}

impl Item {
    /// The requirements of every file, checked once here.
    fn check(&self) -> Result<(), String> {
        for row in &self.rows {
            if !row.values.is_empty() && row.values.len() != self.columns.len() {
                return Err(format!(
                    "row `{}` has {} values for {} columns",
                    row.name,
                    row.values.len(),
                    self.columns.len()
                ));
            }
            if self.kind == Kind::Counts && row.measure.is_none() {
                return Err(format!("row `{}` does not say what it measures", row.name));
            }
        }
        let names: Vec<&str> = match self.kind {
            Kind::Counts | Kind::Saved | Kind::Pairs => self.columns.iter().map(String::as_str).collect(),
            Kind::Times => self.rows.iter().map(|row| row.name.as_str()).collect(),
            Kind::Overhead | Kind::Blocks | Kind::Slots | Kind::Grid | Kind::Traces | Kind::Regions | Kind::Absent => {
                Vec::new()
            }
        };
        let runs: Vec<&str> = self.runs.iter().map(|run| run.of.as_str()).collect();
        if runs != names {
            return Err(format!("the runs are of {runs:?}, the table has {names:?}"));
        }
        if let Some(run) = self
            .runs
            .iter()
            .find(|run| run.version.is_some() == run.absent.is_some())
        {
            return Err(format!("the run of `{}` needs a version, or why there is none", run.of));
        }
        let baseline = |name: &String| self.rows.iter().any(|row| row.name == *name);
        if let Some(row) = self
            .rows
            .iter()
            .find(|row| row.baseline.as_ref().is_some_and(|name| !baseline(name)))
        {
            return Err(format!("row `{}` has a baseline that is no row", row.name));
        }
        if (self.kind == Kind::Times) != self.baseline.as_ref().is_some_and(baseline) {
            return Err("a table of times, and only one, has a baseline, which is one of its rows".to_string());
        }
        let pairs = self.kind == Kind::Pairs;
        if pairs != self.counts.is_some() || pairs != (self.scales.first().is_some_and(|scale| scale.cache == 0)) {
            return Err("a figure of pairs, and only one, has counts, and scales from 0 on".to_string());
        }
        if (self.kind == Kind::Grid) != self.grid.is_some() {
            return Err("a grid, and only one, has [grid]".to_string());
        }
        if (self.kind == Kind::Traces) != self.traces.is_some() || self.kind == Kind::Absent && self.absent.is_none() {
            return Err("[traces] is of items of kind `traces`; what is absent says why in `absent`".to_string());
        }
        if (self.kind == Kind::Regions) != self.regions.is_some() {
            return Err("an item of regions, and only one, has [regions]".to_string());
        }
        // Columns of speedups are made from the table's, and so are those of live measurements.
        let is_column =
            |name: &str| self.kind == Kind::Times || name == LARGEST || self.columns.iter().any(|of| of == name);
        for claim in &self.claims {
            claim.check()?;
            if let Some(column) = claim.columns().find(|column| !is_column(column)) {
                return Err(format!("a claim is about `{column}`, which is no column"));
            }
        }
        self.regions.iter().try_for_each(Regions::check)?;
        self.traces.iter().try_for_each(|traces| traces.check(&self.columns))?;
        self.grid.iter().try_for_each(Grid::check)
    }
}

impl Row {
    /// Returns true if the paper lacks this row, which explains the others.
    pub fn is_ours(&self) -> bool {
        self.values.is_empty()
    }

    /// The paper's number in a column; none where it has none.
    pub fn value(&self, column: usize) -> Option<f64> {
        match self.values.get(column) {
            Some(Cell::Number(number)) => Some(*number),
            _ => None,
        }
    }
}

impl Size {
    /// The size at which data has the same ratio to a cache of `cache` bytes as the paper's to its cache of `then`
    /// bytes. Caches are rounded to powers of two, and count at least as the paper's.
    pub fn grown(&self, cache: u64, then: u64) -> u64 {
        let times = (cache as f64 / then.max(1) as f64).max(1.0);
        let doublings = times.log2().round();
        let factor = match self.grows {
            Grows::Side => (doublings / 2.0).exp2(),
            Grows::Bytes => doublings.exp2(),
        };
        (self.paper as f64 * factor).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_grow_with_the_cache() {
        let side = Size {
            paper: 1024,
            grows: Grows::Side,
        };
        let bytes = Size {
            paper: 64_000,
            grows: Grows::Bytes,
        };
        assert_eq!(side.grown(2 << 20, 2 << 20), 1024);
        assert_eq!(side.grown(8 << 20, 2 << 20), 2048);
        assert_eq!(side.grown(7 << 20, 2 << 20), 2048);
        assert_eq!(side.grown(4 << 20, 2 << 20), 1448);
        assert_eq!(bytes.grown(8 << 20, 2 << 20), 256_000);
        assert_eq!(bytes.grown(512 << 10, 2 << 20), 64_000);
    }

    #[test]
    fn a_wrong_file_says_what_is_wrong() {
        let text = include_str!("../../../papers/philbin96/table4.toml");
        assert!(item("philbin96", "table4", text).is_ok());
        let said = |from: &str, to: &str| {
            let wrong = text.replacen(from, to, 1);
            assert_ne!(wrong, text);
            item("philbin96", "table4", &wrong).unwrap_err().to_string()
        };
        assert!(said("[9.48, 7.80]", "[9.48]").contains("row `Regular` has 1 values for 2 columns"));
        assert!(said("baseline = \"Regular\"", "baseline = \"None\"").contains("baseline"));
        assert!(said("of = \"Threaded\"", "of = \"Other\"").contains("Other"));
        assert!(said("version = \"regular\"", "").contains("needs a version"));
        assert!(said("section", "sektion").starts_with("papers/philbin96/table4.toml: "));
    }
}
