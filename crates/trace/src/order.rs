//! The serial schedule: the order in which the threads' references were recorded.

use std::sync::Arc;

use crate::block::{BlockHead, Kind};
use crate::error::{TraceError, within};
use crate::limits;
use crate::model::ThreadId;
use crate::source::{Entry, Room, Source};
use crate::varint::{Cursor, put};

/// One thread ran: this many of its references and events followed each other without another thread's between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub thread: ThreadId,
    pub refs: u64,
    pub events: u64,
}

/// Appends runs: thread, references doubled plus one if events follow, events.
pub fn encode(runs: &[Run], out: &mut Vec<u8>) {
    for run in runs {
        put(out, u64::from(run.thread));
        put(out, run.refs << 1 | u64::from(run.events > 0));
        if run.events > 0 {
            put(out, run.events);
        }
    }
}

fn decode(payload: &[u8], count: usize, offset: u64, runs: &mut Vec<Run>) -> Result<(), TraceError> {
    within(offset, "runs in a block", count as u64, limits::ORDER_RUNS as u64)?;
    let mut cursor = Cursor::new(payload);
    let mut one = || {
        let thread = cursor.narrow()?;
        let refs = cursor.number()?;
        let events = if refs & 1 == 1 { cursor.number()? } else { 0 };
        Some(Run {
            thread,
            refs: refs >> 1,
            events,
        })
    };
    for _ in 0..count {
        runs.push(one().ok_or_else(|| TraceError::damaged(offset, "the schedule cannot be read"))?);
    }
    if cursor.is_empty() {
        Ok(())
    } else {
        Err(TraceError::damaged(offset, "bytes are left over after the schedule"))
    }
}

/// The runs of a trace from first to last. The schedule is cut to the references that the trace holds
/// (a crash may have lost the end of either), and references without a schedule come last, thread
/// by thread; so the runs always cover every reference and event exactly once.
pub struct OrderStream {
    source: Arc<Source>,
    /// True if a damaged block is skipped.
    salvage: bool,
    blocks: std::vec::IntoIter<Entry>,
    runs: std::vec::IntoIter<Run>,
    /// References and events of each thread that no run has covered yet.
    left: Vec<(u64, u64)>,
    /// Next thread of the remainder.
    rest: usize,
    room: Room,
}

impl OrderStream {
    pub(crate) fn new(source: Arc<Source>, blocks: Vec<Entry>, totals: Vec<(u64, u64)>, salvage: bool) -> OrderStream {
        OrderStream {
            source,
            salvage,
            blocks: blocks.into_iter(),
            runs: Vec::new().into_iter(),
            left: totals,
            rest: 0,
            room: Room::default(),
        }
    }

    fn more(&mut self, entry: Entry) -> Result<(), TraceError> {
        self.source.payload(entry, limits::ORDER_BYTES, &mut self.room)?;
        let mut runs = Vec::with_capacity((entry.head.count as usize).min(limits::ORDER_RUNS));
        decode(&self.room.raw, entry.head.count as usize, entry.offset, &mut runs)?;
        if let Some(run) = runs.iter().find(|r| r.thread as usize >= self.left.len()) {
            return Err(TraceError::damaged(
                entry.offset,
                format!("the schedule names thread {}", run.thread),
            ));
        }
        self.runs = runs.into_iter();
        Ok(())
    }
}

impl Iterator for OrderStream {
    type Item = Result<Run, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(mut run) = self.runs.next() {
                let left = &mut self.left[run.thread as usize];
                run.refs = run.refs.min(left.0);
                run.events = run.events.min(left.1);
                if run.refs == 0 && run.events == 0 {
                    continue;
                }
                left.0 -= run.refs;
                left.1 -= run.events;
                return Some(Ok(run));
            }
            if let Some(entry) = self.blocks.next() {
                match self.more(entry) {
                    Ok(()) => continue,
                    Err(error) if self.salvage && !matches!(error, TraceError::Read { .. }) => continue,
                    Err(error) => {
                        self.blocks = Vec::new().into_iter();
                        self.rest = self.left.len();
                        return Some(Err(error));
                    }
                }
            }
            let (refs, events) = *self.left.get(self.rest)?;
            let thread = self.rest as ThreadId;
            self.rest += 1;
            if refs > 0 || events > 0 {
                return Some(Ok(Run { thread, refs, events }));
            }
        }
    }
}

/// The head of an Order block of `count` runs.
pub fn head(count: usize) -> BlockHead {
    BlockHead {
        count: count as u32,
        ..BlockHead::new(Kind::Order)
    }
}
