//! The cost of giving a data set a slot (Ding11, section 4.3, figure 13).
//!
//! [`measure`] is the only entry point, for the figure here and for other comparisons.

use std::collections::BTreeMap;
use std::time::Instant;

use live::slots::{Application, ColorsFrom, Kind, Start, ThreadGroup, Through};
use sys::memory::{Area, Size};

use crate::error::ReproduceError;
use crate::line::Line;
use crate::paper::Item;
use crate::reproduce::{Reproduction, Section, rounds_in_words};
use crate::several::Several;
use crate::watch::Step;

/// The data set.
const BYTES: usize = 32 << 20;

/// The finder of the frames, and whether the data set has frames already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// This process collects frames itself; the data was written to.
    Own,
    /// The daemon has them available; the data was written to.
    Daemon,
    /// The daemon, and the data was never touched.
    DaemonUntouched,
}

impl Way {
    const ALL: [Way; 3] = [Way::Own, Way::Daemon, Way::DaemonUntouched];

    /// The row of the figure.
    fn row(self) -> &'static str {
        match self {
            Way::Own => "without daemon",
            Way::Daemon => "with daemon",
            Way::DaemonUntouched => "with daemon, untouched",
        }
    }

    fn through(self) -> Through {
        match self {
            Way::Own => Through::Own,
            Way::Daemon | Way::DaemonUntouched => Through::Daemon,
        }
    }
}

/// Seconds, round by round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlotCost {
    /// By way and bytes of the slot, or why there is none.
    pub slots: BTreeMap<(Way, u64), Result<Vec<f64>, String>>,
    /// Taking 32 MiB from Linux, page fault by page fault.
    pub allocate: Vec<f64>,
    /// Copying 32 MiB to memory that has frames.
    pub copy: Vec<f64>,
    /// The mechanism that moved the pages, by way.
    pub means: BTreeMap<Way, String>,
}

/// Measures slots of these sizes, `rounds` times in turn, each time on new memory of 32 MiB in pages of 4 KiB.
pub fn measure(sizes: &[u64], rounds: usize) -> Result<SlotCost, ReproduceError> {
    let host = |error: &dyn std::fmt::Display| ReproduceError::Host(format!("32 MiB of memory: {error}"));
    let mut cost = SlotCost::default();
    let mut source = touched().map_err(|error| host(&error))?;
    for _ in 0..rounds.max(1) {
        let begun = Instant::now();
        let mut target = touched().map_err(|error| host(&error))?;
        cost.allocate.push(begun.elapsed().as_secs_f64());
        let begun = Instant::now();
        let pages = source.pages();
        target.copy(0, &mut source, 0, pages);
        cost.copy.push(begun.elapsed().as_secs_f64());
        drop(target);
        for way in Way::ALL {
            for &bytes in sizes {
                let all = cost.slots.entry((way, bytes)).or_insert_with(|| Ok(Vec::new()));
                // A repeated attempt would fail again.
                let Ok(so_far) = all else { continue };
                match give(way, bytes) {
                    Ok((seconds, means)) => {
                        so_far.push(seconds);
                        cost.means.insert(way, means);
                    }
                    Err(reason) => *all = Err(reason),
                }
            }
        }
    }
    Ok(cost)
}

/// 32 MiB in pages of 4 KiB, each written to.
fn touched() -> std::io::Result<Area> {
    let area = untouched()?;
    for page in 0..area.pages() {
        area.set_word(page, 0, page as u64 + 1);
    }
    Ok(area)
}

fn untouched() -> std::io::Result<Area> {
    Area::map(BYTES, Size::Small)
}

/// Gives one data set a slot: the time, and the mechanism.
fn give(way: Way, bytes: u64) -> Result<(f64, String), String> {
    let area = match way {
        Way::DaemonUntouched => untouched(),
        Way::Own | Way::Daemon => touched(),
    };
    let mut area = area.map_err(|error| error.to_string())?;
    let start = Start {
        colors: ColorsFrom::Measured,
        through: way.through(),
        ..Start::default()
    };
    let program = Application::start(start).map_err(|error| error.to_string())?;
    if program.means().colors.is_none() {
        // With ways no page moves, and there is no cost to measure.
        return Err(program.means().engine.clone());
    }
    let means = format!("{}; {}", program.means().ledger, program.means().engine);
    // A note is one line.
    let means = means.lines().collect::<Vec<_>>().join("; ");
    let done = (|| {
        let begun = Instant::now();
        let slot = program.slot(bytes, Kind::Private)?;
        let mut data = program.data_set(&ThreadGroup::all())?;
        data.add(area.as_mut_slice())?;
        data.allocate(Some(&slot))?;
        let seconds = begun.elapsed().as_secs_f64();
        data.free()?;
        program.exit()?;
        Ok::<f64, live::slots::Error>(seconds)
    })();
    let seconds = done.map_err(|error| error.to_string())?;
    if way != Way::DaemonUntouched && (0..area.pages()).any(|page| area.word(page, 0) != page as u64 + 1) {
        return Err("the data set was changed".to_string());
    }
    Ok((seconds, means))
}

impl Reproduction<'_> {
    /// The figure of overheads.
    pub(crate) fn slot_cost(&mut self, item: &Item, section: &mut Section) -> Result<(), ReproduceError> {
        let rounds = self.options.rounds.unwrap_or(if self.options.full { 21 } else { 5 });
        (self.watch)(Step::Measuring { what: &item.name });
        let sizes: Vec<u64> = item
            .columns
            .iter()
            .filter_map(|column| results::quantities::bytes(column).ok())
            .collect();
        let cost = measure(&sizes, rounds)?;
        let mut rows = |name: &str, unit: &str, value: &dyn Fn(u64) -> Several| {
            let paper = item.rows.iter().find(|row| row.name == name);
            for (index, (column, &bytes)) in item.columns.iter().zip(&sizes).enumerate() {
                let paper = paper.and_then(|row| row.value(index));
                let place = self.place(item, name, column, unit);
                section.lines.push(Line::of_several(place, paper, &value(bytes)));
            }
        };
        let seconds = |rounds: &[f64]| Several(rounds.iter().copied().map(Ok).collect());
        let of = |way: Way, bytes: u64| match cost.slots.get(&(way, bytes)) {
            Some(Ok(rounds)) => seconds(rounds),
            Some(Err(reason)) => Several(vec![Err(reason.clone())]),
            None => Several(vec![Err("not measured".into())]),
        };
        for way in Way::ALL {
            rows(way.row(), &item.unit, &|bytes| of(way, bytes));
        }
        rows("allocate", &item.unit, &|_| seconds(&cost.allocate));
        rows("copy", &item.unit, &|_| seconds(&cost.copy));
        let both = seconds(&cost.allocate).with(&seconds(&cost.copy), |one, other| Ok(one? + other.clone()?));
        // The paper's 0.1 s for 256 KB are twice its 0.03 and 0.02.
        rows("with daemon, of allocate and copy", "times", &|bytes| {
            of(Way::Daemon, bytes).with(&both, |one, both| Ok(one? / both.clone()?))
        });
        section.notes.push(format!(
            "measured here, seconds on the wall, {}: a data set of 32 MiB in pages of 4 KiB",
            rounds_in_words(rounds)
        ));
        for (way, means) in &cost.means {
            section.notes.push(format!("{}: {means}", way.row()));
        }
        section
            .notes
            .extend(item.says.iter().map(|says| format!("the paper: {says}")));
        Ok(())
    }
}
