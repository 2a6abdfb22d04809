//! The window of a run that is counted: from one phase of the program to another.
//!
//! Before it everything happens as usual, so that caches, TLBs, page table and clocks are warm; at its beginning all
//! counts and times are set to zero, and at its end the run ends.

use crate::cache::BROUGHT;
use crate::clock::{Spent, Units};
use crate::config::Window;
use crate::counts::{CacheCounts, CpuCounts, PageCounts};
use crate::engine::Engine;
use crate::error::SimError;

/// The relation of a phase to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    Nothing,
    Begins,
    Ends,
}

/// The progress of a run.
#[derive(Debug)]
pub struct Progress {
    window: Window,
    begun: bool,
    ended: bool,
}

impl Progress {
    /// `None`: all of the run.
    pub fn new(window: Option<&Window>) -> Progress {
        let window = window.cloned().unwrap_or_default();
        Progress {
            begun: window.from_phase.is_none(),
            ended: false,
            window,
        }
    }

    /// A thread enters a phase, which no thread did before or which some did.
    pub fn enters(&mut self, phase: &str) -> Passes {
        let is = |name: &Option<String>| name.as_deref() == Some(phase);
        if !self.begun && is(&self.window.from_phase) {
            self.begun = true;
            return Passes::Begins;
        }
        if self.begun && !self.ended && is(&self.window.to_phase) {
            self.ended = true;
            return Passes::Ends;
        }
        Passes::Nothing
    }

    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// After the run: checks that the window was there.
    pub fn check(&self) -> Result<(), SimError> {
        let missed = match (&self.window.from_phase, &self.window.to_phase) {
            (Some(from), _) if !self.begun => format!("no thread entered phase `{from}`"),
            (Some(from), Some(to)) if !self.ended => format!(
                "no thread entered phase `{to}` after phase `{from}` had begun; name phases in the order in which they come"
            ),
            (None, Some(to)) if !self.ended => format!("no thread entered phase `{to}`"),
            _ => return Ok(()),
        };
        Err(SimError::Window(missed))
    }
}

/// Phases that an error names.
const NAMED: usize = 40;

impl Window {
    /// Checks that the program named the window's phases; `phases`: all that it named.
    pub fn is_of(&self, phases: &[String]) -> Result<(), SimError> {
        for name in [&self.from_phase, &self.to_phase].into_iter().flatten() {
            if phases.contains(name) {
                continue;
            }
            let has = match phases {
                [] => "no phases (DOMICILE_PHASE of domicile/trace.h names one)".to_string(),
                _ => {
                    let quoted = |phase: &String| format!("`{phase}`");
                    let named: Vec<String> = phases.iter().take(NAMED).map(quoted).collect();
                    let more = match phases.len().saturating_sub(NAMED) {
                        0 => String::new(),
                        more => format!(" and {more} more"),
                    };
                    format!("the phases {}{more}", named.join(", "))
                }
            };
            return Err(SimError::Window(format!(
                "there is no phase `{name}`; the trace has {has}"
            )));
        }
        Ok(())
    }
}

impl Engine {
    /// Lines that come while caches are only warmed count as used; lines that come later do not.
    pub fn take_all(&mut self, all: bool) {
        self.caches.iter_mut().for_each(|cache| cache.take_all(all));
    }

    /// Counts and times are nothing now. `moment`: when; `idle`: the cpus with nothing to run, which have been waiting for
    /// longer than is counted.
    pub fn begin_window(&mut self, moment: Units, idle: impl Fn(usize) -> bool) {
        for (number, cpu) in self.cpus.iter_mut().enumerate() {
            if idle(number) {
                cpu.clock = cpu.clock.max(moment);
            }
            cpu.begin = cpu.clock;
            cpu.spent = Spent::default();
            cpu.counts = CpuCounts::default();
        }
        self.counts.fill(CacheCounts::default());
        self.memory.moved = Default::default();
        let pages = &mut self.homes.counts;
        *pages = PageCounts {
            hints_placed: pages.hints_placed,
            hints_honoured: pages.hints_honoured,
            colors_asked: pages.colors_asked,
            colors_honoured: pages.colors_honoured,
            ..PageCounts::default()
        };
        self.directory.records.discard();
        if let Some(software_prefetch) = &mut self.software_prefetch {
            software_prefetch.restart();
        }
        if self.prefetchers.is_some() {
            self.caches.iter_mut().for_each(|cache| cache.clear_all(BROUGHT));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(from: Option<&str>, to: Option<&str>) -> Window {
        Window {
            from_phase: from.map(String::from),
            to_phase: to.map(String::from),
        }
    }

    #[test]
    fn begins_once_and_ends_after_that() {
        let mut progress = Progress::new(Some(&window(Some("a"), Some("a"))));
        assert_eq!(progress.enters("b"), Passes::Nothing);
        assert!(progress.check().is_err());
        assert_eq!(progress.enters("a"), Passes::Begins);
        assert!(progress.check().is_err());
        assert_eq!(progress.enters("a"), Passes::Ends);
        assert_eq!(progress.enters("a"), Passes::Nothing);
        assert!(progress.check().is_ok());
        let mut all = Progress::new(None);
        assert_eq!(all.enters("a"), Passes::Nothing);
        assert!(all.check().is_ok());
    }

    #[test]
    fn an_unknown_phase_is_reported_with_those_that_there_are() {
        let wanted = window(Some("compute"), Some("ned"));
        let phases = ["init", "compute", "end"].map(String::from);
        assert_eq!(
            wanted.is_of(&phases).unwrap_err().to_string(),
            "the window cannot be simulated: there is no phase `ned`; the trace has the phases `init`, `compute`, `end`"
        );
        assert!(window(Some("init"), None).is_of(&phases).is_ok());
        let none = window(None, Some("x")).is_of(&[]).unwrap_err().to_string();
        assert!(none.contains("the trace has no phases"), "{none}");
    }
}
