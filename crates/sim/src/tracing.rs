//! A trace as input: each thread's stream, decoded ahead on another thread of the host.

use std::collections::HashMap;

use trace::{Dependence, Misprediction, OrderStream, Pace, ThreadStream, Trace};

use crate::detail::Names;
use crate::engine::Traits;
use crate::error::SimError;
use crate::input::{Batch, Input, Run, ThreadAbout};
use crate::structures::Tables;

/// Batches that are decoded ahead of the simulation, over all threads of the trace: a bound on
/// memory (a batch is about 1 MiB).
const AHEAD: usize = 32;
/// Threads of the trace that are decoded ahead at the same time, each on a thread of the host. Others, and the only
/// remaining piece of a thread, are decoded when they are needed.
const OPEN: usize = 64;

pub struct TraceInput {
    trace: Trace,
    about: Vec<ThreadAbout>,
    /// The piece that comes next, of each thread.
    places: Vec<usize>,
    open: HashMap<u32, ThreadStream>,
    /// For all threads that are not open.
    here: Option<ThreadStream>,
    ahead: usize,
    order: OrderStream,
}

impl TraceInput {
    /// `spawned`: [`Trace::spawned`], asked once for all runs over the trace.
    pub fn new(trace: &Trace, spawned: &[bool]) -> Self {
        let about = |(thread, spawned): (&trace::Thread, &bool)| ThreadAbout {
            space: thread.process,
            spawned: *spawned,
        };
        let threads = trace.threads().len();
        TraceInput {
            about: trace.threads().iter().zip(spawned).map(about).collect(),
            places: vec![0; threads],
            open: HashMap::new(),
            here: None,
            ahead: (AHEAD / threads.max(1)).clamp(1, 4),
            order: trace.order(),
            trace: trace.clone(),
        }
    }

    /// Decodes a piece of a thread, or the one after it where a salvaged trace does not hold it; returns whether there was one, and which comes next.
    fn read(&mut self, thread: u32, piece: usize, batch: &mut Batch) -> Result<(bool, usize), SimError> {
        let here = match &mut self.here {
            Some(here) => here,
            none => none.insert(self.trace.thread(thread)?),
        };
        here.turn(thread, piece);
        Ok((here.next(batch)?, here.position()))
    }
}

impl Input for TraceInput {
    fn traits(&self) -> Traits {
        Traits::of(self.trace.header())
    }

    fn dependences(&self) -> &[Dependence] {
        self.trace.dependences().unwrap_or_default()
    }

    fn threads(&self) -> &[ThreadAbout] {
        &self.about
    }

    fn next(&mut self, thread: u32, batch: &mut Batch) -> Result<bool, SimError> {
        let place = self.places[thread as usize];
        let pieces = self.trace.pieces(thread).len();
        if !self.open.contains_key(&thread) && place + 1 < pieces && self.open.len() < OPEN {
            let mut stream = self.trace.thread(thread)?;
            stream.seek(place);
            self.open.insert(thread, stream.ahead(self.ahead));
        }
        let (more, place) = match self.open.get_mut(&thread) {
            Some(stream) => (stream.next(batch)?, stream.position()),
            None => self.read(thread, place, batch)?,
        };
        self.places[thread as usize] = place;
        // In recorded order a thread that has handed over all is not asked whether there is more.
        if !more || place >= pieces {
            self.open.remove(&thread);
        }
        Ok(more)
    }

    fn repeats(&self) -> bool {
        true
    }

    fn warmed(&self) -> bool {
        self.trace.header().chosen.as_ref().is_some_and(|chosen| chosen.warmed)
    }

    fn is_whole(&self) -> bool {
        self.trace.header().chosen.as_ref().is_none_or(|chosen| {
            // There is little before `main`.
            let from_main = chosen.from.as_deref().is_none_or(|from| from == "main");
            from_main && chosen.skipped == 0
        })
    }

    fn of_references(&self) -> Option<u64> {
        self.trace.header().chosen.as_ref()?.of_references
    }

    fn paces(&self) -> &[Pace] {
        self.trace.paces()
    }

    fn mispredictions(&self) -> &[Misprediction] {
        self.trace.mispredictions()
    }

    fn again(&mut self, thread: u32, batch: &mut Batch) -> Result<(), SimError> {
        let last = self.places[thread as usize].saturating_sub(1);
        self.read(thread, last, batch)?;
        Ok(())
    }

    fn next_run(&mut self) -> Result<Option<Run>, SimError> {
        let run = self.order.next().transpose()?;
        Ok(run.map(|run| Run {
            thread: run.thread,
            items: run.refs + run.events,
        }))
    }

    fn names(&self) -> Names<'_> {
        Names {
            tables: Tables {
                processes: self.trace.processes(),
                threads: self.trace.threads(),
                modules: self.trace.modules(),
                symbols: self.trace.symbols(),
                arrays: self.trace.arrays(),
                stacks: self.trace.stacks(),
                locations: self.trace.locations(),
            },
            sites: self.trace.sites(),
            dependences: self.trace.dependences(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use trace::{Header, Op, Options, Process, Ref, Site, Thread, Writer};

    use super::*;

    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// `threads` threads of two pieces each, whose addresses tell their thread.
    fn trace(threads: u32) -> Trace {
        let out = Memory::default();
        let mut writer = Writer::new(out.clone(), &Header::default(), Options::default()).unwrap();
        let process = writer.process(Process::default());
        let (op, size) = (Op::Read, 8);
        let site = writer.site(Site { pc: 0, op, size });
        for piece in 0..2 {
            for number in 0..threads {
                let thread = match piece {
                    0 => writer.thread(Thread {
                        process,
                        number: number.into(),
                        ..Thread::default()
                    }),
                    _ => number,
                };
                let addr = u64::from(2 * number + piece);
                let reference = Ref {
                    addr,
                    site,
                    insns: 1,
                    op,
                    size,
                };
                writer.push(thread, reference).unwrap();
            }
            writer.flush().unwrap();
        }
        writer.finish().unwrap();
        let bytes = std::mem::take(&mut *out.0.lock().unwrap());
        Trace::from_bytes(bytes).unwrap()
    }

    #[test]
    fn few_of_many_threads_are_open_and_none_in_the_end() {
        const THREADS: u32 = 3 * OPEN as u32;
        let trace = trace(THREADS);
        let mut input = TraceInput::new(&trace, &vec![false; THREADS as usize]);
        let mut batch = Batch::default();
        for piece in 0..2 {
            for thread in 0..THREADS {
                assert!(input.next(thread, &mut batch).unwrap());
                assert_eq!(batch.refs[0].addr, u64::from(2 * thread + piece));
                assert!(input.open.len() <= OPEN);
                let mut again = Batch::default();
                input.again(thread, &mut again).unwrap();
                assert_eq!(batch, again);
            }
            // Nobody asks whether there is more.
            assert_eq!(input.open.len(), if piece == 0 { OPEN } else { 0 });
        }
        for thread in 0..THREADS {
            assert!(!input.next(thread, &mut batch).unwrap());
        }
        assert!(input.open.is_empty());
    }
}
