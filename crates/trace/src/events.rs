//! Events without references: what readers need to know before they begin.

use crate::error::TraceError;
use crate::model::{Event, ThreadId};
use crate::reader::Trace;
use crate::stream::Chunks;

impl Trace {
    /// For each thread, true if a [`Event::Spawn`] of the trace starts it. Reads the chunks that hold events, or none
    /// if there is only one thread.
    pub fn spawned(&self) -> Result<Vec<bool>, TraceError> {
        let mut spawned = vec![false; self.threads().len()];
        if spawned.len() < 2 {
            return Ok(spawned);
        }
        for thread in 0..spawned.len() {
            self.each_event(thread as ThreadId, |_, event| {
                if let Event::Spawn { child } = *event
                    && let Some(started) = spawned.get_mut(child as usize)
                {
                    *started = true;
                }
            })?;
        }
        Ok(spawned)
    }

    /// Work items that the program marked, those without an end included. Reads the chunks that hold events.
    pub fn work_items(&self) -> Result<u64, TraceError> {
        let mut items = 0;
        for thread in 0..self.threads().len() {
            self.each_event(thread as ThreadId, |_, event| {
                items += u64::from(matches!(event, Event::WorkBegin { .. }));
            })?;
        }
        Ok(items)
    }

    /// Allocations of data sets to cache slots, and data sets marked as not worth caching: how often the program did
    /// either. Reads the chunks that hold events.
    pub fn data_sets(&self) -> Result<u64, TraceError> {
        let mut allocated = 0;
        for thread in 0..self.threads().len() {
            self.each_event(thread as ThreadId, |_, event| {
                allocated += u64::from(matches!(event, Event::Allocate { .. }));
            })?;
        }
        Ok(allocated)
    }

    /// Names of the phases that the program named, each once, in the order of the threads and of their streams. Reads the
    /// chunks that hold events.
    pub fn phases(&self) -> Result<Vec<String>, TraceError> {
        let mut phases: Vec<String> = Vec::new();
        for thread in 0..self.threads().len() {
            self.each_event(thread as ThreadId, |_, event| {
                if let Event::Phase { name } = event
                    && !phases.contains(name)
                {
                    phases.push(name.clone());
                }
            })?;
        }
        Ok(phases)
    }

    /// Calls `visit` for the events of a thread in order, each with the references of the thread before it. Chunks
    /// without events are skipped, and references are not decoded.
    pub fn each_event(&self, thread: ThreadId, mut visit: impl FnMut(u64, &Event)) -> Result<(), TraceError> {
        let mut chunks = Chunks::new(self.clone(), thread);
        let mut events = Vec::new();
        let mut before = 0;
        for &entry in self.chunks(thread) {
            if entry.head.events > 0 {
                match chunks.events(entry, &mut events) {
                    Ok(()) => events
                        .iter()
                        .for_each(|timed| visit(before + u64::from(timed.at), &timed.event)),
                    // The stream skips such a chunk, too.
                    Err(error) if self.tables.salvage && !matches!(error, TraceError::Read { .. }) => {
                        self.tables.skip(error.to_damage(entry.offset));
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            before += u64::from(entry.head.count);
        }
        Ok(())
    }

    /// The pieces in which a thread's stream comes: one for each [`crate::Batch`], in order.
    pub fn pieces(&self, thread: ThreadId) -> impl ExactSizeIterator<Item = Piece> + '_ {
        self.chunks(thread).iter().map(|entry| Piece {
            refs: entry.head.count,
            events: entry.head.events,
        })
    }
}

/// References and events of one piece of a thread's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub refs: u32,
    pub events: u32,
}

#[cfg(test)]
mod tests {
    use crate::{Batch, Event, Header, Op, Piece, Process, Ref, Site, Thread, Trace, Writer};

    #[test]
    fn events_come_with_the_references_before_them_and_pieces_can_be_sought() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seek.trace");
        let mut writer = Writer::create(&path, &Header::default()).unwrap();
        let process = writer.process(Process::default());
        let thread = writer.thread(Thread {
            process,
            ..Thread::default()
        });
        let (op, size) = (Op::Read, 8);
        let site = writer.site(Site { pc: 0, op, size });
        let length = crate::limits::CHUNK_REFS as u64 + 10;
        let places = [0, 5, length - 3, length];
        for addr in 0..=length {
            if places.contains(&addr) {
                writer.event(thread, Event::Phase { name: addr.to_string() }).unwrap();
            }
            if addr < length {
                let insns = 0;
                writer
                    .push(
                        thread,
                        Ref {
                            addr,
                            site,
                            insns,
                            op,
                            size,
                        },
                    )
                    .unwrap();
            }
        }
        writer.finish().unwrap();
        let trace = Trace::open(&path).unwrap();
        let mut seen = Vec::new();
        trace
            .each_event(thread, |before, event| {
                assert_eq!(
                    *event,
                    Event::Phase {
                        name: before.to_string()
                    }
                );
                seen.push(before);
            })
            .unwrap();
        assert_eq!(seen, places);
        let refs = crate::limits::CHUNK_REFS as u32;
        assert_eq!(
            trace.pieces(thread).collect::<Vec<_>>(),
            [Piece { refs, events: 2 }, Piece { refs: 10, events: 2 }]
        );
        let (mut stream, mut batch) = (trace.thread(thread).unwrap(), Batch::default());
        for (piece, first) in [(1, u64::from(refs)), (0, 0), (1, u64::from(refs))] {
            stream.seek(piece);
            assert!(stream.next(&mut batch).unwrap());
            assert_eq!(batch.refs[0].addr, first);
        }
        stream.seek(2);
        assert!(!stream.next(&mut batch).unwrap());
    }

    #[test]
    fn threads_that_a_spawn_names_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spawn.trace");
        let mut writer = Writer::create(&path, &Header::default()).unwrap();
        let process = writer.process(Process::default());
        let threads: Vec<_> = (0..3)
            .map(|_| {
                writer.thread(Thread {
                    process,
                    ..Thread::default()
                })
            })
            .collect();
        writer.event(threads[0], Event::Spawn { child: threads[2] }).unwrap();
        for thread in [0, 2, 2] {
            let hints = vec![1, 2];
            writer.event(threads[thread], Event::WorkBegin { hints }).unwrap();
        }
        writer.finish().unwrap();
        let trace = Trace::open(&path).unwrap();
        assert_eq!(trace.spawned().unwrap(), [false, false, true]);
        assert_eq!(trace.work_items().unwrap(), 3);
    }
}
