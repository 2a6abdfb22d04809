//! What cpus recorded becomes references of a trace, on a thread of its own.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use trace::{Event, Header, Op, Process, Ref, Site, SiteId, Thread, ThreadId, TraceError, Writer};

use crate::options::Options;

/// Records of a buffer: a megabyte of them.
pub const BATCH: usize = 1 << 16;
/// Buffers that may wait for the scribe; then cpus wait.
const WAITING: usize = 32;
/// Sizes of references are powers of two, up to 2^7 bytes.
const SIZES: usize = 8;
/// Kinds of references of an instruction: reads and writes of each size.
const KINDS: usize = 2 * SIZES;

/// A reference, as a cpu records it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Physical.
    pub address: u64,
    /// The instruction's number.
    pub instruction: u32,
    /// Instructions since the reference before.
    pub instructions: u16,
    pub write: bool,
    /// The size is two to the power of this.
    pub size_bits: u8,
}

enum Message {
    Records(u32, Vec<Record>),
    End,
}

/// The program counters of instructions, by their numbers.
#[derive(Clone, Default)]
pub struct Instructions(Arc<RwLock<Vec<u64>>>);

impl Instructions {
    pub fn push(&self, pc: u64) -> u32 {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.push(pc);
        all.len() as u32 - 1
    }

    /// Those from a number on.
    fn since(&self, number: usize) -> Vec<u64> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(number..).map_or_else(Vec::new, <[u64]>::to_vec)
    }
}

/// The way to the scribe.
pub struct Scribe {
    to: SyncSender<Message>,
    thread: JoinHandle<Result<Written, TraceError>>,
}

/// What was written.
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

impl Written {
    /// JSON, with what cpus left out: references to devices, and such without a physical address.
    pub fn report(&self, devices: u64, nowhere: u64) -> String {
        let mut text = String::from("{\n");
        let _ = writeln!(text, "  \"references\": {},", self.references);
        let _ = writeln!(text, "  \"kernel_references\": {},", self.kernel);
        let _ = writeln!(text, "  \"instructions\": {},", self.instructions);
        let _ = writeln!(text, "  \"device_references\": {devices},");
        let _ = writeln!(text, "  \"references_without_address\": {nowhere},");
        let _ = writeln!(text, "  \"bytes\": {},", self.bytes);
        let _ = writeln!(text, "  \"seconds\": {:.3}", self.took.as_secs_f64());
        text + "}\n"
    }
}

impl Scribe {
    pub fn start(options: &Options, instructions: Instructions) -> Result<Scribe, TraceError> {
        let writer = Writer::create(&options.trace, &header(options))?;
        let (to, from) = sync_channel(WAITING);
        let book = Book::new(writer, instructions);
        let thread = std::thread::Builder::new().name("scribe".to_string());
        let thread = thread.spawn(move || write_all(book, &from));
        let thread = thread.map_err(|source| TraceError::Open {
            path: options.trace.clone(),
            source,
        })?;
        Ok(Scribe { to, thread })
    }

    /// Takes a cpu's records. Where the scribe has failed they are lost, which [`Scribe::end`] says.
    pub fn take(&self, cpu: u32, records: Vec<Record>) {
        let _ = self.to.send(Message::Records(cpu, records));
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

fn write_all(mut book: Book, from: &Receiver<Message>) -> Result<Written, TraceError> {
    let mut begun = None;
    // The receiver goes where a write fails: who sends does not wait then.
    while let Ok(Message::Records(cpu, records)) = from.recv() {
        begun.get_or_insert_with(Instant::now);
        book.write(cpu, &records)?;
    }
    let mut written = book.end()?;
    written.took = begun.map_or(Duration::ZERO, |begun| begun.elapsed());
    Ok(written)
}

/// The trace that is written.
struct Book {
    writer: Writer,
    instructions: Instructions,
    /// By cpu.
    threads: Vec<Option<ThreadId>>,
    process: u32,
    /// By instruction and kind: the site plus one.
    sites: Vec<SiteId>,
    /// Program counters by instruction, as far as they were asked for.
    pcs: Vec<u64>,
    refs: Vec<Ref>,
    written: Written,
}

impl Book {
    fn new(mut writer: Writer, instructions: Instructions) -> Book {
        let process = writer.process(Process {
            program: "machine".to_string(),
            ..Process::default()
        });
        Book {
            writer,
            instructions,
            threads: Vec::new(),
            process,
            sites: Vec::new(),
            pcs: Vec::new(),
            refs: Vec::with_capacity(BATCH),
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

    fn site(&mut self, record: &Record) -> SiteId {
        let kind = usize::from(record.write) * SIZES + usize::from(record.size_bits).min(SIZES - 1);
        let at = record.instruction as usize * KINDS + kind;
        if at >= self.sites.len() {
            self.sites.resize(at + KINDS, 0);
        }
        if self.sites[at] == 0 {
            let (op, size) = shape(record);
            let pc = self.pcs.get(record.instruction as usize).copied().unwrap_or(0);
            self.sites[at] = self.writer.site(Site { pc, op, size }) + 1;
        }
        self.sites[at] - 1
    }

    fn write(&mut self, cpu: u32, records: &[Record]) -> Result<(), TraceError> {
        let thread = self.thread(cpu);
        // Whoever recorded an instruction had given it a number before.
        self.pcs.extend(self.instructions.since(self.pcs.len()));
        for record in records {
            let mut instructions = u64::from(record.instructions);
            self.written.instructions += instructions;
            if instructions > u64::from(u8::MAX) {
                let refs = std::mem::take(&mut self.refs);
                self.writer.refs(thread, &refs)?;
                self.refs = refs;
                self.refs.clear();
                let most = u64::from(u8::MAX);
                self.writer.event(
                    thread,
                    Event::Work {
                        instructions: instructions - most,
                    },
                )?;
                instructions = most;
            }
            let site = self.site(record);
            let (op, size) = shape(record);
            let pc = self.pcs.get(record.instruction as usize);
            self.written.kernel += u64::from(pc.is_some_and(|pc| pc >> 63 == 1));
            self.refs.push(Ref {
                addr: record.address,
                site,
                insns: instructions as u8,
                op,
                size,
            });
        }
        self.writer.refs(thread, &self.refs)?;
        self.refs.clear();
        self.written.references += records.len() as u64;
        Ok(())
    }

    fn end(self) -> Result<Written, TraceError> {
        let bytes = self.writer.finish()?.bytes;
        Ok(Written { bytes, ..self.written })
    }
}

fn shape(record: &Record) -> (Op, u16) {
    let op = if record.write { Op::Write } else { Op::Read };
    (op, 1 << record.size_bits.min(SIZES as u8 - 1))
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
        let instructions = Instructions::default();
        let [user, kernel] = [0x40_1000, 0xffff_ffff_8100_0000].map(|pc| instructions.push(pc));
        let scribe = Scribe::start(&options, instructions.clone()).unwrap();
        let record = |address, instruction, count, write, size_bits| Record {
            address,
            instruction,
            instructions: count,
            write,
            size_bits,
        };
        let later = instructions.push(0x40_2000);
        scribe.take(
            0,
            vec![record(0x1000, user, 3, false, 3), record(0x2000, kernel, 1000, true, 2)],
        );
        scribe.take(
            1,
            vec![record(0x1008, user, 1, true, 3), record(0x3000, later, 2, false, 0)],
        );
        let written = scribe.end().unwrap();
        assert_eq!((written.references, written.kernel, written.instructions), (4, 1, 1006));
        assert!(written.bytes > 0);

        let trace = trace::Trace::open(&options.trace).unwrap();
        assert_eq!((trace.references(), trace.threads().len()), (4, 2));
        assert_eq!(trace.instructions(), Some(1006));
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
        assert!(Scribe::start(&options, Instructions::default()).is_err());
    }
}
