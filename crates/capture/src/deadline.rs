//! The length of a recording: when the time is up, or the user asks, the recording and the program end.

use std::time::{Duration, Instant};

use sys::signals;

/// SIGINT, SIGTERM and SIGKILL, of Linux.
const INT: i32 = 2;
const TERM: i32 = 15;
const KILL: i32 = 9;

/// How long a program may take to end after a request.
const PATIENCE: Duration = Duration::from_secs(5);
/// The signals for an interrupted program that continues, and their times. Its user waits.
const INSISTING: [(Duration, i32); 2] = [(Duration::from_secs(2), TERM), (Duration::from_secs(4), KILL)];

/// The end of a recording that has one.
pub struct Deadline {
    duration: Option<Duration>,
    /// Recording ends this long after the start, even if it began late.
    within: Option<Duration>,
    started: Instant,
    since: Option<Instant>,
    /// True if an interrupt ends the recording.
    interrupts: bool,
    over: Option<Over>,
}

struct Over {
    at: Instant,
    /// The time was up, and the program was asked to end.
    asked: bool,
    /// The signals that it gets if it continues, and their times.
    next: Vec<(Duration, i32)>,
    /// Interrupted again: the user does not want the recording.
    given_up: bool,
}

impl Deadline {
    /// Recording lasts for `duration`; if it begins late, it still ends `within` from now, with at least a tenth of
    /// that. `interrupts`: an interrupt (SIGINT) ends it.
    pub fn new(duration: Option<Duration>, within: Option<Duration>, interrupts: bool) -> Deadline {
        Deadline {
            duration,
            within,
            started: Instant::now(),
            since: None,
            interrupts,
            over: None,
        }
    }

    /// Recording has begun, now or earlier.
    pub fn begin(&mut self) {
        if self.since.is_some() {
            return;
        }
        self.since = Some(Instant::now());
        if let Some(within) = self.within {
            let left = within.saturating_sub(self.started.elapsed()).max(within / 10);
            self.duration = Some(self.duration.map_or(left, |duration| duration.min(left)));
        }
    }

    pub fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// True if the program was ended because the time was up.
    pub fn ended_it(&self) -> bool {
        self.over.as_ref().is_some_and(|over| over.asked)
    }

    /// True if the waiting user no longer wants the recording.
    pub fn given_up(&self) -> bool {
        self.over.as_ref().is_some_and(|over| over.given_up)
    }

    /// The program was sent this signal: returns whether that ends the recording. The second of two interrupts kills
    /// the program.
    pub fn interrupted(&mut self, signal: i32, program: u32) -> bool {
        if !self.interrupts || signal != INT {
            return false;
        }
        match &mut self.over {
            None => {
                self.over = Some(Over {
                    at: Instant::now(),
                    asked: false,
                    next: INSISTING.to_vec(),
                    given_up: false,
                });
                true
            }
            Some(over) => {
                over.given_up = true;
                // The next check shows the result.
                let _ = signals::send(program, KILL);
                false
            }
        }
    }

    /// Asks the program to end when the time is up, and ends it if it does not. Returns a note on this, once.
    pub fn look(&mut self, program: u32) -> Option<String> {
        if let Some(over) = &mut self.over {
            if let Some((_, signal)) = over.next.first().filter(|(after, _)| over.at.elapsed() >= *after) {
                // As above.
                let _ = signals::send(program, *signal);
                over.next.remove(0);
            }
            return None;
        }
        // A limit from the start on also applies if recording has not begun.
        let (since, duration) = match (self.since, self.within) {
            (Some(since), _) => (since, self.duration?),
            (None, Some(within)) => (self.started, within),
            (None, None) => return None,
        };
        if since.elapsed() < duration {
            return None;
        }
        self.over = Some(Over {
            at: Instant::now(),
            asked: signals::send(program, TERM).is_ok(),
            next: vec![(PATIENCE, KILL)],
            given_up: false,
        });
        Some(format!(
            "recording ended after {} seconds, and the program was ended with it: nothing is known of what it would have done \
             then",
            rounded(duration)
        ))
    }
}

/// In seconds, to a tenth, as people say it.
fn rounded(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 10.0).round() / 10.0
}
