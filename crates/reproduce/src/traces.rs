//! Policies of homes over the misses of recorded programs (Verghese96, its tables and figures of traces).
//!
//! A *workload* is a trace that `make traces` makes. Its caches are simulated once on the item's machine; every *bar*,
//! a policy with its parameters, then decides over that single stream of misses, and so do the bars of all other items
//! of the paper with the same machine. A *measure* is a value of a bar. A *curve* is a property of the stream itself.

mod claims;
mod measure;
mod streams;

use std::rc::Rc;

use machine::Machine;
use policy::Name;
use serde::Deserialize;
use sim::Scheduling;

use crate::error::ReproduceError;
use crate::line::Line;
use crate::paper::{Item, Row};
use crate::reproduce::{Reproduction, Section};
use crate::several::Several;

pub use claims::Claim;
pub use measure::Measure;
pub use streams::{CHAINS, HOT, Replayed};

/// The contents of an item of this kind.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traces {
    /// The preset that the streams are for.
    pub machine: String,
    /// Its memory, if cpus wait for one another there. All references of each bar are then simulated.
    pub contention: Option<Contention>,
    /// The cost of a page that is moved, copied or collapsed.
    pub page_us: u32,
    pub workloads: Vec<String>,
    /// The measure in each of the item's columns, for every workload and bar.
    #[serde(default)]
    pub measures: Vec<Measure>,
    #[serde(rename = "bar", default)]
    pub bars: Vec<Bar>,
    /// Instead of bars: a curve of each workload over the item's columns, which are numbers.
    pub curve: Option<Curve>,
    #[serde(rename = "claim", default)]
    pub claims: Vec<Claim>,
}

/// Memory that a node's misses occupy one after the other: the time of a miss on an idle node, and the node's
/// throughput.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contention {
    pub local_ns: f64,
    pub remote_ns: f64,
    pub bandwidth_gbps: f64,
}

/// A policy with its parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bar {
    pub name: String,
    pub policy: Name,
    /// Parameters of the policy, `trigger=64`.
    #[serde(default)]
    pub set: Vec<String>,
    /// Half of the frames that it takes beyond one for each page are available.
    #[serde(default)]
    pub half_memory: bool,
}

/// A property of a stream itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Curve {
    /// The percentage of data misses in read chains of at least this many reads.
    Chains,
    /// The percentage of cache misses on this many percent of the pages: those with most cache misses, and those with
    /// most TLB misses.
    Hot,
}

/// A workload of the paper, and the paper's scheduling of it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Its folder in `workloads/servers`.
    pub name: String,
    /// How its threads get cpus while they run, `priority` or `next,every=100ms`; none if the paper's processes are
    /// pinned.
    #[serde(default)]
    pub schedule: Scheduling,
}

/// The rows of a curve of a workload.
pub(crate) fn rows(curve: Curve, workload: &str) -> Vec<String> {
    match curve {
        Curve::Chains => vec![workload.to_string()],
        Curve::Hot => ["cache misses", "TLB misses"]
            .map(|by| format!("{workload}, {by}"))
            .to_vec(),
    }
}

impl Traces {
    /// The requirements of every file.
    pub(crate) fn check(&self, columns: &[String]) -> Result<(), String> {
        let streams = self.curve.is_some()
            || self.bars.iter().any(|bar| bar.half_memory)
            || self.measures.iter().any(|measure| measure.is_of_stream());
        if self.contention.is_some() && streams {
            return Err(
                "curves, half of the memory and kinds of misses are of streams, and contention has none".to_string(),
            );
        }
        match self.curve {
            None if self.bars.is_empty() => return Err("traces have bars, or a curve".to_string()),
            None if self.measures.len() != columns.len() => {
                return Err(format!(
                    "{} measures for {} columns",
                    self.measures.len(),
                    columns.len()
                ));
            }
            None => {}
            Some(_) if !self.bars.is_empty() => return Err("a curve has no bars".to_string()),
            Some(curve) => {
                let known = match curve {
                    Curve::Chains => CHAINS.iter().map(u64::to_string).collect::<Vec<_>>(),
                    Curve::Hot => HOT.iter().map(u64::to_string).collect(),
                };
                if let Some(other) = columns.iter().find(|column| !known.contains(column)) {
                    return Err(format!(
                        "the curve is not known at `{other}`, but at {}",
                        known.join(", ")
                    ));
                }
            }
        }
        self.claims.iter().try_for_each(|claim| claim.check(self, columns))
    }

    /// The machine that the streams are for.
    pub(crate) fn described(&self) -> Result<Machine, ReproduceError> {
        let mut machine = machine::load(&self.machine)?;
        if let Some(contention) = &self.contention {
            machine.memory.local_ns = contention.local_ns;
            machine.memory.remote_ns = contention.remote_ns;
            machine.memory.dirty_remote_ns = contention.remote_ns;
            machine.memory.bandwidth_gbps = contention.bandwidth_gbps;
        }
        Ok(machine)
    }

    pub(crate) fn bar(&self, name: &str) -> Option<&Bar> {
        self.bars.iter().find(|bar| bar.name == name)
    }

    /// The first bar, which runs are compared with if the paper's are: round-robin.
    pub(crate) fn baseline(&self) -> Option<&Bar> {
        self.bars.first()
    }
}

impl Reproduction<'_> {
    /// An item over traces.
    pub(crate) fn traces(&mut self, item: &Item, section: &mut Section) -> Result<(), ReproduceError> {
        let Some(traces) = &item.traces else {
            return Ok(());
        };
        let only = &self.options.only;
        let wanted = traces.workloads.iter();
        let wanted: Vec<&String> = wanted.filter(|name| only.is_empty() || only.contains(name)).collect();
        let mut described = Vec::new();
        for name in &wanted {
            let each: Vec<Result<Rc<Replayed>, String>> = (1..=self.recordings_there(name))
                .map(|recording| {
                    self.replayed(name, recording, traces)
                        .map_err(|error| error.to_string())
                })
                .collect();
            match &each[0] {
                Err(reason) => section.failures.push(format!("{name}: {reason}")),
                Ok(first) => described.push(first.described(name, each.len())),
            }
            let lines = match traces.curve {
                Some(curve) => self.curve(item, name, curve, &each),
                None => self.bars_of(item, traces, name, &each),
            };
            section.lines.extend(lines);
        }
        section.lines.extend(self.others(item, traces, &wanted));
        for claim in &traces.claims {
            for conclusion in self.conclusions(item, traces, claim, &wanted) {
                section.notes.push(conclusion.note());
            }
        }
        section
            .notes
            .extend(item.says.iter().map(|says| format!("the paper: {says}")));
        let how = match &traces.contention {
            None => format!(
                "one stream of misses of each workload on {}, every policy over it",
                traces.machine
            ),
            Some(contention) => format!(
                "all references under each policy on {}, with {} ns for a local miss and {} for a remote one where nobody else asks, \
                 and {} GB/s of each node",
                traces.machine, contention.local_ns, contention.remote_ns, contention.bandwidth_gbps
            ),
        };
        section.notes.push(format!(
            "{how}; {} us for each page that is moved, copied or collapsed; our workloads are not the paper's: compare the order, not \
             the figures",
            traces.page_us
        ));
        section.notes.extend(described);
        Ok(())
    }

    fn bars_of(
        &self,
        item: &Item,
        traces: &Traces,
        workload: &str,
        each: &[Result<Rc<Replayed>, String>],
    ) -> Vec<Line> {
        let of = |bar: &Bar| {
            self.row(item, &format!("{workload}, {}", bar.name), |column| {
                let measure = traces.measures[column];
                let ours = each.iter().map(|replayed| {
                    let replayed = replayed.as_ref().map_err(Clone::clone)?;
                    measure.of(replayed, traces, bar)
                });
                (measure.unit(), Several(ours.collect()))
            })
        };
        traces.bars.iter().flat_map(of).collect()
    }

    /// Rows of the paper without a bar, if the item says why there are none of ours.
    fn others(&self, item: &Item, traces: &Traces, wanted: &[&String]) -> Vec<Line> {
        let Some(why) = &item.absent else { return Vec::new() };
        let is_bar = |row: &str| {
            let (workload, bar) = row.split_once(", ").unwrap_or((row, ""));
            !wanted.iter().any(|name| *name == workload) || traces.bar(bar).is_some()
        };
        let others = item.rows.iter().filter(|row| !is_bar(&row.name));
        let of = |row: &Row| {
            self.row(item, &row.name, |column| {
                (traces.measures[column].unit(), Several(vec![Err(why.clone())]))
            })
        };
        others.flat_map(of).collect()
    }

    fn curve(&self, item: &Item, workload: &str, curve: Curve, each: &[Result<Rc<Replayed>, String>]) -> Vec<Line> {
        let rows = rows(curve, workload);
        let of = |(at, name): (usize, &String)| {
            self.row(item, name, |column| {
                let ours = each.iter().map(|replayed| {
                    let replayed = replayed.as_ref().map_err(Clone::clone)?;
                    replayed.at(curve, at, &item.columns[column])
                });
                (item.unit.as_str(), Several(ours.collect()))
            })
        };
        rows.iter().enumerate().flat_map(of).collect()
    }

    /// A row of the item beside the paper's of the same name: `ours` has the unit and the numbers of each column.
    fn row<'u>(&self, item: &Item, name: &str, ours: impl Fn(usize) -> (&'u str, Several)) -> Vec<Line> {
        let row = item.rows.iter().find(|row| row.name == name);
        let columns = item.columns.iter().enumerate();
        let line = |(column, title): (usize, &String)| {
            let (unit, ours) = ours(column);
            let place = self.place(item, name, title, unit);
            Line::of_several(place, row.and_then(|row| row.value(column)), &ours)
        };
        columns.map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::paper::{Item, Paper};

    fn table<'p>(paper: &'p Paper, name: &str) -> &'p Item {
        paper.items.iter().find(|item| item.name == name).unwrap()
    }

    fn of(item: &Item, row: &str, column: &str) -> f64 {
        let column = item.columns.iter().position(|name| name == column).unwrap();
        let row = item.rows.iter().find(|other| other.name == row).unwrap();
        row.value(column).unwrap()
    }

    /// The sums of the paper hold to its last digit; a number that was copied wrongly breaks one.
    #[test]
    fn the_papers_numbers_add_up() {
        let paper = crate::papers::read("verghese96");
        let (table5, table7) = (table(&paper, "table5"), table(&paper, "table7"));
        for workload in ["engineering", "raytrace", "splash", "database"] {
            // Time that is neither stall nor overhead is the same under both policies.
            let user = |bar: &str| {
                let of = |column| of(table5, &format!("{workload}, {bar}"), column);
                of("run") - of("stall") - of("overhead")
            };
            assert!((user("RR") - user("Base")).abs() < 1e-6, "{workload}");
        }
        for (workload, percent) in [
            ("engineering", [33., 11.]),
            ("raytrace", [19., 4.]),
            ("splash", [11., 0.]),
        ] {
            let pages = of(table5, &format!("{workload}, RR"), "pages, maximum");
            for (bar, percent) in ["unlimited", "half"].iter().zip(percent) {
                let most = of(table7, &format!("{workload}, {bar}"), "pages, maximum");
                assert_eq!((100.0 * (most / pages - 1.0)).round(), percent, "{workload} {bar}");
            }
        }
        let sum = |item: &str, row: &str, columns: &[&str]| -> f64 {
            columns.iter().map(|column| of(table(&paper, item), row, column)).sum()
        };
        let all = table(&paper, "table9").columns.clone();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        for row in ["engineering", "raytrace", "splash"] {
            // Those of splash are 96.9 percent.
            assert!((sum("table9", row, &all) - 100.0).abs() < 3.2, "{row}");
            let steps = [
                "interrupt",
                "decision",
                "allocation",
                "links and mapping",
                "TLB flush",
                "copying",
                "end",
            ];
            let row = format!("{row}, replicate");
            let total = of(table(&paper, "table8"), &row, "total");
            assert!((sum("table8", &row, &steps) - total).abs() < 0.2, "{row}");
        }
        // Figure 6.1 has Table 5's seconds in percent of round-robin's.
        let base = of(table(&paper, "figure6.1"), "splash, Base", "run");
        let normal = 100.0 * of(table5, "splash, Base", "run") / of(table5, "splash, RR", "run");
        assert!((base - normal).abs() < 0.05);
    }

    /// An item's contention belongs to its machine, and its bars differ from those of items without.
    #[test]
    fn contention_makes_another_machine() {
        let paper = crate::papers::read("verghese96");
        let of = |item: &str| table(&paper, item).traces.as_ref().unwrap().described().unwrap();
        assert!(of("table11").memory.is_contended() && !of("table12").memory.is_contended());
        assert_eq!(of("table10"), of("table11"));
        assert!(of("table11").check().is_ok());
        assert_eq!(of("table11").memory.remote_ns, 1330.0);
        let mut other = table(&paper, "table11").traces.clone().unwrap();
        other.bars[1].half_memory = true;
        assert!(other.check(&table(&paper, "table11").columns).is_err());
    }

    /// A claim of shorter misses holds of the paper's own numbers.
    #[test]
    fn claims_of_latency_hold_in_the_paper() {
        let paper = crate::papers::read("verghese96");
        let item = table(&paper, "table11");
        for claim in &item.traces.as_ref().unwrap().claims {
            let super::claims::Kind::Sooner { of: ours, over, node } = &claim.kind else {
                panic!("{claim:?}");
            };
            let column = match node {
                super::measure::Node::Local => "local",
                super::measure::Node::Remote => "remote",
            };
            for workload in &claim.workloads {
                let at = |bar: &str| of(item, &format!("{workload}, {bar}"), column);
                assert!(at(ours) < at(over), "{workload}, {column}");
            }
        }
    }

    /// Bars that are the same in several items are replayed once: their definitions are equal.
    #[test]
    fn the_base_policy_is_one_in_all_items() {
        let paper = crate::papers::read("verghese96");
        let made = |item: &str, bar: &str| {
            let traces = table(&paper, item).traces.as_ref().unwrap();
            super::streams::key(traces.bar(bar).unwrap(), traces.page_us)
        };
        let base = made("figure6.1", "Base");
        for (item, bar) in [
            ("table5", "Base"),
            ("figure6.5", "128"),
            ("figure6.6", "32"),
            ("figure6.7", "100 ms"),
            ("table7", "unlimited"),
            ("figure7.1", "FC"),
            ("table12", "trace"),
        ] {
            assert_eq!(made(item, bar), base, "{item}");
        }
        assert_ne!(made("figure6.3", "Base"), base);
        assert_ne!(made("table7", "half"), base);
    }
}
