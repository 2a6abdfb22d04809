//! Progress of long work: on standard error, and only where a person looks at it.

use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Before this has passed no time is estimated, and a program that is recorded has the terminal for itself.
const PATIENCE: Duration = Duration::from_secs(2);

static HIDDEN: AtomicBool = AtomicBool::new(false);

/// Shows nothing from now on.
pub fn hide() {
    HIDDEN.store(true, Ordering::Relaxed);
}

fn is_hidden() -> bool {
    HIDDEN.load(Ordering::Relaxed)
}

/// Work whose length is known: a bar with the time that is left, estimated from the rate so far.
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

/// Simulations one after another, each of a length that is known when it begins.
#[derive(Default)]
pub struct Simulations(Mutex<Option<ProgressBar>>);

impl Simulations {
    pub fn step(&self, progress: advise::Progress) {
        let Ok(mut bar) = self.0.lock() else { return };
        match progress {
            advise::Progress::Begins { references } => {
                if let Some(bar) = bar.replace(known("simulating", references)) {
                    bar.finish_and_clear();
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

/// Work that ends when it ends: what was done so far, and no promise.
pub fn unknown(what: &str) -> ProgressBar {
    start(spinner(shown(ProgressBar::no_length())), what)
}

/// A recording: as long as the program takes, and seen only if that is long.
pub struct Recording {
    bar: ProgressBar,
    begun: Instant,
}

impl Recording {
    pub fn begin() -> Self {
        Recording {
            bar: spinner(ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden())),
            begun: Instant::now(),
        }
    }

    pub fn step(&self, progress: capture::Progress) {
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
        // What cannot be written cannot be shown either.
        let _ = write!(text, ", {} references/s", report::count(rate as u64));
    }
}

fn left(state: &ProgressState, text: &mut dyn Write) {
    let _ = match state.pos() > 0 && state.elapsed() >= PATIENCE {
        true => write!(text, ", about {:#} left", HumanDuration(state.eta())),
        false => Ok(()),
    };
}
