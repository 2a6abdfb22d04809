//! Writes the cpus' references into a trace, on a separate thread.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use trace::{Event, Header, Op, Process, Ref, Thread, ThreadId, TraceError, Writer};

use crate::options::Options;
use crate::places::Places;

/// References of a batch: a megabyte of them, a chunk of the trace.
pub const BATCH: usize = trace::limits::CHUNK_REFS;
/// Batches that may wait for the scribe; beyond that cpus wait.
const WAITING: usize = 32;

/// The references of a cpu since its last hand-over.
#[derive(Default)]
pub struct Batch {
    pub refs: Vec<Ref>,
    /// Instructions that do not fit into a reference: before which one, and how many.
    pub work: Vec<(u32, u64)>,
    /// How many of the references are the kernel's.
    pub kernel: u64,
    pub instructions: u64,
    /// How many sites there are. The trace gets no more with this batch, so that equal runs give equal bytes.
    pub sites: usize,
}

impl Batch {
    /// Adds a reference that comes after this many instructions, including its own.
    #[inline(always)]
    pub fn add(&mut self, address: u64, site: u32, write: bool, size_bits: u32, instructions: u64, is_kernel: bool) {
        let most = u64::from(u8::MAX);
        if instructions > most {
            self.work.push((self.refs.len() as u32, instructions - most));
        }
        self.refs.push(Ref {
            addr: address,
            site,
            insns: instructions.min(most) as u8,
            op: if write { Op::Write } else { Op::Read },
            size: 1 << size_bits.min(7),
        });
        self.kernel += u64::from(is_kernel);
        self.instructions += instructions;
    }

    /// Keeps the first ones.
    pub fn truncate(&mut self, most: usize, places: &Places) {
        if most >= self.refs.len() {
            return;
        }
        self.refs.truncate(most);
        self.work.retain(|(at, _)| (*at as usize) < most);
        let sites = places.between(0, self.sites);
        let is_kernel = |r: &&Ref| sites.get(r.site as usize).is_some_and(|site| site.pc >> 63 == 1);
        self.kernel = self.refs.iter().filter(is_kernel).count() as u64;
        let beyond: u64 = self.work.iter().map(|(_, instructions)| instructions).sum();
        self.instructions = beyond + self.refs.iter().map(|r| u64::from(r.insns)).sum::<u64>();
    }

    fn clear(&mut self) {
        self.refs.clear();
        self.work.clear();
        (self.kernel, self.instructions) = (0, 0);
    }
}

enum Message {
    Batch(u32, Batch),
    End,
}

/// The connection to the scribe.
pub struct Scribe {
    to: SyncSender<Message>,
    /// Empty batches for reuse: new memory would cost its page faults.
    back: Mutex<Receiver<Batch>>,
    thread: JoinHandle<Result<Written, TraceError>>,
}

/// The totals of the written trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    pub references: u64,
    /// Of these, by instructions in the upper half of the addresses: the kernel's.
    pub kernel: u64,
    pub instructions: u64,
    pub bytes: u64,
    /// From the first records to the end.
    pub took: Duration,
}

/// Further counts of the cpus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// References to devices, and those without a physical address: left out.
    pub devices: u64,
    pub nowhere: u64,
    /// Physical addresses for which QEMU reports another value; `None` if it was not queried.
    pub wrong: Option<u64>,
}

impl Written {
    /// JSON, with the references that cpus left out or counted.
    pub fn report(&self, counts: &Counts) -> String {
        let mut text = String::from("{\n");
        let _ = writeln!(text, "  \"references\": {},", self.references);
        let _ = writeln!(text, "  \"kernel_references\": {},", self.kernel);
        let _ = writeln!(text, "  \"instructions\": {},", self.instructions);
        let _ = writeln!(text, "  \"device_references\": {},", counts.devices);
        let _ = writeln!(text, "  \"references_without_address\": {},", counts.nowhere);
        if let Some(wrong) = counts.wrong {
            let _ = writeln!(text, "  \"wrong_addresses\": {wrong},");
        }
        let _ = writeln!(text, "  \"bytes\": {},", self.bytes);
        let _ = writeln!(text, "  \"seconds\": {:.3}", self.took.as_secs_f64());
        text + "}\n"
    }
}

impl Scribe {
    pub fn start(options: &Options, places: Places) -> Result<Scribe, TraceError> {
        let writer = Writer::create(&options.trace, &header(options))?;
        let (to, from) = sync_channel(WAITING);
        let (give_back, back) = sync_channel(WAITING);
        let book = Book::new(writer, places);
        let thread = std::thread::Builder::new().name("scribe".to_string());
        let thread = thread.spawn(move || write_all(book, &from, &give_back));
        let thread = thread.map_err(|source| TraceError::Open {
            path: options.trace.clone(),
            source,
        })?;
        let back = Mutex::new(back);
        Ok(Scribe { to, back, thread })
    }

    /// Takes a cpu's references, and returns room for more. If the scribe has failed they are lost, which
    /// [`Scribe::end`] reports.
    pub fn take(&self, cpu: u32, batch: Batch) -> Batch {
        let _ = self.to.send(Message::Batch(cpu, batch));
        let back = self.back.lock().unwrap_or_else(PoisonError::into_inner);
        back.try_recv().unwrap_or_else(|_| Batch {
            refs: Vec::with_capacity(BATCH),
            ..Batch::default()
        })
    }

    pub fn end(self) -> Result<Written, TraceError> {
        let _ = self.to.send(Message::End);
        match self.thread.join() {
            Ok(written) => written,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn header(options: &Options) -> Header {
    let name = Path::new(&options.program);
    Header {
        program: name.to_string_lossy().into_owned(),
        origin: "capture qemu".to_string(),
        machine: "a whole machine: physical addresses, a thread for each cpu".to_string(),
        page_bytes: 4096,
        counts_instructions: true,
        has_pcs: true,
        ..Header::default()
    }
}

fn write_all(mut book: Book, from: &Receiver<Message>, back: &SyncSender<Batch>) -> Result<Written, TraceError> {
    let mut begun = None;
    // The receiver is dropped when a write fails: senders then do not wait.
    while let Ok(Message::Batch(cpu, mut batch)) = from.recv() {
        begun.get_or_insert_with(Instant::now);
        book.write(cpu, &batch)?;
        batch.clear();
        // If enough of them wait, it is freed.
        let _ = back.try_send(batch);
    }
    let mut written = book.end()?;
    written.took = begun.map_or(Duration::ZERO, |begun| begun.elapsed());
    Ok(written)
}

/// The trace that is written.
struct Book {
    writer: Writer,
    places: Places,
    /// Sites that the writer already has.
    sites: usize,
    /// By cpu.
    threads: Vec<Option<ThreadId>>,
    process: u32,
    written: Written,
}

impl Book {
    fn new(mut writer: Writer, places: Places) -> Book {
        let process = writer.process(Process {
            program: "machine".to_string(),
            ..Process::default()
        });
        Book {
            writer,
            places,
            sites: 0,
            threads: Vec::new(),
            process,
            written: Written::default(),
        }
    }

    fn thread(&mut self, cpu: u32) -> ThreadId {
        let at = cpu as usize;
        if at >= self.threads.len() {
            self.threads.resize(at + 1, None);
        }
        if let Some(thread) = self.threads[at] {
            return thread;
        }
        let thread = self.writer.thread(Thread {
            process: self.process,
            number: cpu.into(),
            name: format!("cpu {cpu}"),
            stack: None,
        });
        self.threads[at] = Some(thread);
        thread
    }

    fn write(&mut self, cpu: u32, batch: &Batch) -> Result<(), TraceError> {
        let thread = self.thread(cpu);
        // Before a reference was recorded its site got a number. The writer gives the same ones: each site is new.
        for site in self.places.between(self.sites, batch.sites) {
            self.writer.site(site);
            self.sites += 1;
        }
        let mut from = 0;
        for &(at, instructions) in &batch.work {
            self.writer.refs(thread, &batch.refs[from..at as usize])?;
            self.writer.event(thread, Event::Work { instructions })?;
            from = at as usize;
        }
        self.writer.refs(thread, &batch.refs[from..])?;
        self.written.references += batch.refs.len() as u64;
        self.written.kernel += batch.kernel;
        self.written.instructions += batch.instructions;
        Ok(())
    }

    fn end(self) -> Result<Written, TraceError> {
        let bytes = self.writer.finish()?.bytes;
        Ok(Written { bytes, ..self.written })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_become_references_with_their_sites_and_work() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            trace: folder.path().join("t.dtr"),
            ..Options::default()
        };
        let places = Places::default();
        let [user, kernel] = [0x40_1000, 0xffff_ffff_8100_0000];
        let scribe = Scribe::start(&options, places.clone()).unwrap();
        let mut batch = Batch::default();
        batch.add(0x1000, places.number(user, false, 3), false, 3, 3, false);
        batch.add(0x2000, places.number(kernel, true, 2), true, 2, 70_000, true);
        batch.sites = places.sites();
        let mut batch = scribe.take(0, batch);
        batch.add(0x1008, places.number(user, true, 3), true, 3, 1, false);
        batch.add(0x3000, places.number(0x40_2000, false, 0), false, 0, 2, false);
        batch.sites = places.sites();
        scribe.take(1, batch);
        let written = scribe.end().unwrap();
        assert_eq!(
            (written.references, written.kernel, written.instructions),
            (4, 1, 70_006)
        );
        assert!(written.bytes > 0);

        let trace = trace::Trace::open(&options.trace).unwrap();
        assert_eq!((trace.references(), trace.threads().len()), (4, 2));
        assert_eq!(trace.instructions(), Some(70_006));
        let pcs: Vec<(u64, Op, u16)> = trace.sites().iter().map(|site| (site.pc, site.op, site.size)).collect();
        assert_eq!(pcs.len(), 4);
        assert!(pcs.contains(&(0xffff_ffff_8100_0000, Op::Write, 4)) && pcs.contains(&(0x40_2000, Op::Read, 1)));
    }

    #[test]
    fn a_trace_that_cannot_be_created_is_an_error() {
        let options = Options {
            trace: "/nonexistent/t.dtr".into(),
            ..Options::default()
        };
        assert!(Scribe::start(&options, Places::default()).is_err());
    }

    #[test]
    fn of_a_batch_that_is_cut_what_is_left_counts() {
        let places = Places::default();
        let (user, kernel) = (places.number(0x40_1000, false, 3), places.number(1 << 63, false, 3));
        let mut batch = Batch::default();
        batch.add(0x1000, kernel, false, 3, 300, true);
        batch.add(0x1008, user, false, 3, 2, false);
        batch.add(0x1010, kernel, false, 3, 400, true);
        batch.sites = places.sites();
        batch.truncate(3, &places);
        assert_eq!((batch.refs.len(), batch.kernel, batch.instructions), (3, 2, 702));
        batch.truncate(2, &places);
        assert_eq!((batch.refs.len(), batch.kernel, batch.instructions), (2, 1, 302));
        assert_eq!(batch.work, [(0, 45)]);
    }

    #[test]
    fn the_report_says_what_was_asked_for() {
        let counts = Counts {
            devices: 3,
            nowhere: 1,
            wrong: None,
        };
        let written = Written {
            references: 9,
            ..Written::default()
        };
        assert!(!written.report(&counts).contains("wrong_addresses"));
        let checked = Counts {
            wrong: Some(0),
            ..counts
        };
        assert!(written.report(&checked).contains("\"wrong_addresses\": 0,"));
    }
}
