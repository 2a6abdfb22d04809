//! The rest between phases: short while regions are being found, long while phases change nothing.

use super::scheduler::Regions;
use results::RegionsVerdict;

/// Phases follow each other this many times as fast while regions are being found.
const EAGER: u64 = 8;
/// The rest between phases from which nothing comes is doubled so often.
const SELDOM: u32 = 4;

impl Regions {
    /// Decides when the next phases begin, after one that ended now.
    pub(super) fn rest(&mut self, cpu: u32, now_ns: u64, growing: bool, changed: bool) {
        let unknown = self
            .running()
            .any(|(_, space)| space.verdict == RegionsVerdict::StayUnknown);
        let spread = self.running().any(|(_, space)| space.spread);
        let threads = self.running().map(|(_, space)| space.cpus(self.since()).count() as u64);
        let threads = threads.sum::<u64>();
        self.idle_phases = match changed || spread {
            true => 0,
            false => self.idle_phases + 1,
        };
        let fingerprint = self.partition.fingerprint();
        let same = fingerprint == std::mem::replace(&mut self.fingerprint, fingerprint);
        self.steady_phases = match same && spread && !growing && !unknown {
            true => self.steady_phases + 1,
            false => 0,
        };
        let rest_ns = self.usual_rest_ns();
        let soon = &mut self.soon[cpu as usize];
        let rest_ns = if (growing || unknown) && *soon < self.rules.eager {
            *soon += 1;
            rest_ns / EAGER
        } else {
            // If phases change nothing, they come more and more seldom.
            rest_ns << u64::from(self.idle_phases.min(SELDOM)).max(self.steady_phases.min(self.rules.steady))
        };
        // A thread that goes from cpu to cpu has no more phases than one that stays.
        let next_ns = now_ns + rest_ns / threads.max(1);
        for next in &mut self.next_phase_ns {
            *next = (*next).max(next_ns);
        }
        self.next_phase_ns[cpu as usize] = now_ns + rest_ns;
    }

    /// Regions may no longer be as the last phases found them: no cpu rests longer than usual from now on.
    pub(super) fn end_steady_rest(&mut self, now_ns: u64) {
        if std::mem::take(&mut self.steady_phases).min(self.rules.steady) == 0 {
            return;
        }
        let latest_ns = self.tick_of(now_ns) + self.usual_rest_ns();
        for next in &mut self.next_phase_ns {
            *next = (*next).min(latest_ns);
        }
    }

    fn usual_rest_ns(&self) -> u64 {
        self.rules.period_ns - self.rules.phase_ns.min(self.rules.period_ns)
    }
}
