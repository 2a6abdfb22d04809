//! The compiler's description of a program's parallel loops, from the events of a trace.

use std::collections::{BTreeMap, HashSet};

use policy::cdpc::{Loop, Program, Room};
use trace::Event;

use crate::error::SimError;
use crate::structures::{self, Tables};

/// Different loops that are kept of a trace; a bound on memory.
const LOOPS: usize = 1 << 16;
/// Bytes of the arrays of all loops together. No trace touches as much; a damaged number would cost minutes.
const BYTES: u128 = 16 << 30;
/// Malformed summaries that are reported in words.
const MALFORMED: usize = 8;

/// The description.
#[derive(Clone, Debug, Default)]
pub struct Described {
    /// The loops of each process, its parent's first where it was forked.
    pub programs: Vec<(u32, Program)>,
    pub malformed: Malformed,
}

/// Described data that cannot be valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Malformed {
    /// The first few, in words.
    pub first: Vec<String>,
    pub count: u64,
}

impl Malformed {
    pub fn add(&mut self, what: String) {
        if self.first.len() < MALFORMED && !self.first.contains(&what) {
            self.first.push(what);
        }
        self.count += 1;
    }
}

impl Described {
    /// Different loops of all processes, those of parents counted once.
    pub fn count(&self) -> u64 {
        let loops: HashSet<&Loop> = self.programs.iter().flat_map(|(_, program)| program.loops()).collect();
        loops.len() as u64
    }
}

/// Gathers all summaries; `events` calls its argument with each event and its process.
pub fn gather(
    tables: &Tables,
    events: impl FnOnce(&mut dyn FnMut(u32, &Event)) -> Result<(), SimError>,
) -> Result<Described, SimError> {
    let mut described = Described::default();
    let mut own: BTreeMap<u32, Program> = BTreeMap::new();
    let mut room = Room::new(LOOPS, usize::MAX, BYTES);
    events(&mut |space, event| {
        let Event::Summary { text } = event else { return };
        let added = read(text).and_then(|described| {
            let program = own.entry(space).or_default();
            program.add(described, &mut room).map_err(|why| why.to_string())
        });
        if let Err(why) = added {
            described.malformed.add(why);
        }
    })?;
    let parents = structures::forked_from(tables);
    let most = own.keys().next_back().map_or(0, |space| space + 1);
    for space in 0..most.max(parents.len() as u32) {
        // A forked process has its parent's descriptions; parents come before their children.
        let parent = parents.get(space as usize).copied().flatten();
        let inherited = parent.and_then(|parent| described.programs.iter().find(|(of, _)| *of == parent));
        let mut program = inherited.map_or_else(Program::default, |(_, program)| program.clone());
        for described in own.get(&space).map_or(&[][..], Program::loops) {
            // There was room for each of them.
            let _ = program.add(described.clone(), &mut Room::endless());
        }
        if !program.loops().is_empty() {
            described.programs.push((space, program));
        }
    }
    Ok(described)
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
    fn arrays_beyond_what_a_trace_can_touch_are_left_out_and_reported() {
        const GIB: u64 = 1 << 30;
        let events = [
            text(GIB, 10 * GIB, 64),
            // The same array costs nothing more.
            text(GIB, 10 * GIB, 128),
            text(64 * GIB, 7 * GIB, 64),
            text(128 * GIB, 0, 1 << 20),
            text(256 * GIB, 0, 64),
        ];
        let described = gather(&Tables::default(), |visit| {
            events.iter().for_each(|event| visit(0, event));
            Ok(())
        })
        .unwrap();
        let places: Vec<&str> = described.programs[0]
            .1
            .loops()
            .iter()
            .map(|a_loop| a_loop.place.as_str())
            .collect();
        assert_eq!(places, ["40000000", "40000000", "4000000000"]);
        assert_eq!(described.malformed.count, 2, "{:?}", described.malformed.first);
        assert!(described.malformed.first[0].starts_with("1000000000: arrays of 7516192768 bytes more"));
    }

    /// A loop of `iterations` iterations by `threads` threads, in its array.
    fn sweep(threads: u32, iterations: u64) -> Event {
        let Event::Summary { text } = text(1 << 20, 1 << 20, 64) else {
            unreachable!()
        };
        let text = text.replace(r#""threads":2"#, &format!(r#""threads":{threads}"#));
        let text = text.replace("1048576,\"schedule", &format!("{iterations},\"schedule"));
        Event::Summary { text }
    }

    #[test]
    fn a_team_of_another_size_replaces_the_old_one_and_other_iterations_are_another_loop() {
        let events = [(0, 8, 256), (0, 2, 16), (0, 4, 256), (1, 2, 256)]
            .map(|(space, threads, iterations)| (space, sweep(threads, iterations)));
        let described = gather(&Tables::default(), |visit| {
            events.iter().for_each(|(space, event)| visit(*space, event));
            Ok(())
        })
        .unwrap();
        let loops = |at: usize| -> Vec<(u32, u64)> {
            let loops = described.programs[at].1.loops().iter();
            loops.map(|known| (known.threads, known.iterations)).collect()
        };
        assert_eq!(loops(0), [(4, 256), (2, 16)]);
        assert_eq!(loops(1), [(2, 256)]);
        assert_eq!((described.count(), described.malformed.count), (3, 0));
    }
}
