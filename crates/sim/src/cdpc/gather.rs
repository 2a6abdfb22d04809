//! What a program's compiler said of its parallel loops, from the events of a trace.

use std::collections::{HashMap, HashSet};

use policy::cdpc::Loop;
use trace::Event;

use crate::error::SimError;
use crate::structures::{self, Tables};

/// Different loops that are kept of a trace; a bound on memory.
const LOOPS: usize = 1 << 16;
/// Bytes of the arrays of all loops together. No trace touches as much; a damaged number would cost minutes.
const BYTES: u128 = 16 << 30;
/// Summaries that cannot be, told in words.
const MALFORMED: usize = 8;

/// What was said.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// The loops of each process, its parent's first where it was forked; each once, with the team told last.
    pub loops: Vec<(u32, Vec<Loop>)>,
    pub malformed: Malformed,
}

/// What was said and cannot be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Malformed {
    /// The first few, in words.
    pub told: Vec<String>,
    pub count: u64,
}

impl Malformed {
    pub fn add(&mut self, what: String) {
        if self.told.len() < MALFORMED && !self.told.contains(&what) {
            self.told.push(what);
        }
        self.count += 1;
    }
}

impl Said {
    /// Different loops of all processes, those of parents counted once.
    pub fn count(&self) -> u64 {
        let loops: HashSet<&Loop> = self.loops.iter().flat_map(|(_, loops)| loops).collect();
        loops.len() as u64
    }
}

/// Gathers all summaries; `events` tells each event with the process that it is of.
pub fn gather(
    tables: &Tables,
    events: impl FnOnce(&mut dyn FnMut(u32, &Event)) -> Result<(), SimError>,
) -> Result<Said, SimError> {
    let mut said = Said::default();
    let mut own: Vec<(u32, Loop)> = Vec::new();
    // Where each loop is in `own`, whatever its team: one that is told again with another team deals the same work
    // anew, as a constructor does not know yet how many threads the program will ask for.
    let mut known: HashMap<(u32, Loop), usize> = HashMap::new();
    let mut arrays: HashSet<(u32, u64, u128)> = HashSet::new();
    let mut bytes = 0;
    events(&mut |space, event| {
        let Event::Summary { text } = event else { return };
        let fits = |a_loop: Loop| {
            let new: HashSet<_> = extents(&a_loop)
                .map(|(start, bytes)| (space, start, bytes))
                .filter(|array| !arrays.contains(array))
                .collect();
            let more: u128 = new.iter().map(|(_, _, bytes)| bytes).sum();
            if bytes + more > BYTES {
                let place = &a_loop.place;
                return Err(format!(
                    "{place}: arrays of {more} bytes more; of all loops they may have {BYTES}"
                ));
            }
            bytes += more;
            arrays.extend(new);
            Ok(a_loop)
        };
        match read(text).and_then(fits) {
            Err(why) => said.malformed.add(why),
            Ok(a_loop) => match known.get(&(space, of_any_team(&a_loop))) {
                Some(&at) => own[at].1 = a_loop,
                None if known.len() >= LOOPS => {
                    said.malformed
                        .add(format!("{}: one of more than {LOOPS} loops", a_loop.place));
                }
                None => {
                    known.insert((space, of_any_team(&a_loop)), own.len());
                    own.push((space, a_loop));
                }
            },
        }
    })?;
    let parents = structures::forked_from(tables);
    let most = own.iter().map(|(space, _)| space + 1).max().unwrap_or(0);
    for space in 0..most.max(parents.len() as u32) {
        // A forked process has what its parent was told; parents come before their children.
        let parent = parents.get(space as usize).copied().flatten();
        let inherited = parent.and_then(|parent| said.loops.iter().find(|(of, _)| *of == parent));
        let mut loops: Vec<Loop> = inherited.map_or_else(Vec::new, |(_, loops)| loops.clone());
        let of_parent: HashSet<Loop> = loops.iter().cloned().collect();
        let own = own
            .iter()
            .filter(|(of, a_loop)| *of == space && !of_parent.contains(a_loop));
        loops.extend(own.map(|(_, a_loop)| a_loop.clone()));
        if !loops.is_empty() {
            said.loops.push((space, loops));
        }
    }
    Ok(said)
}

/// First byte and bytes of each array of a loop; where these are not known, those that its iterations span.
fn extents(a_loop: &Loop) -> impl Iterator<Item = (u64, u128)> + '_ {
    a_loop.summaries.iter().map(|summary| {
        let far = |step: i64, count: u64| u128::from(step.unsigned_abs()) * u128::from(count);
        let inner: u128 = summary.inner.iter().map(|inner| far(inner.stride, inner.count)).sum();
        let spanned = u128::from(summary.span) + far(summary.unit, a_loop.iterations) + inner;
        let bytes = if summary.bytes > 0 {
            summary.bytes.into()
        } else {
            spanned
        };
        (summary.start, bytes)
    })
}

fn of_any_team(a_loop: &Loop) -> Loop {
    Loop {
        threads: 0,
        ..a_loop.clone()
    }
}

fn read(text: &str) -> Result<Loop, String> {
    let a_loop: Loop = serde_json::from_str(text).map_err(|error| {
        let start: String = text.chars().take(60).collect();
        format!("a summary that cannot be read: {error}: {start:?}")
    })?;
    a_loop.check().map_err(|error| error.to_string())?;
    Ok(a_loop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop over one array, as JSON.
    fn text(start: u64, bytes: u64, unit: i64) -> Event {
        let text = format!(
            r#"{{"place":"{start:x}","threads":2,"iterations":1048576,"schedule":"even","summaries":[{{"name":"a","start":{start},"bytes":{bytes},"unit":{unit},"span":64,"access":"read","communication":"none"}}]}}"#
        );
        Event::Summary { text }
    }

    #[test]
    fn arrays_beyond_what_a_trace_can_touch_are_left_out_and_told() {
        const GIB: u64 = 1 << 30;
        let events = [
            text(GIB, 10 * GIB, 64),
            // The same array costs nothing more.
            text(GIB, 10 * GIB, 128),
            text(64 * GIB, 7 * GIB, 64),
            text(128 * GIB, 0, 1 << 20),
            text(256 * GIB, 0, 64),
        ];
        let said = gather(&Tables::default(), |visit| {
            events.iter().for_each(|event| visit(0, event));
            Ok(())
        })
        .unwrap();
        let places: Vec<&str> = said.loops[0].1.iter().map(|a_loop| a_loop.place.as_str()).collect();
        assert_eq!(places, ["40000000", "40000000", "4000000000"]);
        assert_eq!(said.malformed.count, 2, "{:?}", said.malformed.told);
        assert!(said.malformed.told[0].starts_with("1000000000: arrays of 7516192768 bytes more"));
    }
}
