//! Progress of long work: on standard error, and only if that is a terminal.

use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::console;

/// Before this has passed, no time is estimated, and nothing is shown beside a recorded program.
const PATIENCE: Duration = Duration::from_secs(2);

static HIDDEN: AtomicBool = AtomicBool::new(false);

/// Shows nothing from now on.
pub fn hide() {
    HIDDEN.store(true, Ordering::Relaxed);
}

fn is_hidden() -> bool {
    HIDDEN.load(Ordering::Relaxed)
}

/// Work of known length: a bar with the remaining time, estimated from the rate so far.
pub fn known(what: &str, length: u64) -> ProgressBar {
    let bar = shown(ProgressBar::new(length));
    if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:30}] {percent:>3}%{rate}{left}") {
        bar.set_style(
            style
                .with_key("rate", rate)
                .with_key("left", left)
                .progress_chars("█▉▊▋▌▍▎▏ "),
        );
    }
    start(bar, what)
}

/// Simulations one after another or in parallel, each of a length that is known when it begins.
#[derive(Default)]
pub struct Simulations(Mutex<Option<ProgressBar>>);

impl Simulations {
    pub fn step(&self, progress: advise::Progress) {
        let Ok(mut bar) = self.0.lock() else { return };
        match progress {
            advise::Progress::Begins { references } => {
                // Another simulation in progress uses the same bar.
                match &*bar {
                    Some(bar) if Some(bar.position()) < bar.length() => bar.inc_length(references),
                    _ => {
                        if let Some(bar) = bar.replace(known("simulating", references)) {
                            bar.finish_and_clear();
                        }
                    }
                }
            }
            advise::Progress::Done { references } => {
                if let Some(bar) = &*bar {
                    bar.inc(references);
                }
            }
        }
    }

    pub fn finish(&self) {
        if let Some(bar) = self.0.lock().ok().and_then(|mut bar| bar.take()) {
            bar.finish_and_clear();
        }
    }
}

/// Work of unknown length: shows only what was done so far.
pub fn unknown(what: &str) -> ProgressBar {
    start(spinner(shown(ProgressBar::no_length())), what)
}

/// An option that would shorten a long recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shorter {
    /// Recording a part of the run, for a trace.
    #[default]
    Part,
    /// A time budget, for an advice.
    Budget,
    /// Nothing: the option was given.
    Nothing,
}

/// References per second of an advice with all simulations, on a slow machine.
pub const ADVISED_A_SECOND: f64 = 1.5e6;

/// A recording is long after this many references, or after this time.
const LONG_REFERENCES: u64 = 100_000_000;
const LONG: Duration = Duration::from_secs(20);

impl Shorter {
    /// The hint about a recording of this length, once it is long.
    fn advice(self, references: u64, elapsed: Duration) -> Option<String> {
        if self == Shorter::Nothing || (references < LONG_REFERENCES && elapsed < LONG) {
            return None;
        }
        let so_far = format!(
            "{} references in {} so far; programs take 5 to 60 times as long while they are recorded as by themselves, and how \
             long this one goes on is not known",
            report::count(references),
            HumanDuration(elapsed)
        );
        let simulated = Duration::from_secs_f64(references as f64 / ADVISED_A_SECOND);
        Some(match self {
            Shorter::Budget => format!(
                "{so_far}. Advice on what there is now takes about {} more. `--budget 60s` keeps all of it to a minute; \
                 Ctrl-C ends the recording and gives advice on what there is, twice ends at once",
                HumanDuration(simulated)
            ),
            _ => format!(
                "{so_far}. `--duration 30s` or `--windows 10 --window 5M` records a part of it; `domicile advise --budget 60s` \
                 takes a minute for all"
            ),
        })
    }
}

/// The progress of a recording, shown only if the recording is long.
pub struct Recording {
    bar: ProgressBar,
    begun: Instant,
    /// The hint that was not printed yet.
    shorter: Shorter,
}

impl Recording {
    pub fn begin(shorter: Shorter) -> Self {
        Recording {
            bar: spinner(ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden())),
            begun: Instant::now(),
            // The hint is for a user at a terminal.
            shorter: match std::io::stderr().is_terminal() && !is_hidden() {
                true => shorter,
                false => Shorter::Nothing,
            },
        }
    }

    pub fn step(&mut self, progress: capture::Progress) {
        let advice = self.shorter.advice(progress.references, self.begun.elapsed());
        if let Some(advice) = advice.filter(|_| !progress.finishing) {
            self.shorter = Shorter::Nothing;
            self.bar.suspend(|| console::note(advice));
        }
        if !is_hidden() && self.bar.is_hidden() && self.begun.elapsed() >= PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        let what = if progress.finishing {
            "reading symbols"
        } else {
            "recording"
        };
        self.bar.set_message(format!(
            "{what}: {} references, {} written",
            report::count(progress.references),
            report::bytes(progress.bytes)
        ));
        self.bar.tick();
    }

    pub fn end(self) {
        self.bar.finish_and_clear();
    }
}

fn shown(bar: ProgressBar) -> ProgressBar {
    if is_hidden() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar
}

fn spinner(bar: ProgressBar) -> ProgressBar {
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}, {elapsed}") {
        bar.set_style(style);
    }
    bar
}

fn start(bar: ProgressBar, what: &str) -> ProgressBar {
    bar.set_message(what.to_string());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn rate(state: &ProgressState, text: &mut dyn Write) {
    let rate = state.per_sec();
    if state.pos() > 0 && rate.is_finite() {
        // A failed write only leaves the text out.
        let _ = write!(text, ", {} references/s", report::count(rate as u64));
    }
}

fn left(state: &ProgressState, text: &mut dyn Write) {
    let _ = match state.pos() > 0 && state.elapsed() >= PATIENCE {
        true => write!(text, ", about {:#} left", HumanDuration(state.eta())),
        false => Ok(()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_recording_says_what_it_may_take_and_what_is_shorter() {
        let after = |shorter: Shorter, references, seconds| shorter.advice(references, Duration::from_secs(seconds));
        assert_eq!(after(Shorter::Budget, 99_999_999, 19), None);
        assert_eq!(after(Shorter::Nothing, 1 << 40, 1 << 20), None);
        for (references, seconds) in [(100_000_000, 1), (3, 20)] {
            let said = after(Shorter::Budget, references, seconds).unwrap();
            assert!(said.contains("`--budget 60s`") && said.contains("Ctrl-C"), "{said}");
            let said = after(Shorter::Part, references, seconds).unwrap();
            assert!(said.contains("--duration") && said.contains("--windows"), "{said}");
        }
        let said = after(Shorter::Budget, 180_000_000, 21).unwrap();
        assert!(
            said.contains("180 M references in 21 seconds") && said.contains("about 2 minutes more"),
            "{said}"
        );
    }
}
