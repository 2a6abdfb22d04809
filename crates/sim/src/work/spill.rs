//! A trace whose items are too scattered is written once more, bucket by bucket.
//!
//! Gathering a bucket decodes every piece of the trace that holds one of its items. If items of a bucket lie in pieces
//! of their own, the same pieces would be decoded for many buckets. Then one pass over the trace deals its items to the
//! buckets, each a thread of a temporary trace, which is about as large as the trace. Either way the work grows with
//! the trace's length and not faster.

use tempfile::NamedTempFile;
use trace::{Header, Process, Thread, Trace, Writer};

use super::gather::{Reader, Room, bucket, moved, piece_at, starts};
use super::plan::{Part, Plan, Source};
use crate::error::SimError;

/// How many times the references of the items may be decoded before it is better to write them once more.
pub const SCATTERED: u64 = 4;

/// The place of the spilled buckets.
pub struct Spilled {
    pub trace: Trace,
    /// Of each stream of the plan, its first bucket; its others follow in order.
    pub first: Vec<u32>,
}

/// A segment that is in no bucket of two or more.
const ALONE: u32 = u32::MAX;

/// The bucket of each segment, source by source.
struct Buckets {
    of: Vec<Vec<u32>>,
    first: Vec<u32>,
    count: u32,
}

fn buckets(plan: &Plan, room: Room) -> Result<Buckets, SimError> {
    let mut buckets = Buckets {
        of: Vec::new(),
        first: Vec::new(),
        count: 0,
    };
    for source in &plan.sources {
        let mut of = Vec::new();
        of.try_reserve_exact(source.cuts.len()).map_err(|_| no_memory())?;
        of.resize(source.cuts.len(), ALONE);
        buckets.of.push(of);
    }
    for stream in &plan.streams {
        buckets.first.push(buckets.count);
        let source = &plan.sources[stream.source as usize];
        for part in &stream.parts {
            let Part::Segments { mut first, mut count } = *part else {
                continue;
            };
            while count > 0 {
                let taken = bucket(source, first, count, room);
                if taken > 1 {
                    for &segment in &source.order[first..first + taken] {
                        buckets.of[stream.source as usize][segment as usize] = buckets.count;
                    }
                    buckets.count += 1;
                }
                first += taken;
                count -= taken;
            }
        }
    }
    Ok(buckets)
}

fn no_memory() -> SimError {
    SimError::Order("there is no memory for the order of the work items".to_string())
}

/// The references that gathering all buckets would decode, and those that it would take.
fn cost(trace: &Trace, thread: u32, source: &Source, of: &[u32], count: u32) -> (u64, u64) {
    let starts = starts(trace, thread);
    let mut last = vec![usize::MAX; count as usize];
    let (mut decoded, mut taken) = (0, 0);
    for (segment, &bucket) in of.iter().enumerate() {
        if bucket == ALONE {
            continue;
        }
        let (from, to) = source.segment(segment as u32);
        taken += to.refs - from.refs;
        let mut here = from;
        while here < to {
            let piece = piece_at(&starts, here);
            let bucket = bucket as usize;
            // The last piece that the bucket before has decoded is still there.
            let before = bucket.checked_sub(1).map(|before| last[before]);
            let there = last[bucket] == piece || last[bucket] == usize::MAX && before == Some(piece);
            last[bucket] = piece;
            if !there {
                decoded += starts[piece + 1].refs - starts[piece].refs;
            }
            here = starts[piece + 1];
        }
    }
    (decoded, taken)
}

/// Writes the buckets of a plan to a temporary file, if that is better than to gather them from the trace. `scattered`:
/// see [`SCATTERED`].
pub fn spill(trace: &Trace, plan: &Plan, room: Room, scattered: u64) -> Result<Option<Spilled>, SimError> {
    let buckets = buckets(plan, room)?;
    let (mut decoded, mut taken) = (0u64, 0u64);
    for (thread, source) in plan.sources.iter().enumerate() {
        let (more, own) = cost(trace, thread as u32, source, &buckets.of[thread], buckets.count);
        decoded += more;
        taken += own;
    }
    // This many buckets consist of short runs, which lie close together.
    let many = buckets.count as usize > trace::limits::THREADS;
    if many || decoded <= taken.saturating_mul(scattered) {
        return Ok(None);
    }
    let file = NamedTempFile::new().map_err(|error| {
        SimError::Order(format!(
            "cannot make a file in {} for the work in its new order: {error}; set TMPDIR",
            std::env::temp_dir().display()
        ))
    })?;
    let space = std::env::temp_dir();
    write(trace, plan, &buckets, &file).map_err(|error| match error {
        SimError::Trace(error) => SimError::Order(format!(
            "cannot write the work in its new order to {}: {error}; set TMPDIR to a folder with room for another {} bytes",
            space.display(),
            trace.bytes()
        )),
        error => error,
    })?;
    // An open file can be read after its name is gone.
    let spilled = Trace::open(file.path())?;
    Ok(Some(Spilled {
        trace: spilled,
        first: buckets.first,
    }))
}

fn write(trace: &Trace, plan: &Plan, buckets: &Buckets, file: &NamedTempFile) -> Result<(), SimError> {
    let header = Header {
        counts_instructions: trace.header().counts_instructions,
        has_fetches: trace.header().has_fetches,
        gaps: trace.header().gaps.clone(),
        ..Header::default()
    };
    let options = trace::Options {
        background: true,
        ..trace::Options::default()
    };
    let mut writer = Writer::create_with(file.path(), &header, options)?;
    // Processes, sites and stacks keep their numbers.
    let process = writer.process(Process::default());
    for _ in 1..trace.processes().len() {
        writer.process(Process::default());
    }
    for (number, site) in trace.sites().iter().enumerate() {
        if writer.site(*site) as usize != number {
            return Err(twice("site"));
        }
    }
    for (number, stack) in trace.stacks().iter().enumerate() {
        if writer.stack(stack.clone()) as usize != number {
            return Err(twice("call stack"));
        }
    }
    for _ in 0..buckets.count {
        writer.thread(Thread {
            process,
            ..Thread::default()
        });
    }
    for (thread, source) in plan.sources.iter().enumerate() {
        let mut reader = Reader::new(trace, thread as u32)?;
        for (segment, &bucket) in buckets.of[thread].iter().enumerate() {
            if bucket == ALONE {
                continue;
            }
            let (from, to) = source.segment(segment as u32);
            reader.read(from, to, |refs, events, before| {
                let mut done = 0;
                for timed in events {
                    let at = (timed.at - before) as usize;
                    writer.refs(bucket, &refs[done..at])?;
                    writer.event(bucket, moved(&timed.event))?;
                    done = at;
                }
                Ok(writer.refs(bucket, &refs[done..])?)
            })?;
        }
    }
    writer.finish()?;
    Ok(())
}

fn twice(what: &str) -> SimError {
    SimError::Order(format!(
        "the trace names the same {what} twice, so its work cannot be written in another order; record it again"
    ))
}
