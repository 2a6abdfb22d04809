//! Summaries for the trace: JSON, each once.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use live::summaries::Taken;
use policy::cdpc::{Loop, Malformed};

use crate::stderr;

/// The most loops that are remembered as recorded; beyond that all are forgotten, and may be described again.
const MOST: usize = 1 << 16;
/// Lines about what cannot be recorded.
const MOST_LINES: usize = 8;

/// By hash: a collision of 64 bits is too rare to keep the loops themselves.
static KNOWN: Mutex<Option<HashSet<u64>>> = Mutex::new(None);
static LINES: AtomicUsize = AtomicUsize::new(0);

/// Describes a loop to the recorder once, and prints what was passed over.
pub fn describe(taken: Result<Taken, Malformed>) {
    match taken {
        Ok(taken) => {
            if !is_new(&taken.described) {
                return;
            }
            taken.passed_over.iter().for_each(say);
            match serde_json::to_string(&taken.described) {
                Ok(text) => sys::requests::summary(&text),
                Err(error) => say(&Malformed {
                    place: taken.described.place,
                    why: error.to_string(),
                }),
            }
        }
        Err(why) => say(&why),
    }
}

fn is_new(described: &Loop) -> bool {
    let mut hasher = DefaultHasher::new();
    described.hash(&mut hasher);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if known.len() >= MOST {
        known.clear();
    }
    known.insert(hasher.finish())
}

fn say(what: &Malformed) {
    match LINES.fetch_add(1, Ordering::Relaxed) {
        line if line < MOST_LINES => stderr::say(format_args!("a summary is not in the trace: {what}")),
        MOST_LINES => stderr::say(format_args!("more summaries are not in the trace")),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::cdpc::{Direction, Schedule};

    #[test]
    fn a_summary_is_new_once() {
        let a_loop = |place: &str| Loop {
            place: place.into(),
            threads: 2,
            iterations: 3,
            schedule: Schedule::Even,
            direction: Direction::Forward,
            summaries: Vec::new(),
        };
        assert!(is_new(&a_loop("recorder: a")));
        assert!(!is_new(&a_loop("recorder: a")));
        assert!(is_new(&a_loop("recorder: b")));
    }
}
