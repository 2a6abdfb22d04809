//! A paper's tables and figures as data: the files under `papers/`, which are compiled in.

use serde::Deserialize;
use thiserror::Error;

/// A paper and what of it is reproduced.
#[derive(Clone, Debug)]
pub struct Paper {
    pub name: &'static str,
    pub title: &'static str,
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
    pub columns: Vec<String>,
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
    /// Which version of the program stands for a column (of counts) or a row (of times).
    #[serde(rename = "run", default)]
    pub runs: Vec<Run>,
    #[serde(flatten)]
    pub job: Job,
    /// The row against which the others are a speedup.
    pub baseline: Option<String>,
    /// Threads that are forked, of a table of overheads.
    pub threads: Option<u64>,
}

/// Where the numbers come from.
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
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Row {
    pub name: String,
    /// The paper's, in the order of the columns; an empty text where it has none.
    #[serde(default)]
    values: Vec<Cell>,
    pub measure: Option<Measure>,
    /// Set where the number is in the paper's text and not in its table.
    pub source: Option<String>,
    /// The row that this one is a speedup over, where it is not the table's.
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

/// What of a simulation a row is.
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
    /// Threads that were forked (each, not thousands).
    Threads,
    /// Bins that they fell into (each, not thousands).
    Bins,
}

/// A program and how large it is run.
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
    /// With itself.
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
    /// Of a threaded version: the hints of each thread. A block's dimensions then add up to the cache.
    pub hints: Option<u64>,
    #[serde(default)]
    pub arguments: Vec<String>,
}

/// The file of an item is wrong: a defect of this program, not of its user.
#[derive(Debug, Error)]
#[error("papers/{paper}/{item}.toml: {what}")]
pub struct Malformed {
    paper: &'static str,
    item: String,
    what: String,
}

macro_rules! items {
    ($paper:literal: $($item:literal)*) => {
        &[$(($item, include_str!(concat!("../../../papers/", $paper, "/", $item, ".toml")))),*]
    };
}

const PHILBIN96: &[(&str, &str)] = items! {
    "philbin96": "table1" "table2" "table3" "table4" "table5" "table6" "table7" "table8" "table9" "figure4"
};

/// Philbin and others, ASPLOS 1996.
pub fn philbin96() -> Result<Paper, Malformed> {
    let items = PHILBIN96.iter().map(|(name, text)| item("philbin96", name, text));
    Ok(Paper {
        name: "philbin96",
        title: "Thread Scheduling for Cache Locality",
        items: items.collect::<Result<_, _>>()?,
    })
}

fn item(paper: &'static str, name: &str, text: &str) -> Result<Item, Malformed> {
    let wrong = |what: String| Malformed {
        paper,
        item: name.to_string(),
        what,
    };
    let mut item: Item = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
    item.name = name.to_string();
    item.check().map_err(wrong)?;
    Ok(item)
}

impl Item {
    /// What every file must keep, so that nothing else has to ask.
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
            Kind::Counts => self.columns.iter().map(String::as_str).collect(),
            Kind::Times => self.rows.iter().map(|row| row.name.as_str()).collect(),
            Kind::Overhead | Kind::Blocks => Vec::new(),
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
        Ok(())
    }
}

impl Row {
    /// Whether the paper has no such row: it is there to explain the others.
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
    /// The size at which data has the same ratio to a cache of `cache` bytes as the paper's to its
    /// cache of `then` bytes. Caches count in powers of two, and never for less than the paper's.
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

    fn value(item: &Item, row: &str, column: usize) -> f64 {
        item.rows.iter().find(|r| r.name == row).unwrap().value(column).unwrap()
    }

    /// The paper's sums hold to its last digit; a number that was copied wrongly breaks one.
    #[test]
    fn the_papers_numbers_add_up() {
        let paper = philbin96().unwrap();
        assert_eq!(paper.items.len(), 10);
        for item in paper.items.iter().filter(|item| item.kind == Kind::Counts) {
            // A column of our own has none of the paper's numbers.
            let printed = |&column: &usize| item.rows.iter().any(|row| row.value(column).is_some());
            assert!((0..item.columns.len()).filter(printed).count() >= 2, "{}", item.name);
            for column in (0..item.columns.len()).filter(printed) {
                let of = |row| value(item, row, column);
                let classes = of("L2 compulsory") + of("L2 capacity") + of("L2 conflict");
                let told = format!("{} {}", item.name, item.columns[column]);
                assert!((classes - of("L2 misses")).abs() <= 1.0, "{told}: classes");
                let rate = 100.0 * of("L1 misses") / (of("I fetches") + of("D references"));
                // The paper prints 4.747 as 4.8.
                assert!((rate - of("L1 rate")).abs() < 0.06, "{told}: L1 rate {rate}");
            }
        }
        let table1 = &paper.items[0];
        for column in 0..2 {
            let parts = value(table1, "Fork", column) + value(table1, "Run", column);
            assert!((parts - value(table1, "Total", column)).abs() < 1e-9);
        }
    }

    /// What the paper's text says of its tables, in its own words and numbers.
    #[test]
    fn the_text_agrees_with_the_tables() {
        let paper = philbin96().unwrap();
        let table = |name: &str| paper.items.iter().find(|item| item.name == name).unwrap();
        let less = |name, row, a, b| value(table(name), row, a) - value(table(name), row, b);
        // "reduces the number of instruction and data references by 3,204M and 2,494M"
        assert_eq!((less("table3", "I fetches", 0, 1) / 1e3).round(), 3204.0);
        assert_eq!((less("table3", "D references", 0, 1) / 1e3).round(), 2494.0);
        // "by 1,459M and 1,029M": threaded
        assert_eq!((less("table3", "I fetches", 0, 2) / 1e3).round(), 1459.0);
        assert_eq!((less("table3", "D references", 0, 2) / 1e3).round(), 1029.0);
        // "L1 cache misses, by about 193M, and L2 cache misses, by 67.5M"
        assert_eq!((less("table3", "L1 misses", 0, 1) / 1e3).round(), 193.0);
        assert_eq!((less("table3", "L2 misses", 0, 1) / 1e2).round(), 675.0);
        // "26M instruction references and 3.4M data references less", "4.3M more L1", "3.2M"
        assert_eq!((less("table5", "I fetches", 0, 1) / 1e3).round(), 26.0);
        assert_eq!((less("table5", "D references", 0, 1) / 1e2).round(), 34.0);
        assert_eq!((less("table5", "L1 misses", 1, 0) / 1e2).round(), 43.0);
        assert_eq!((less("table5", "L2 misses", 0, 1) / 1e2).round(), 32.0);
        // "20.2M instruction references less", "13.7M", "2.6M"
        assert_eq!((less("table5", "I fetches", 0, 2) / 1e2).round(), 202.0);
        assert_eq!((less("table5", "L1 misses", 2, 0) / 1e2).round(), 137.0);
        assert_eq!((less("table5", "L2 misses", 0, 2) / 1e2).round(), 26.0);
        // SOR: "933M more references", "about 85M", "about 7.3M"; threaded "about 8.2M more", "180K more"
        let references = |a, b| less("table7", "I fetches", a, b) + less("table7", "D references", a, b);
        assert_eq!((references(1, 0) / 1e3).round(), 933.0);
        assert_eq!((less("table7", "L1 misses", 0, 1) / 1e3).round(), 85.0);
        assert_eq!((less("table7", "L2 misses", 0, 1) / 1e2).round(), 73.0);
        assert_eq!((references(2, 0) / 1e2).round(), 82.0);
        assert_eq!(less("table7", "L1 misses", 2, 0), 180.0);
        // N-body: "about 23.8M more", "722K more L1 misses", capacity "by a factor of 2.3"
        let references = less("table9", "I fetches", 1, 0) + less("table9", "D references", 1, 0);
        assert_eq!((references / 1e2).round(), 239.0);
        assert_eq!(less("table9", "L1 misses", 1, 0), 722.0);
        let capacity = |column| value(table("table9"), "L2 capacity", column);
        assert_eq!((capacity(0) / capacity(1) * 10.0).round(), 23.0);
    }

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
