//! Summaries for the trace: JSON, each once.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use policy::cdpc::{Loop, Malformed};
use summaries::Taken;

use crate::stderr;

/// Summaries that are known to have been told; when there are more, all are forgotten, and may be told again.
const MOST: usize = 1 << 16;
/// Lines about what cannot be recorded.
const MOST_LINES: usize = 8;

/// By hash: two that share one of 64 bits are not worth the room of all.
static TOLD: Mutex<Option<HashSet<u64>>> = Mutex::new(None);
static LINES: AtomicUsize = AtomicUsize::new(0);

/// Tells the recorder, unless it knows; and people of what was passed over.
pub fn tell(taken: Result<Taken, Malformed>) {
    match taken {
        Ok(taken) => {
            if !is_new(&taken.told) {
                return;
            }
            taken.passed_over.iter().for_each(say);
            match serde_json::to_string(&taken.told) {
                Ok(text) => sys::requests::summary(&text),
                Err(error) => say(&Malformed {
                    place: taken.told.place,
                    why: error.to_string(),
                }),
            }
        }
        Err(why) => say(&why),
    }
}

fn is_new(told: &Loop) -> bool {
    let mut hasher = DefaultHasher::new();
    told.hash(&mut hasher);
    let mut known = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
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
        let told = |place: &str| Loop {
            place: place.into(),
            threads: 2,
            iterations: 3,
            schedule: Schedule::Even,
            direction: Direction::Forward,
            summaries: Vec::new(),
        };
        assert!(is_new(&told("recorder: a")));
        assert!(!is_new(&told("recorder: a")));
        assert!(is_new(&told("recorder: b")));
    }
}
