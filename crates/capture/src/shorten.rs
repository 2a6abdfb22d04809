//! A part of a trace: windows spread over it, for an advice with limited time.
//!
//! References outside of windows are not even decoded. All events stay: they show the owners of memory, and the
//! dependences between threads. If a trace has windows, some are chosen, with the references that warm their caches. In
//! another trace, a window is placed at random in each of several parts of equal length, and its first half warms up.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use trace::{Batch, Chosen, Event, Options, Ref, Run, ThreadId, ThreadStream, Trace, TraceError, Writer};

use crate::schedule::mixed;

/// The number of windows if time is short, if they fit: enough to cover phases of the run.
pub const WINDOWS: u32 = 40;
/// Shorter windows would measure caches that are still empty.
const LEAST: u64 = 20_000;
/// Fewer windows would not show their variation.
const FEWEST: usize = 4;
/// Events that are held in memory.
const MOST_EVENTS: u64 = 30_000_000;
/// Pieces of threads that are held decoded.
const MOST_PIECES: usize = 64;

/// A window: references of the whole trace, in the order in which they were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    begin: u64,
    /// The reference at which it has warmed up; `None`: it does not.
    counted: Option<u64>,
    end: u64,
}

impl Window {
    fn references(&self) -> u64 {
        self.end - self.begin
    }

    /// The references without those that only warm caches.
    fn counts(&self) -> u64 {
        self.end - self.counted.unwrap_or(self.begin)
    }
}

/// Writes windows of `trace`, with about `references` together, to a new trace at `output`. False if that would not be
/// shorter, or cannot be done.
pub fn shorten(trace: &Trace, output: &Path, references: u64) -> Result<bool, TraceError> {
    let references = references.max(LEAST * FEWEST as u64);
    if trace.references() <= references || trace.events() > MOST_EVENTS || trace.threads().is_empty() {
        return Ok(false);
    }
    let events = events(trace)?;
    let all = trace.references();
    let windows = match there(trace, &events)? {
        there if there.len() > 1 => some_of(&there, references),
        _ => laid(all, references),
    };
    if windows.iter().map(Window::references).sum::<u64>() >= all {
        return Ok(false);
    }
    let mut header = trace.header().clone();
    let before = header.chosen.take().unwrap_or_default();
    header.chosen = Some(Chosen {
        windows: windows.len() as u32,
        references: windows.iter().map(Window::counts).max(),
        warmed: windows.iter().all(|window| window.counted.is_some()),
        of_references: before.of_references.or(Some(all)),
        ..before
    });
    let how = Options {
        background: true,
        ..Options::default()
    };
    let mut writer = Writer::create_with(output, &header, how)?;
    tables(trace, &mut writer);
    let mut copy = Copy::new(trace, writer, windows)?;
    walk(trace, &events, |thread, what| match what {
        What::Refs(from, to) => copy.refs(thread, from, to),
        What::Event(event) => copy.event(thread, event),
    })?;
    copy.writer.finish()?;
    Ok(true)
}

/// The events of each thread, each with how many references of the thread come before it.
type Events = Vec<Vec<(u64, Event)>>;

fn events(trace: &Trace) -> Result<Events, TraceError> {
    let of = |thread: usize| {
        let mut events = Vec::new();
        trace.each_event(thread as ThreadId, |before, event| events.push((before, event.clone())))?;
        Ok(events)
    };
    (0..trace.threads().len()).map(of).collect()
}

/// A step of the walk through a trace.
enum What<'a> {
    /// The thread's references from one to another.
    Refs(u64, u64),
    Event(&'a Event),
}

/// Goes through a trace in the order in which it was recorded.
fn walk(
    trace: &Trace,
    events: &Events,
    mut step: impl FnMut(ThreadId, What<'_>) -> Result<(), TraceError>,
) -> Result<(), TraceError> {
    let mut come = vec![(0u64, 0usize); events.len()];
    for run in trace.order() {
        let Run {
            thread,
            refs,
            events: mut left,
        } = run?;
        let (Some((at, next)), Some(own)) = (come.get_mut(thread as usize), events.get(thread as usize)) else {
            continue;
        };
        let end = *at + refs;
        loop {
            let event = own.get(*next).filter(|(before, _)| left > 0 && *before <= end);
            let to = event.map_or(end, |(before, _)| *before).max(*at);
            if to > *at {
                step(thread, What::Refs(*at, to))?;
                *at = to;
            }
            let Some((_, event)) = event else { break };
            step(thread, What::Event(event))?;
            *next += 1;
            left -= 1;
        }
    }
    Ok(())
}

/// The windows of a trace.
fn there(trace: &Trace, events: &Events) -> Result<Vec<Window>, TraceError> {
    let mut windows: Vec<Window> = Vec::new();
    let mut seen = 0;
    walk(trace, events, |_, what| {
        match what {
            What::Refs(from, to) => seen += to - from,
            What::Event(Event::Window { index }) if *index as usize == windows.len() => {
                if let Some(last) = windows.last_mut() {
                    last.end = seen;
                }
                windows.push(Window {
                    begin: seen,
                    counted: None,
                    end: seen,
                });
            }
            What::Event(Event::Counted { index }) if *index as usize + 1 == windows.len() => {
                if let Some(last) = windows.last_mut() {
                    last.counted.get_or_insert(seen);
                }
            }
            What::Event(_) => {}
        }
        Ok(())
    })?;
    if let Some(last) = windows.last_mut() {
        last.end = seen;
    }
    windows.retain(|window| window.references() > 0);
    Ok(windows)
}

/// Evenly chosen windows with `references` together; if those would be few, shorter ones, with only the last references
/// that warm them.
fn some_of(windows: &[Window], references: u64) -> Vec<Window> {
    let have = windows.len();
    let mean = (windows.iter().map(Window::references).sum::<u64>() / have as u64).max(1);
    let count = ((references / mean) as usize).clamp(FEWEST.min(have), have);
    let each = references / count as u64;
    let pick = |number: usize| {
        let window = windows[(2 * number + 1) * have / (2 * count)];
        let begin = window.counted.map_or(window.begin, |counted| {
            window.begin.max(counted.saturating_sub(each / 2))
        });
        Window {
            begin,
            end: (begin + each).min(window.end),
            ..window
        }
    };
    (0..count).map(pick).collect()
}

/// Windows with `references` together in a trace of `all`.
fn laid(all: u64, references: u64) -> Vec<Window> {
    let count = (references / LEAST).clamp(FEWEST as u64, WINDOWS.into());
    let (part, each) = (all / count, references / count);
    let lay = |number: u64| {
        let begin = number * part + mixed(number) % (part.saturating_sub(each) + 1);
        Window {
            begin,
            counted: Some(begin + each / 2),
            end: begin + each,
        }
    };
    (0..count).map(lay).collect()
}

fn tables(trace: &Trace, writer: &mut Writer) {
    for process in trace.processes() {
        writer.process(process.clone());
    }
    for thread in trace.threads() {
        writer.thread(thread.clone());
    }
    for site in trace.sites() {
        writer.site(*site);
    }
    for stack in trace.stacks() {
        writer.stack(stack.clone());
    }
    writer.modules(trace.modules().iter().cloned());
    writer.symbols(trace.symbols().iter().cloned());
    writer.locations(trace.locations().iter().cloned());
    writer.arrays(trace.arrays().iter().cloned());
    writer.paces(trace.paces().iter().copied());
    writer.mispredictions(trace.mispredictions().iter().cloned());
    if let Some(dependences) = trace.dependences() {
        writer.dependences(dependences.to_vec());
    }
}

/// The shorter trace under way.
struct Copy {
    writer: Writer,
    pieces: Pieces,
    /// The current or next one comes first.
    windows: std::iter::Peekable<std::vec::IntoIter<Window>>,
    index: u32,
    /// References so far, copied or not.
    seen: u64,
    /// Threads that have not ended.
    live: BTreeSet<ThreadId>,
}

impl Copy {
    fn new(trace: &Trace, writer: Writer, windows: Vec<Window>) -> Result<Copy, TraceError> {
        let spawned = trace.spawned()?;
        let begins = |thread: &ThreadId| !spawned.get(*thread as usize).is_some_and(|spawned| *spawned);
        Ok(Copy {
            writer,
            pieces: Pieces::new(trace)?,
            windows: windows.into_iter().peekable(),
            index: 0,
            seen: 0,
            live: (0..trace.threads().len() as ThreadId).filter(begins).collect(),
        })
    }

    fn announce(&mut self, event: &Event) -> Result<(), TraceError> {
        for thread in &self.live {
            self.writer.event(*thread, event.clone())?;
        }
        Ok(())
    }

    fn refs(&mut self, thread: ThreadId, mut from: u64, to: u64) -> Result<(), TraceError> {
        while from < to {
            let Some(&Window { begin, counted, end }) = self.windows.peek() else {
                self.seen += to - from;
                return Ok(());
            };
            let index = self.index;
            if self.seen == begin {
                self.announce(&Event::Window { index })?;
            }
            if counted == Some(self.seen) {
                self.announce(&Event::Counted { index })?;
            }
            // Up to here all references are handled alike.
            let stops = [begin, counted.unwrap_or(end), end];
            let stop = stops.into_iter().filter(|stop| *stop > self.seen).min().unwrap_or(end);
            let count = (to - from).min(stop - self.seen);
            if self.seen >= begin {
                let mut first = self.seen == begin;
                self.pieces.each(thread, from, from + count, |refs| match refs {
                    // Instructions before the window do not belong to it.
                    [begins, rest @ ..] if std::mem::take(&mut first) => {
                        let insns = begins.insns.min(1);
                        self.writer.push(thread, Ref { insns, ..*begins })?;
                        self.writer.refs(thread, rest)
                    }
                    refs => self.writer.refs(thread, refs),
                })?;
            }
            from += count;
            self.seen += count;
            if self.seen == end {
                self.windows.next();
                self.index += 1;
            }
        }
        Ok(())
    }

    fn event(&mut self, thread: ThreadId, event: &Event) -> Result<(), TraceError> {
        match event {
            Event::Window { .. } | Event::Counted { .. } => return Ok(()),
            Event::Spawn { child } => {
                self.live.insert(*child);
            }
            Event::Exit => {
                self.live.remove(&thread);
            }
            _ => {}
        }
        self.writer.event(thread, event.clone())
    }
}

/// References of threads, in any piece.
struct Pieces {
    stream: ThreadStream,
    /// For each thread, how many references come before each piece, and at the end the total.
    begins: Vec<Vec<u64>>,
    held: HashMap<ThreadId, (usize, Batch)>,
}

impl Pieces {
    fn new(trace: &Trace) -> Result<Pieces, TraceError> {
        let begins = |thread: usize| {
            let mut sum = 0;
            let after = trace.pieces(thread as ThreadId).map(|piece| {
                sum += u64::from(piece.refs);
                sum
            });
            std::iter::once(0).chain(after).collect()
        };
        Ok(Pieces {
            stream: trace.thread(0)?,
            begins: (0..trace.threads().len()).map(begins).collect(),
            held: HashMap::new(),
        })
    }

    /// Passes on a thread's references `[from, to)`, piece by piece.
    fn each(
        &mut self,
        thread: ThreadId,
        mut from: u64,
        to: u64,
        mut take: impl FnMut(&[Ref]) -> Result<(), TraceError>,
    ) -> Result<(), TraceError> {
        while from < to {
            let begins = &self.begins[thread as usize];
            let piece = begins.partition_point(|begin| *begin <= from) - 1;
            let Some(&end) = begins.get(piece + 1) else {
                return Ok(());
            };
            let begin = begins[piece];
            if self.held.get(&thread).is_none_or(|(held, _)| *held != piece) {
                if self.held.len() >= MOST_PIECES {
                    self.held.clear();
                }
                let (_, mut batch) = self.held.remove(&thread).unwrap_or_default();
                self.stream.turn(thread, piece);
                // Of a damaged trace it may be another one: there is none in its place.
                if !self.stream.next(&mut batch)? || self.stream.position() != piece + 1 {
                    batch = Batch::default();
                }
                self.held.insert(thread, (piece, batch));
            }
            let until = end.min(to);
            let refs = self.held.get(&thread).map_or(&[][..], |(_, batch)| &batch.refs);
            take(
                refs.get((from - begin) as usize..(until - begin) as usize)
                    .unwrap_or(&[]),
            )?;
            from = until;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
