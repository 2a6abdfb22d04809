//! How long is recorded: when the time is up the recording ends, and the program with it.

use std::time::{Duration, Instant};

use sys::signals;

/// How long a program that was asked to end may take for it.
const PATIENCE: Duration = Duration::from_secs(5);
/// SIGTERM and SIGKILL, of Linux.
const TERM: i32 = 15;
const KILL: i32 = 9;

/// The end of a recording that has one.
pub struct Deadline {
    duration: Option<Duration>,
    since: Option<Instant>,
    over: Option<Over>,
}

struct Over {
    at: Instant,
    /// The program was asked to end.
    asked: bool,
    killed: bool,
}

impl Deadline {
    pub fn new(duration: Option<Duration>) -> Deadline {
        Deadline {
            duration,
            since: None,
            over: None,
        }
    }

    /// Recording has begun, now or before.
    pub fn begin(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    pub fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// Whether the program was ended because the time was up.
    pub fn ended_it(&self) -> bool {
        self.over.as_ref().is_some_and(|over| over.asked)
    }

    /// Asks the program to end when the time is up, and ends it where it does not. What to note of it, once.
    pub fn look(&mut self, program: u32) -> Option<String> {
        let duration = self.duration?;
        match &mut self.over {
            None if self.since?.elapsed() >= duration => {
                self.over = Some(Over {
                    at: Instant::now(),
                    asked: signals::send(program, TERM).is_ok(),
                    killed: false,
                });
                Some(format!(
                    "recording ended after {} seconds, and the program was ended with it",
                    duration.as_secs_f64()
                ))
            }
            Some(over) if !over.killed && over.at.elapsed() >= PATIENCE => {
                over.killed = true;
                // The next look at it shows what became of it.
                let _ = signals::send(program, KILL);
                None
            }
            _ => None,
        }
    }
}
