//! Figures of times with cache slots and without (Ding11, figures 5, 7, 9 and 11), measured if page colors work here.

use live::discovery::{Unknown, discover};
use live::{Colors, Source};

use crate::counts::percent_saved;
use crate::error::ReproduceError;
use crate::line::Line;
use crate::paper::{Item, Run};
use crate::programs::{Build, Program, Programs};
use crate::reproduce::{Reproduction, Section, rounds_in_words};
use crate::saved::Saved;
use crate::several::Several;
use crate::watch::Step;

/// One program without slots and with them, run in turn.
struct Pair {
    without: Vec<f64>,
    with: Vec<f64>,
}

/// The cache that has the colors here.
struct Ground {
    bytes: u64,
    colors: u64,
    /// Cpus that share an instance of it.
    cpus: u32,
    described: String,
}

impl Reproduction<'_> {
    /// A figure of times: measured with as many threads as there are cpus, simulated with all.
    pub(crate) fn pairs(&mut self, item: &Item, section: &mut Section) -> Result<(), ReproduceError> {
        let programs = Programs::find(self.options.programs.as_deref())?;
        let rounds = self.options.rounds.unwrap_or(if self.options.full { 15 } else { 5 });
        let ground = ground();
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let mut pairs: Vec<Result<Pair, String>> = Vec::new();
        for (index, run) in item.runs.iter().enumerate() {
            // Runs are of 1, 2, 4 ... threads.
            pairs.push(match &ground {
                Err(reason) => Err(reason.clone()),
                Ok(_) if 1 << index > cpus => Err(format!("this machine has {cpus} cpus")),
                Ok(ground) => self.pair(&programs, item, run, ground, rounds).map_err(|error| {
                    section.failures.push(format!("{}: {error}", run.of));
                    error.to_string()
                }),
            });
        }
        // Round by round: other load on the machine in a round affected both.
        let mut rows = |name: &str, unit: &str, value: &dyn Fn(f64, f64) -> f64| {
            let paper = item.rows.iter().find(|row| row.name == name);
            for (index, (column, pair)) in item.columns.iter().zip(&pairs).enumerate() {
                let paper = paper.and_then(|row| row.value(index));
                let ours = Several::of(pair.as_ref().map_err(Clone::clone), |pair| {
                    let rounds = pair.without.iter().zip(&pair.with);
                    rounds.map(|(without, with)| value(*without, *with)).collect()
                });
                let place = self.place(item, name, column, unit);
                section.lines.push(Line::of_several(place, paper, &ours));
            }
        };
        rows("time saved", &item.unit, &percent_saved);
        if ground.is_ok() {
            rows("without slots", "seconds", &|without, _| without);
            rows("with slots", "seconds", &|_, with| with);
        }
        section.notes.push(match &ground {
            Ok(ground) => format!(
                "measured here: seconds on the wall, {}, in turn; {}",
                rounds_in_words(rounds),
                ground.described
            ),
            Err(reason) => format!("not measured, simulated only: {reason}"),
        });
        self.simulated(&programs, item, section);
        section
            .notes
            .extend(item.says.iter().map(|says| format!("the paper: {says}")));
        Ok(())
    }

    /// The simulated times of the runs of the figure of misses.
    fn simulated(&self, programs: &Programs, item: &Item, section: &mut Section) {
        let counts = item.counts.as_deref().unwrap_or_default();
        let Some(counts) = self.paper.items.iter().find(|other| other.name == counts) else {
            return;
        };
        for (run, column) in counts.runs.iter().zip(&item.columns) {
            let (both, line) = self.both(programs, counts, run);
            if let Err(reason) = &both {
                section.failures.push(format!("{column}: {reason}"));
            }
            let paper = item.rows.iter().find(|row| row.name == "time saved");
            let at = item.columns.iter().position(|other| other == column);
            let paper = paper.and_then(|row| row.value(at?));
            let place = self.place(item, "simulated time saved", column, &item.unit);
            let ours = Several::of(both, |both| both.iter().map(Saved::time).collect());
            section.lines.push(Line::of_several(place, paper, &ours).of_run(&line));
        }
    }

    fn pair(
        &self,
        programs: &Programs,
        item: &Item,
        run: &Run,
        ground: &Ground,
        rounds: usize,
    ) -> Result<Pair, ReproduceError> {
        let program = |version: &str| -> Result<Program, ReproduceError> {
            let scale = item.scales.iter().rfind(|scale| scale.cache <= ground.bytes);
            let mut arguments: Vec<String> = scale.map(|scale| scale.arguments.clone()).unwrap_or_default();
            arguments.extend(run.arguments.iter().cloned());
            let sizes = [
                ("--cache", ground.bytes),
                ("--colors", ground.colors),
                ("--sharing", u64::from(ground.cpus)),
            ];
            arguments.extend(
                sizes
                    .iter()
                    .flat_map(|(name, value)| [name.to_string(), value.to_string()]),
            );
            let name = item.job.program.as_deref().unwrap_or_default();
            programs.program(Build::Time, name, version, arguments)
        };
        let (plain, slots) = (program("plain")?, program("slots")?);
        let mut pair = Pair {
            without: Vec::new(),
            with: Vec::new(),
        };
        let what = format!("{} {}", item.name, run.of);
        for round in 0..rounds.max(1) {
            (self.watch)(Step::Timing {
                what: &what,
                run: 2 * round,
                runs: 2 * rounds,
            });
            // The order alternates, so that other load on the machine affects both alike.
            let (mut one, mut other) = ((&plain, &mut pair.without), (&slots, &mut pair.with));
            if round % 2 == 1 {
                std::mem::swap(&mut one, &mut other);
            }
            for (program, times) in [one, other] {
                times.push(program.run()?.seconds);
            }
        }
        Ok(pair)
    }
}

/// The colors that the probe validated, or why there are none.
fn ground() -> Result<Ground, String> {
    let colors: Colors = discover(Unknown::Measure).map_err(|error| error.to_string())?;
    let bytes = colors.color_bytes << colors.bits;
    let host = machine::host(&sys::Root::default()).map_err(|error| error.to_string())?;
    let cache = host.machine.caches.iter().find(|cache| cache.name == colors.cache);
    let source = match colors.source {
        Source::Validated => "validated by timing",
        Source::Forced => "forced, not validated",
    };
    Ok(Ground {
        bytes,
        colors: 1 << colors.bits,
        cpus: cache.map_or(1, |cache| cache.cpus_per_instance.max(1)),
        described: format!(
            "{} colors of {} in {}, {source}; sizes by that cache",
            1u64 << colors.bits,
            report::bytes(colors.color_bytes),
            colors.cache
        ),
    })
}
