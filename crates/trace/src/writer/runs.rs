//! Adding references as runs of bodies.

use super::Writer;
use crate::chunk::{Body, Coder};
use crate::error::TraceError;
use crate::limits;
use crate::model::{Op, Ref, ThreadId};

impl Writer {
    /// Adds references of a thread as runs of bodies: stretches of the program that are entered at
    /// their top, mostly run to their end, and known to `bodies` by their heads.
    ///
    /// A run is a head (`9` in the top four bits), then the addresses of the body's references (top bit clear). Runs
    /// are taken until one is incomplete, is followed by a word with `a` in its top four bits, is of a body that
    /// `bodies` does not know or that has wide references, would carry more than 255 instructions to a reference, or
    /// exceeds `most` references; that one is for the caller, as references or otherwise. `carried` are the thread's
    /// instructions since its last reference, kept up to date. A head must mean the same body for as long as the thread
    /// lives.
    ///
    /// Returns how many words and how many references were taken. References that are given by [`Writer::refs`] in
    /// between cost more than those in runs, but do not disturb them.
    pub fn runs<'b>(
        &mut self,
        thread: ThreadId,
        words: &[u64],
        carried: &mut u64,
        most: usize,
        bodies: &dyn Fn(u64) -> Option<Body<'b>>,
    ) -> Result<(usize, usize), TraceError> {
        self.check(thread)?;
        self.code(thread)?;
        let (mut at, mut refs) = (0, 0);
        loop {
            let buffer = &mut self.buffers[thread as usize];
            let Some(coder) = &mut buffer.coder else { break };
            let taken = coder.runs(&words[at..], carried, most - refs, bodies);
            at += taken.words;
            refs += taken.refs;
            self.weigh(thread);
            if taken.refs > 0 {
                self.run(thread, taken.refs as u64, 0)?;
            }
            if !taken.full {
                break;
            }
            self.chunk(thread)?;
            self.code(thread)?;
        }
        if self.buffered > self.options.buffered_refs {
            self.relieve()?;
        }
        Ok((at, refs))
    }

    /// From now on the thread's references are encoded as they arrive.
    fn code(&mut self, thread: ThreadId) -> Result<(), TraceError> {
        let buffer = &mut self.buffers[thread as usize];
        if buffer.coder.is_some() {
            return Ok(());
        }
        if buffer.refs.iter().any(|r| r.op == Op::Fetch) {
            self.chunk(thread)?;
        }
        let mut coder = self.coder.take().unwrap_or_default();
        coder.begin(self.encoded.take().unwrap_or_default());
        let buffer = &mut self.buffers[thread as usize];
        let refs = std::mem::take(&mut buffer.refs);
        self.buffered -= refs.len();
        buffer.coder = Some(coder);
        buffer.by_runs = true;
        self.singles(thread, &refs)
    }

    /// Adds references, none of them fetches, for which the chunk has room.
    fn singles(&mut self, thread: ThreadId, refs: &[Ref]) -> Result<(), TraceError> {
        if let Some(coder) = &mut self.buffers[thread as usize].coder {
            refs.iter().try_for_each(|r| coder.single(r))?;
        }
        self.weigh(thread);
        Ok(())
    }

    /// Adds references of a thread whose references come in runs. Returns those that cannot be added.
    pub(super) fn among_runs<'r>(&mut self, thread: ThreadId, refs: &'r [Ref]) -> Result<&'r [Ref], TraceError> {
        let mut rest = refs;
        while let Some(first) = rest.first() {
            if first.op == Op::Fetch {
                break;
            }
            self.code(thread)?;
            let fetch = rest.iter().position(|r| r.op == Op::Fetch).unwrap_or(rest.len());
            let buffer = &mut self.buffers[thread as usize];
            let room = limits::CHUNK_REFS - buffer.len();
            let (now, full) = buffer.fitting(&rest[..fetch], room);
            let (now, later) = rest.split_at(now);
            self.singles(thread, now)?;
            rest = later;
            if full {
                self.chunk(thread)?;
            }
        }
        if !rest.is_empty() {
            // The chunk ends: with fetches, runs are not worthwhile.
            self.chunk(thread)?;
            self.buffers[thread as usize].by_runs = false;
        }
        if self.buffered > self.options.buffered_refs {
            self.relieve()?;
        }
        Ok(rest)
    }

    /// Accounts for the memory of the thread's coder.
    fn weigh(&mut self, thread: ThreadId) {
        let buffer = &mut self.buffers[thread as usize];
        let weight = buffer.coder.as_ref().map_or(0, |coder| coder.weight());
        self.buffered = self.buffered - buffer.weight + weight;
        buffer.weight = weight;
    }

    /// The thread's chunk ends: its coder is free for the next thread.
    pub(super) fn uncode(&mut self, mut coder: Box<Coder>) -> crate::chunk::Encoded {
        let encoded = coder.begin(crate::chunk::Encoded::default());
        self.coder = Some(coder);
        encoded
    }
}
