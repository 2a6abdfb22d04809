//! The papers whose tables and figures are here as data. A further one needs its folder in `papers/` and its entry in
//! [`PAPERS`]: command line, manual, completions and refusals follow from its files.

use serde::Deserialize;

use crate::paper::{Item, Kind, Malformed, Paper, item};
use crate::traces::Workload;

/// A paper's files, as they are compiled in.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The name of its folder, by which the user requests it.
    pub name: &'static str,
    /// `paper.toml`.
    pub about: &'static str,
    /// Name and text of each table and figure, in the order of the paper.
    pub items: &'static [(&'static str, &'static str)],
}

macro_rules! paper {
    ($paper:literal: $($item:literal)*) => {
        Source {
            name: $paper,
            about: include_str!(concat!("../../../papers/", $paper, "/paper.toml")),
            items: &[$(($item, include_str!(concat!("../../../papers/", $paper, "/", $item, ".toml")))),*],
        }
    };
}

/// All papers.
pub const PAPERS: &[Source] = &[
    paper!("philbin96": "table1" "table2" "table3" "table4" "table5" "table6" "table7" "table8" "table9" "figure4"),
    paper!("ding11": "figure5" "figure6" "figure7" "figure8" "figure9" "figure10" "figure11" "figure12" "figure13"),
    paper!("bugnion96": "figure2" "figure3" "figure5" "figure6" "figure7" "figure8" "figure9" "figure9-machines" "table2"),
    paper!(
        "verghese96": "table3" "table4" "figure6.1" "figure6.2" "table5" "figure6.3" "figure6.4" "table6" "figure6.5" "figure6.6"
            "figure6.7" "table7" "figure7.1" "figure7.2" "table8" "table9" "table10" "table11" "table12"
    ),
    paper!("lee12": "figure9" "overhead" "figure17" "figure18" "figure21" "figure24" "server" "figure25" "programs"),
];

/// The description of a paper as a whole.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    pub authors: String,
    pub title: String,
    pub year: u16,
    /// The preset of the machine that its counts are simulated on.
    pub machine: String,
    /// The options of its items besides those of all papers.
    pub options: Vec<Choice>,
    /// The meaning of its sizes, if it does not take [`Choice::Size`].
    pub sizes: Option<String>,
    /// Of a paper with traces: its workloads.
    #[serde(rename = "workload", default)]
    pub workloads: Vec<Workload>,
    /// The items that can be drawn.
    pub drawn: Vec<String>,
    /// The effect of `--full` besides more rounds.
    pub full: Option<String>,
    /// A sentence for the manual: the paper's peculiarities.
    pub note: Option<String>,
    /// Command lines for the manual, from the item on.
    pub examples: Vec<String>,
}

/// Options that only some papers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    Size,
    Cache,
    Program,
    Cpus,
    Traces,
}

impl Source {
    /// The description of the paper as a whole.
    pub fn about(&self) -> Result<About, Malformed> {
        let about: Result<About, _> = toml::from_str(self.about);
        about.map_err(|error| Malformed::new(self.name, "paper", error.to_string()))
    }

    /// The paper with all its items.
    pub fn read(&self) -> Result<Paper, Malformed> {
        let items = self.items.iter().map(|(name, text)| item(self.name, name, text));
        let paper = Paper {
            name: self.name,
            about: self.about()?,
            items: items.collect::<Result<_, _>>()?,
        };
        paper.check().map_err(|what| Malformed::new(self.name, "paper", what))?;
        Ok(paper)
    }

    /// Returns true if all of its items can be drawn, by its description.
    pub fn draws_all(&self, about: &About) -> bool {
        about.drawn.len() == self.items.len()
    }
}

impl Paper {
    /// Checks that the paper's description holds for its items.
    fn check(&self) -> Result<(), String> {
        let drawn = self.items.iter().filter(|item| item.is_drawn()).map(|item| &item.name);
        if !drawn.eq(&self.about.drawn) {
            return Err("`drawn` is not those items that can be drawn".to_string());
        }
        let recorded = |item: &Item| {
            item.regions
                .as_ref()
                .is_some_and(|regions| !regions.programs.is_empty() || regions.workload.is_some())
        };
        let any = |kinds: &[Kind]| {
            let of_kind = |item: &Item| kinds.contains(&item.kind) || kinds.contains(&Kind::Traces) && recorded(item);
            self.items.iter().any(of_kind)
        };
        let sized = &[Kind::Times, Kind::Counts, Kind::Blocks][..];
        for (choices, kinds) in [
            (&[Choice::Size, Choice::Cache][..], sized),
            (&[Choice::Program], &[Kind::Grid, Kind::Traces]),
            (&[Choice::Cpus], &[Kind::Grid]),
            (&[Choice::Traces], &[Kind::Traces]),
        ] {
            for &choice in choices {
                if self.about.options.contains(&choice) != any(kinds) {
                    return Err(format!("`options` and the items do not agree on {}", choice.option()));
                }
            }
        }
        let of_traces = self.items.iter().filter_map(|item| item.traces.as_ref());
        for name in of_traces.flat_map(|traces| &traces.workloads) {
            if !self.about.workloads.iter().any(|workload| workload.name == *name) {
                return Err(format!("`{name}` is no workload of the paper"));
            }
        }
        if self.about.sizes.is_some() == self.about.options.contains(&Choice::Size) {
            return Err("either sizes can be chosen, or `sizes` says what they are".to_string());
        }
        Ok(())
    }
}

impl Choice {
    /// The option of the command line.
    pub fn option(self) -> &'static str {
        match self {
            Choice::Size => "--size",
            Choice::Cache => "--cache",
            Choice::Program => "--program",
            Choice::Cpus => "--cpus",
            Choice::Traces => "--traces",
        }
    }
}

impl Item {
    /// For recorded programs that run alone: their names.
    pub fn programs(&self) -> Option<Vec<&str>> {
        let programs = &self.regions.as_ref()?.programs;
        let names = programs.iter().map(|program| program.name.as_str());
        (!programs.is_empty()).then(|| names.collect())
    }

    /// Returns true if it can be drawn: times over block sizes, grids, and `memlat` over sizes.
    pub fn is_drawn(&self) -> bool {
        let of_regions = || self.regions.as_ref().is_some_and(|regions| regions.is_drawn());
        matches!(self.kind, Kind::Blocks | Kind::Grid) || of_regions()
    }
}

/// A paper by its name.
#[cfg(test)]
pub fn read(name: &str) -> Paper {
    let source = PAPERS.iter().find(|source| source.name == name).unwrap();
    source.read().unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::{Item, Kind};

    fn value(item: &Item, row: &str, column: usize) -> f64 {
        item.rows.iter().find(|r| r.name == row).unwrap().value(column).unwrap()
    }

    /// The paper's sums hold to its last digit; a number that was copied wrongly breaks one.
    #[test]
    fn the_papers_numbers_add_up() {
        let paper = read("philbin96");
        assert_eq!(paper.items.len(), 10);
        for item in paper.items.iter().filter(|item| item.kind == Kind::Counts) {
            // A column of our own has none of the paper's numbers.
            let printed = |&column: &usize| item.rows.iter().any(|row| row.value(column).is_some());
            assert!((0..item.columns.len()).filter(printed).count() >= 2, "{}", item.name);
            for column in (0..item.columns.len()).filter(printed) {
                let of = |row| value(item, row, column);
                let classes = of("L2 compulsory") + of("L2 capacity") + of("L2 conflict");
                let name = format!("{} {}", item.name, item.columns[column]);
                assert!((classes - of("L2 misses")).abs() <= 1.0, "{name}: classes");
                let rate = 100.0 * of("L1 misses") / (of("I fetches") + of("D references"));
                // The paper prints 4.747 as 4.8.
                assert!((rate - of("L1 rate")).abs() < 0.06, "{name}: L1 rate {rate}");
            }
        }
        let table1 = &paper.items[0];
        for column in 0..2 {
            let parts = value(table1, "Fork", column) + value(table1, "Run", column);
            assert!((parts - value(table1, "Total", column)).abs() < 1e-9);
        }
    }

    /// The statements of the paper's text about its tables, in its own words and numbers.
    #[test]
    fn the_text_agrees_with_the_tables() {
        let paper = read("philbin96");
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

    /// The statements of sections 4.2 and 4.3 about figures that are drawn without numbers.
    #[test]
    fn the_text_of_ding11_is_all_that_its_figures_print() {
        let paper = read("ding11");
        let printed = |name: &str| -> Vec<(String, f64)> {
            let item = paper.items.iter().find(|item| item.name == name).unwrap();
            let columns = item.columns.iter().enumerate();
            let of = |row: &crate::paper::Row, (at, column): (usize, &String)| Some((column.clone(), row.value(at)?));
            columns.filter_map(|at| of(&item.rows[0], at)).collect()
        };
        let expected = |of: &[(&str, f64)]| {
            of.iter()
                .map(|&(at, value)| (at.to_string(), value))
                .collect::<Vec<_>>()
        };
        assert_eq!(printed("figure5"), expected(&[("1 thread", 5.4), ("4 threads", 22.7)]));
        assert_eq!(printed("figure6"), []);
        assert_eq!(printed("figure8"), []);
        assert_eq!(
            printed("figure9"),
            expected(&[("1 thread", 16.0), ("2 threads", 31.0), ("4 threads", 32.0)])
        );
        assert_eq!(
            printed("figure10"),
            expected(&[("2 threads", 54.0), ("4 threads", 62.0)])
        );
        assert_eq!(printed("figure12"), expected(&[("1 thread", 50.0)]));
        assert_eq!(printed("figure13"), expected(&[("64K", 2.0)]));
    }

    /// Table 2 compared with itself and with sections 7 and 8.
    #[test]
    fn table_2_of_bugnion96_adds_up() {
        // SPEC's seconds of the SparcStation10, in the order of the table.
        const REFERENCE: [f64; 10] = [3700., 8600., 1400., 2400., 2500., 2200., 4100., 2100., 9600., 3000.];
        let paper = read("bugnion96");
        let table = paper.items.iter().find(|item| item.name == "table2").unwrap();
        let programs: Vec<&crate::paper::Row> = table.rows.iter().filter(|row| row.name != "SPEC95fp").collect();
        assert_eq!((programs.len(), table.columns.len()), (10, 9));
        for (column, name) in table.columns.iter().enumerate() {
            let ratios = programs
                .iter()
                .zip(REFERENCE)
                .map(|(row, time)| time / row.value(column).unwrap());
            let rating = (ratios.map(f64::ln).sum::<f64>() / 10.0).exp();
            let printed = value(table, "SPEC95fp", column);
            assert!((rating - printed).abs() < 0.05, "{name}: {rating} {printed}");
        }
        let of = |row: &str, column: &str| {
            value(
                table,
                row,
                table.columns.iter().position(|name| name == column).unwrap(),
            )
        };
        let faster = |row: &str, other: &str| of(row, &format!("{other} 8P")) / of(row, "CDPC 8P");
        let tenth = |times: f64| (times * 10.0).round() / 10.0;
        // Section 7: swim 1.4 and 2.6, tomcatv 1.3 and 2.2, applu 1.2 and 1.06.
        assert_eq!(
            (
                tenth(faster("swim", "bin hopping")),
                tenth(faster("swim", "page coloring"))
            ),
            (1.4, 2.6)
        );
        assert_eq!(
            (
                tenth(faster("tomcatv", "bin hopping")),
                tenth(faster("tomcatv", "page coloring"))
            ),
            (1.3, 2.2)
        );
        assert_eq!(tenth(faster("applu", "bin hopping")), 1.2);
        assert_eq!((faster("applu", "page coloring") * 100.0).round(), 106.0);
        // "improves the SPEC95fp rating by 8% over bin hopping and by 20% over page coloring"; the latter is 20.6.
        assert_eq!((faster("SPEC95fp", "bin hopping").recip() * 100.0).round(), 108.0);
        assert_eq!((faster("SPEC95fp", "page coloring").recip() * 100.0).floor(), 120.0);
        // "improves over the uniprocessor by 2.9 with four processors and by 4.2 with eight"
        assert_eq!(tenth(of("SPEC95fp", "CDPC 4P") / of("SPEC95fp", "CDPC 1P")), 2.9);
        assert_eq!(tenth(of("SPEC95fp", "CDPC 8P") / of("SPEC95fp", "CDPC 1P")), 4.2);
    }

    /// The numbers in the text about figures 6 to 9; and items that share cells request the same ones.
    #[test]
    fn the_text_of_bugnion96_is_all_that_its_figures_print() {
        let paper = read("bugnion96");
        let grid = |name: &str| {
            let item = paper.items.iter().find(|item| item.name == name).unwrap();
            item.grid.as_ref().filter(|_| item.kind == Kind::Grid).unwrap()
        };
        let said = |name: &str| -> Vec<(String, u32, f64)> {
            let gains = grid(name).gains.iter().flat_map(|gain| &gain.paper);
            gains
                .map(|said| (said.program.clone(), said.cpus, said.times))
                .collect()
        };
        let at = |program: &str, cpus, times| (program.to_string(), cpus, times);
        assert_eq!(said("figure6"), [at("tomcatv", 4, 1.29)]);
        assert_eq!(said("figure7"), []);
        assert_eq!(
            said("figure8"),
            [at("tomcatv", 4, 1.24), at("tomcatv", 4, 1.29), at("tomcatv", 4, 1.88)]
        );
        assert_eq!(
            said("figure9"),
            [
                at("tomcatv", 8, 1.3),
                at("swim", 8, 1.4),
                at("applu", 8, 1.2),
                at("tomcatv", 8, 2.2),
                at("swim", 8, 2.6),
                at("applu", 8, 1.06)
            ]
        );
        for other in ["figure2", "figure8"] {
            assert_eq!(grid(other).policies, grid("figure6").policies);
            assert_eq!(grid(other).machines[0].preset, grid("figure6").machines[0].preset);
        }
        assert_eq!(grid("table2").policies, grid("figure9").policies);
    }

    #[test]
    fn a_figure_of_pairs_has_the_runs_of_its_counts() {
        let paper = read("ding11");
        let pairs: Vec<&Item> = paper.items.iter().filter(|item| item.kind == Kind::Pairs).collect();
        assert_eq!(pairs.len(), 4);
        for item in pairs {
            let counts = item.counts.as_deref().unwrap();
            let counts = paper.items.iter().find(|other| other.name == counts).unwrap();
            assert_eq!((counts.kind, &counts.columns), (Kind::Saved, &item.columns));
            assert_eq!(counts.job.program, item.job.program);
        }
    }
}
