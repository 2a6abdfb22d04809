//! Adding references without copying them: the caller appends to the thread's own buffer.

use super::Writer;
use crate::error::TraceError;
use crate::limits;
use crate::model::{Ref, ThreadId};

impl Writer {
    /// Lends the buffer of a thread, so that references can be appended to its contents (which must stay unchanged). It
    /// returns by [`Writer::give_back`]; until then the thread can receive neither references nor events, and nothing
    /// can be flushed or finished.
    ///
    /// It is best returned when it holds [`limits::CHUNK_REFS`] references, or little more.
    pub fn lend(&mut self, thread: ThreadId) -> Result<Vec<Ref>, TraceError> {
        self.check(thread)?;
        if self.buffers[thread as usize].coder.is_some() {
            self.chunk(thread)?;
        }
        let buffer = &mut self.buffers[thread as usize];
        if buffer.refs.capacity() == 0
            && let Some(spare) = self.spare.take()
        {
            buffer.refs = spare;
        }
        buffer.lent = Some(buffer.refs.len());
        Ok(std::mem::take(&mut buffer.refs))
    }

    /// Takes back the buffer from [`Writer::lend`], with more references.
    pub fn give_back(&mut self, thread: ThreadId, mut refs: Vec<Ref>) -> Result<(), TraceError> {
        let lent = self.buffers.get_mut(thread as usize).and_then(|b| b.lent.take());
        let Some(new) = lent.and_then(|held| refs.len().checked_sub(held)) else {
            return Err(TraceError::Refused(format!(
                "what thread {thread} gives back was not lent to it"
            )));
        };
        if new > 0 {
            self.run(thread, new as u64, 0)?;
            self.buffered += new;
        }
        let mut held = refs.len() - new;
        loop {
            let room = limits::CHUNK_REFS.saturating_sub(held);
            let (more, full) = self.buffers[thread as usize].fitting(&refs[held..], room);
            if !full {
                break;
            }
            let mut rest = self.spare.take().unwrap_or_default();
            rest.extend_from_slice(&refs[held + more..]);
            refs.truncate(held + more);
            self.buffers[thread as usize].refs = refs;
            self.chunk(thread)?;
            (refs, held) = (rest, 0);
        }
        self.buffers[thread as usize].refs = refs;
        if self.buffered > self.options.buffered_refs {
            self.relieve()?;
        }
        Ok(())
    }
}
