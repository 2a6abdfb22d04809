//! Segments of a thread's stream, put together in their new order, a bucket of them at a time.
//!
//! Items that follow each other in the new order may lie far apart in the trace. A bucket is as many
//! of them as memory allows: its segments are read in the order in which they lie, each piece of the
//! trace at most once, straight into their new places.

use trace::{Batch, Event, Op, Ref, ThreadStream, Timed, Trace};

use super::marks::At;
use super::plan::Source;
use crate::error::SimError;

/// A thread's stream, from any place to any other.
pub struct Reader {
    stream: ThreadStream,
    /// The start of each piece of the stream, and the end of the last.
    starts: Vec<At>,
    batch: Batch,
    /// The piece that the batch holds.
    loaded: Option<usize>,
}

impl Reader {
    pub fn new(trace: &Trace, thread: u32) -> Result<Reader, SimError> {
        Ok(Reader {
            stream: trace.thread(thread)?,
            starts: starts(trace, thread),
            batch: Batch::default(),
            loaded: None,
        })
    }

    /// Calls `take` for the part between two places, piece by piece: references, events, and the number to subtract
    /// from the `at` of an event to count from the first of these references.
    pub fn read(
        &mut self,
        from: At,
        to: At,
        mut take: impl FnMut(&[Ref], &[Timed], u32) -> Result<(), SimError>,
    ) -> Result<(), SimError> {
        let mut here = from;
        while here < to {
            let piece = piece_at(&self.starts, here);
            let (begin, end) = (self.starts[piece], to.min(self.starts[piece + 1]));
            self.load(piece)?;
            let range = |from: u64, to: u64, begin: u64| (from - begin) as usize..(to - begin) as usize;
            let refs = range(here.refs, end.refs, begin.refs);
            let events = range(here.events, end.events, begin.events);
            let before = refs.start as u32;
            take(&self.batch.refs[refs], &self.batch.events[events], before)?;
            here = end;
        }
        Ok(())
    }

    /// The end of the piece that holds the data after a place.
    pub fn end_of_piece(&self, place: At) -> At {
        self.starts[piece_at(&self.starts, place) + 1]
    }

    /// Takes the whole piece that begins at `from` as it is, in place of what `batch` holds, if one does that ends
    /// at `to` or before; returns where it ends.
    pub fn whole(&mut self, from: At, to: At, batch: &mut Batch) -> Result<Option<At>, SimError> {
        let piece = piece_at(&self.starts, from);
        let end = self.starts[piece + 1];
        if from != self.starts[piece] || end > to {
            return Ok(None);
        }
        self.load(piece)?;
        std::mem::swap(batch, &mut self.batch);
        self.loaded = None;
        Ok(Some(end))
    }

    fn load(&mut self, piece: usize) -> Result<(), SimError> {
        if self.loaded == Some(piece) {
            return Ok(());
        }
        self.loaded = None;
        self.stream.seek(piece);
        let more = self.stream.next(&mut self.batch)?;
        let length = At {
            refs: self.starts[piece + 1].refs - self.starts[piece].refs,
            events: self.starts[piece + 1].events - self.starts[piece].events,
        };
        let got = At {
            refs: self.batch.refs.len() as u64,
            events: self.batch.events.len() as u64,
        };
        if !more || got != length {
            return Err(SimError::Order(
                "a part of the trace cannot be read, so its work cannot be put in another order".to_string(),
            ));
        }
        self.loaded = Some(piece);
        Ok(())
    }
}

/// The start of each piece of a thread's stream, and the end of the last.
pub fn starts(trace: &Trace, thread: u32) -> Vec<At> {
    let mut here = At::default();
    let mut starts = vec![here];
    for piece in trace.pieces(thread) {
        here.refs += u64::from(piece.refs);
        here.events += u64::from(piece.events);
        starts.push(here);
    }
    starts
}

/// The piece that holds the data after `place`, which is not the end of the stream.
pub fn piece_at(starts: &[At], place: At) -> usize {
    starts.partition_point(|start| *start <= place) - 1
}

/// The limits of a bucket.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    pub refs: u64,
    pub events: u64,
}

/// The number of segments from place `first` of the new order on, at most `count`, that make the next bucket: at least
/// one, which may be larger than the room.
pub fn bucket(source: &Source, first: usize, count: usize, room: Room) -> usize {
    let (mut refs, mut events) = (0, 0);
    for taken in 0..count {
        let (from, to) = source.segment(source.order[first + taken]);
        refs += to.refs - from.refs;
        events += to.events - from.events;
        if taken > 0 && (refs > room.refs || events > room.events) {
            return taken;
        }
    }
    count
}

const NOTHING: Ref = Ref {
    addr: 0,
    site: 0,
    insns: 0,
    op: Op::Read,
    size: 1,
};

/// Appends segments to a batch, in this order. `spilled`: the reader has these segments and nothing else, in the
/// order in which they lie in the trace.
pub fn gather(
    source: &Source,
    order: &[u32],
    reader: &mut Reader,
    spilled: bool,
    batch: &mut Batch,
) -> Result<(), SimError> {
    let mut end = At {
        refs: batch.refs.len() as u64,
        events: batch.events.len() as u64,
    };
    let mut segments = Vec::with_capacity(order.len());
    for &segment in order {
        segments.push((segment, end));
        let (from, to) = source.segment(segment);
        end.refs += to.refs - from.refs;
        end.events += to.events - from.events;
    }
    segments.sort_unstable_by_key(|(segment, _)| *segment);
    batch.refs.resize(end.refs as usize, NOTHING);
    let filler = Timed {
        at: 0,
        order: 0,
        event: Event::WorkEnd,
    };
    batch.events.resize(end.events as usize, filler);
    let mut read = At::default();
    for (segment, place) in segments {
        let (mut from, mut to) = source.segment(segment);
        if spilled {
            let begin = read;
            read.refs += to.refs - from.refs;
            read.events += to.events - from.events;
            (from, to) = (begin, read);
        }
        let (mut refs_at, mut events_at) = (place.refs as usize, place.events as usize);
        reader.read(from, to, |refs, events, before| {
            batch.refs[refs_at..refs_at + refs.len()].copy_from_slice(refs);
            for (to, event) in batch.events[events_at..].iter_mut().zip(events) {
                to.at = refs_at as u32 + (event.at - before);
                to.event = moved(&event.event);
            }
            refs_at += refs.len();
            events_at += events.len();
            Ok(())
        })?;
    }
    Ok(())
}

/// Appends the part between two places.
pub fn append(reader: &mut Reader, from: At, to: At, batch: &mut Batch) -> Result<(), SimError> {
    reader.read(from, to, |refs, events, before| {
        let here = batch.refs.len() as u32;
        batch.refs.extend_from_slice(refs);
        batch.events.extend(events.iter().map(|timed| Timed {
            at: here + (timed.at - before),
            order: 0,
            event: timed.event.clone(),
        }));
        Ok(())
    })
}

/// An event on its way: hints have been taken into account and are left behind.
pub fn moved(event: &Event) -> Event {
    match event {
        Event::WorkBegin { .. } => Event::WorkBegin { hints: Vec::new() },
        event => event.clone(),
    }
}
