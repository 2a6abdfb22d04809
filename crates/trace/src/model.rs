//! The record: references, events, and the tables that name them.

use serde::{Deserialize, Serialize};

/// Index into the trace's table of threads.
pub type ThreadId = u32;
/// Index into the trace's table of sites.
pub type SiteId = u32;
/// Index into the trace's table of stacks.
pub type StackId = u32;

/// The kind of access of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Op {
    Read = 0,
    Write = 1,
    /// A read and a write of the same bytes by one instruction (`add %eax,(mem)`, `lock xadd`).
    Modify = 2,
    /// An instruction fetch.
    Fetch = 3,
    /// A software prefetch: a hint that the program will soon use the line of this address. It reads nothing and never
    /// faults; `size` is 1, because the machine determines the bytes of a line.
    Prefetch = 4,
}

/// The place in the program that makes a reference. Traces without program counters use `pc: 0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    pub pc: u64,
    pub op: Op,
    /// Bytes touched, 1 to 65535.
    pub size: u16,
}

/// One reference, 16 bytes, ready to simulate; `op` and `size` repeat those of its site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Ref {
    /// Virtual address in the address space of the thread's process.
    pub addr: u64,
    pub site: SiteId,
    /// Instructions executed since the thread's previous reference, including the one that makes this reference. 0 if
    /// the trace does not count instructions, or if one instruction makes several references. Longer runs are
    /// [`Event::Work`].
    pub insns: u8,
    pub op: Op,
    pub size: u16,
}

/// Something other than a reference, at its place in its thread's stream.
///
/// `object` numbers are addresses (of a mutex, a barrier ...) made unique per process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// Instructions executed without a reference, beyond what [`Ref::insns`] can hold.
    Work {
        instructions: u64,
    },
    /// Memory was allocated: `[addr, addr + bytes)` now belongs to the allocation site `stack`.
    Alloc {
        addr: u64,
        bytes: u64,
        stack: StackId,
        kind: Allocation,
    },
    Free {
        addr: u64,
    },
    /// The thread waits until `threads` threads have come to this barrier.
    Barrier {
        object: u64,
        threads: u32,
    },
    /// Mutual exclusion; the simulator grants it in the order of its own clocks.
    Lock {
        object: u64,
    },
    Unlock {
        object: u64,
    },
    /// One thread may continue only after another has reached a point: `Wait` continues when the `Post` with the same
    /// `ticket` has happened (semaphores, condition variables, futexes, `wait(2)`). Tickets are unique in a trace.
    Post {
        ticket: u64,
    },
    Wait {
        ticket: u64,
    },
    /// The thread `child` may start.
    Spawn {
        child: ThreadId,
    },
    /// The thread continues when `child` has ended.
    Join {
        child: ThreadId,
    },
    /// The last event of a thread.
    Exit,
    /// The program entered a phase that it named.
    Phase {
        name: String,
    },
    /// A work item with its hints begins or ends (nesting is not allowed).
    WorkBegin {
        hints: Vec<u64>,
    },
    WorkEnd,
    /// A representative window begins; references before it were not recorded.
    Window {
        index: u32,
    },
    /// The counted part of window `index` begins; references since the window began warm caches. A trace has this
    /// either for all windows or for none.
    Counted {
        index: u32,
    },
    /// The program defined cache slot `slot`, of `bytes` in each shared cache (Ding11, section 3.1): private to its
    /// data sets, or shared by data with weak locality. Numbers of slots and of data sets are the program's own, made
    /// unique per process.
    Slot {
        slot: u64,
        bytes: u64,
        private: bool,
    },
    /// The slot no longer exists: its colors are free once no data set has them.
    SlotFree {
        slot: u64,
    },
    /// `[addr, addr + bytes)` belongs to data set `set` from now on.
    DataRange {
        set: u64,
        addr: u64,
        bytes: u64,
    },
    /// `thread` uses the data set. Without named threads, all threads use it.
    DataThread {
        set: u64,
        thread: ThreadId,
    },
    /// The data set, with the ranges and threads named so far, gets the colors of `slot`; without a slot it is not
    /// worth caching and gets the smallest number of colors.
    Allocate {
        set: u64,
        slot: Option<u64>,
    },
    /// The data set no longer exists; its pages may have any color again. The memory itself is not freed by this.
    DataFree {
        set: u64,
    },
    /// The compiler's summary of the arrays of one parallel loop (Bugnion96, section 5.1): a
    /// `policy::cdpc::Loop` as JSON. It comes before the loop runs for the first time with these arrays and bounds.
    Summary {
        text: String,
    },
    /// The thread, a master, begins its part of a parallel region with a team of `threads`, including itself (0 if
    /// unknown; a recording has none of 1). The [`Event::Post`] before it makes the others start. Teams nest.
    TeamBegin {
        object: u64,
        threads: u32,
    },
    /// The master is alone again: the [`Event::Wait`]s for the others' last [`Event::Post`]s came right before.
    TeamEnd {
        object: u64,
    },
    /// A sample: the thread has this call stack at its next reference. The innermost frame is where the code that makes
    /// it begins.
    Called {
        stack: StackId,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Allocation {
    /// malloc, calloc, realloc, operator new ...
    Heap,
    /// mmap, without a file.
    Map,
    /// mmap of a file; the table of modules names it.
    File,
    Stack,
}

/// An event and its place: before reference number `at` of its thread (counted in the chunk or
/// batch that holds it), and number `order` in the whole trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    pub at: u32,
    pub order: u64,
    pub event: Event,
}

impl Header {
    /// The origin of a trace that Domicile's recorder wrote.
    pub const RECORDED: &str = "record";
}

/// The description of the trace. Written first; tables that grow are written as they grow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Name of the program and its arguments; for an import, the file.
    pub program: String,
    pub arguments: Vec<String>,
    /// The tool that wrote it: `record` or `import text` ...
    pub origin: String,
    /// Name and cpus of the machine it was recorded on, for people to read.
    pub machine: String,
    pub page_bytes: u64,
    /// True if `Ref::insns` counts, so that instructions are known.
    pub counts_instructions: bool,
    /// True if instruction fetches are in the stream.
    pub has_fetches: bool,
    /// True if sites have program counters.
    pub has_pcs: bool,
    /// The chosen part of the run, if it is not all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Chosen>,
    /// The parts that an importer found missing from the chosen part, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps: Option<Gaps>,
}

/// The parts that another tool's recording, or its importer, left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gaps {
    /// True if fetches are missing because a small cache of the recorder filtered them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub filtered_fetches: bool,
    /// The same for data references.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub filtered_data: bool,
    /// True if the recorder recorded instruction fetches only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_data: bool,
    /// The work of the operating system's kernel for the program, which the importer left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelPart>,
    /// Unknown records that the importer skipped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<Unknown>,
    /// Names of other files among those of the trace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_files: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelPart {
    pub instructions: u64,
    /// Of data.
    pub references: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unknown {
    /// Such as `record type 60`.
    pub what: String,
    pub count: u64,
}

/// The part of a run that a trace should contain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    /// The function that a process had to enter first; `None`: its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The requested length of the recording, from there; `None`: to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// References passed over at the beginning.
    pub skipped: u64,
    /// Requested windows; 1 if there is one, from the end of the skipped part.
    pub windows: u32,
    /// References in each window; `None`: to the end of the run.
    pub references: Option<u64>,
    /// True if each window has an [`Event::Counted`], before which caches are warmed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warmed: bool,
    /// References that the program made from where recording began to where it ended; `None`: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_references: Option<u64>,
}

/// One address space.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    /// Index into the table of processes.
    pub parent: Option<u32>,
    pub program: String,
    pub arguments: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// Index into the table of processes.
    pub process: u32,
    /// The number that the program's environment gives it (the text format's thread column, a tid).
    pub number: u64,
    pub name: String,
    /// The addresses of its stack, if known: `[low, high)`.
    pub stack: Option<(u64, u64)>,
}

/// A file that was mapped into a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    pub process: u32,
    pub path: String,
    pub start: u64,
    pub bytes: u64,
    /// The difference between an address and the file's own virtual address.
    pub bias: u64,
    pub build_id: String,
}

/// A named piece of static data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Symbol {
    pub process: u32,
    pub name: String,
    pub addr: u64,
    pub bytes: u64,
    pub file: Option<String>,
    pub line: Option<u32>,
    /// Fields of its type with their offset and size, outermost first (`.hits[3].count`), where
    /// DWARF says; used to name the two sides of a false sharing.
    pub fields: Vec<(u64, u64, String)>,
}

/// An array that the program declared by a client request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Array {
    pub process: u32,
    pub name: String,
    pub addr: u64,
    pub bytes: u64,
}

/// How long the instructions around a site take without misses: those that come before a reference of the site,
/// including its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(SiteId, u32)", into = "(SiteId, u32)")]
pub struct Pace {
    pub site: SiteId,
    /// Clocks that 1024 instructions take, because they wait for each other or for their lines of code, on a processor
    /// of unlimited width.
    pub clocks: u32,
}

impl From<(SiteId, u32)> for Pace {
    fn from((site, clocks): (SiteId, u32)) -> Pace {
        Pace { site, clocks }
    }
}

impl From<Pace> for (SiteId, u32) {
    fn from(pace: Pace) -> (SiteId, u32) {
        (pace.site, pace.clocks)
    }
}

/// Branches that a processor mispredicts between a reference of a site and the previous one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(SiteId, u32, Vec<SiteId>)", into = "(SiteId, u32, Vec<SiteId>)")]
pub struct Misprediction {
    pub site: SiteId,
    /// How many there are in 1024 references of the site.
    pub per_1024: u32,
    /// The loads that decide these branches.
    pub on: Vec<SiteId>,
}

impl From<(SiteId, u32, Vec<SiteId>)> for Misprediction {
    fn from((site, per_1024, on): (SiteId, u32, Vec<SiteId>)) -> Misprediction {
        Misprediction { site, per_1024, on }
    }
}

impl From<Misprediction> for (SiteId, u32, Vec<SiteId>) {
    fn from(of: Misprediction) -> (SiteId, u32, Vec<SiteId>) {
        (of.site, of.per_1024, of.on)
    }
}

/// A call stack, innermost frame first: program counters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stack {
    pub process: u32,
    pub frames: Vec<Frame>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    pub pc: u64,
}

/// The place in the source of a program counter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    pub process: u32,
    pub pc: u64,
    pub function: String,
    pub file: Option<String>,
    pub line: Option<u32>,
    /// The functions that `function` is inlined into, innermost first, each with the place of the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined_into: Vec<Inlined>,
}

/// A function into which the compiler has inlined another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inlined {
    pub function: String,
    pub file: Option<String>,
    pub line: Option<u32>,
}
