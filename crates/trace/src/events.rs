//! Events without references: what readers want to know before they begin.

use crate::error::TraceError;
use crate::model::{Event, ThreadId, Timed};
use crate::reader::Trace;
use crate::stream::{Batch, Chunks};

impl Trace {
    /// Whether each thread is started by a [`Event::Spawn`] of the trace. Reads the chunks that
    /// hold events, and none where there is but one thread.
    pub fn spawned(&self) -> Result<Vec<bool>, TraceError> {
        let mut spawned = vec![false; self.threads().len()];
        if spawned.len() < 2 {
            return Ok(spawned);
        }
        for thread in 0..spawned.len() {
            self.each_event(thread as ThreadId, |timed| {
                if let Event::Spawn { child } = timed.event
                    && let Some(started) = spawned.get_mut(child as usize)
                {
                    *started = true;
                }
            })?;
        }
        Ok(spawned)
    }

    /// Calls `visit` for the events of a thread; chunks without events are passed over.
    fn each_event(&self, thread: ThreadId, mut visit: impl FnMut(&Timed)) -> Result<(), TraceError> {
        let mut chunks = Chunks::new(self.clone(), thread);
        let mut batch = Batch::default();
        for (number, entry) in self.chunks(thread).iter().enumerate() {
            if entry.head.events == 0 {
                continue;
            }
            chunks.seek(number);
            if chunks.next(&mut batch)? {
                batch.events.iter().for_each(&mut visit);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Event, Header, Process, Thread, Trace, Writer};

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
        writer.finish().unwrap();
        assert_eq!(Trace::open(&path).unwrap().spawned().unwrap(), [false, false, true]);
    }
}
