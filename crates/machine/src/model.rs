//! The description of a machine, as plain data.
//!
//! Latencies are in nanoseconds and are totals: the whole wait, beyond the instruction itself, of a reference that is
//! served *there*. They are not added up level by level.

use serde::Serialize;

/// A multiprocessor: its clock, cpus, caches, TLB and memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    pub name: String,
    pub clock_mhz: f64,
    /// Bytes in a page; a power of two.
    pub page_bytes: u64,
    /// Number of cpus, 1 to 128.
    pub cpus: u32,
    /// Kinds of cache, ordered by level (the file's order within a level).
    pub caches: Vec<Cache>,
    /// Every cpu has one; `None` where the description has none (then no TLB time is modelled).
    pub tlb: Option<Tlb>,
    pub memory: Memory,
    /// The effect of the program's own prefetch instructions; `None`: they do nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<SoftwarePrefetch>,
    /// The work that cpus do at a time; `None`: each reference waits by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core: Option<Core>,
    /// The cost of having threads follow their data from cache to cache, and when that gains; `None`: not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regions: Option<Regions>,
}

/// The cost of moving a thread to the cache of its data, and when that gains (Lee12, sections 3.1 and 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Regions {
    /// The total cost of moving a thread, the fault that causes it included; 0 to 1e9.
    pub switch_ns: f64,
    /// `None`: not calibrated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gains: Option<Gains>,
}

/// The bounds of conditions 1 to 3, as a calibration finds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Gains {
    /// Condition 1: the shortest and the longest time in a region at a stretch, as long as threads stay where they are.
    pub stay_least_ns: u64,
    pub stay_most_ns: u64,
    /// Condition 2: per mille of one cache that the working set must exceed.
    pub one_cache: u64,
    /// Condition 3: per mille of all caches together that it must not exceed.
    pub all_caches: u64,
}

impl Machine {
    /// The cache of the last level.
    pub fn outermost(&self) -> Option<&Cache> {
        self.caches.iter().max_by_key(|cache| cache.level)
    }

    /// The outermost cache for data that has several instances, each for several cpus: it matters which threads share
    /// one.
    pub fn divided_cache(&self) -> Option<&Cache> {
        let divides = |cache: &&Cache| {
            cache.kind != Kind::Instruction && cache.cpus_per_instance > 1 && cache.cpus_per_instance < self.cpus
        };
        self.caches.iter().filter(divides).max_by_key(|cache| cache.level)
    }

    /// The same for `threads` threads: if they are more than the cpus, those of one cpu share its own caches.
    pub fn divided_cache_for(&self, threads: usize) -> Option<&Cache> {
        let own = |cache: &&Cache| cache.kind != Kind::Instruction && cache.cpus_per_instance < self.cpus;
        let of_a_cpu = || self.caches.iter().filter(own).max_by_key(|cache| cache.level);
        self.divided_cache()
            .or_else(|| of_a_cpu().filter(|_| threads > self.cpus as usize))
    }
}

/// A processor that overlaps: it goes on past a load that has not come, as far as these figures let it.
///
/// They are the sizes of reorder buffers, line fill buffers and store buffers (Intel and AMD publish them), or results
/// of chasing one to many chains at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Core {
    /// Instructions a clock of code that waits for nothing, 0.01 to 64.
    pub instructions_per_clock: f64,
    /// Instructions that may be under way, 1 to 65536.
    pub window: u32,
    /// Lines of one cpu that may be on their way at once, 1 to 256.
    pub outstanding: u32,
    /// Of these, lines whose numbers are the same modulo 4, 0 to 256; 0: any. Steps of a multiple of four lines meet
    /// that bound (Granite Rapids: 8 of some 20, by `domicile probe`).
    pub outstanding_of_bank: u32,
    /// Between two lines that come to a core from a third level or memory, prefetched ones too, 0 to 1000; 0: any
    /// number comes at once. It is what one core can read (Granite Rapids: 2.3 ns or 27 GB/s, by `domicile probe`).
    pub line_ns: f64,
    /// The same between two lines from memory, 0 to 1000; 0: as `line_ns` (Zen 4 in a guest: 3.5 ns, by `domicile
    /// probe`).
    pub memory_line_ns: f64,
    /// The same between two lines from memory that is on huge pages, 0 to 1000; 0: as `memory_line_ns` (there: 2.3 ns).
    pub huge_memory_line_ns: f64,
    /// Stores of one cpu that wait without holding it up, 1 to 4096.
    pub store_buffer: u32,
    /// Between two lines that come to one set of the first cache, 0 to 1000; 0: a set takes any number at once. It
    /// shows where lines compete for a few sets (Zen 5: 1.7 ns, by `domicile probe`).
    pub set_refill_ns: f64,
    /// Between two lines that come to one bank of the first cache (their numbers are the same modulo 4), 0 to 1000; 0:
    /// a bank takes any number at once. It shows where rows are a multiple of 256 bytes (Granite Rapids: 0.9 ns, by
    /// `domicile probe`).
    pub bank_refill_ns: f64,
    /// The cost, 0 to 1000, to its set of a store whose line is replaced before the store leaves: the line is fetched
    /// once more.
    pub set_rewrite_ns: f64,
    /// From the time at which a mispredicted branch is resolved until the next instruction enters, 0 to 1000; 0: all
    /// are predicted correctly.
    pub misprediction_ns: f64,
}

/// How the cpus carry out the program's prefetch instructions: they fill the outermost cache only, and ignore pages
/// that the TLB does not know.
///
/// Bugnion and others, "Compiler-Directed Page Coloring for Multiprocessors" (1996), section 6.2, for the MIPS R10000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SoftwarePrefetch {
    /// Prefetches of one cpu that may be under way, 1 to 64; one more waits for the first of them to come.
    pub outstanding: u32,
}

/// One kind of cache; the machine has `cpus / cpus_per_instance` instances of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cache {
    pub name: String,
    /// 1 is nearest to the cpu.
    pub level: u8,
    pub kind: Kind,
    /// Capacity of one instance.
    pub bytes: u64,
    /// Associativity; `bytes / line_bytes` makes it fully associative.
    pub ways: u32,
    /// A power of two, at most 256; never smaller than that of a lower level.
    pub line_bytes: u32,
    /// Consecutive cpus that share one instance.
    pub cpus_per_instance: u32,
    pub index: Index,
    /// If the set is not simply the low bits of the line number.
    pub hash: Option<IndexHash>,
    pub hit_ns: f64,
    /// The time of a line that one core beneath this cache holds modified and another one beneath it asks for; 0: a
    /// hit.
    #[serde(skip_serializing_if = "is_nothing")]
    pub transfer_ns: f64,
    /// GB/s of lines that others bring into one instance: programs that are not simulated, in other virtual machines or
    /// beside this one. They evict lines that this program does not use for a while.
    #[serde(skip_serializing_if = "is_nothing")]
    pub others_gbps: f64,
    pub write: Write,
    pub allocate_on_write: bool,
    /// True if a line that this cache evicts is also evicted from the caches above it.
    pub inclusive: bool,
    pub replacement: Replacement,
    /// The streams that it follows, to bring lines in before they are asked for; most do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<Prefetch>,
}

/// A stream prefetcher: it sees pages being walked through, forwards or backwards, and brings the
/// lines ahead into its cache, up to the page's end.
///
/// Jouppi, "Improving Direct-Mapped Cache Performance by the Addition of a Small Fully-Associative
/// Cache and Prefetch Buffers" (1990), section 4, for the idea; Palacharla and Kessler, "Evaluating
/// Stream Buffers as a Secondary Cache Replacement" (1994), for the rule that two lines in order
/// make a stream; Intel's optimization manuals for one stream a page that does not leave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Prefetch {
    /// Streams followed at a time, 1 to 256.
    pub streams: u32,
    /// Lines ahead, 1 to 64.
    pub lines: u32,
    /// The longest step from line to line that belongs to a stream, 1 to 64.
    pub step: u32,
    /// A lookup that misses brings the other line of its pair, too: lines `2 k` and `2 k + 1` of a page are a pair.
    ///
    /// Intel's optimization manual: the second level's "spatial prefetcher" completes 128 bytes.
    pub pair: bool,
    /// A stream brings more the longer it is (twice as many lines as it went on for, up to `lines`), and goes on in
    /// the next virtual page.
    ///
    /// That prefetchers run ahead by their success: Srinath and others, "Feedback Directed Prefetching" (2007). That
    /// they follow virtual pages: AMD's optimization guides since Zen 2, Intel's since Ivy Bridge ("next-page
    /// prefetcher").
    pub runs_on: bool,
    /// A stream that has gone on for fewer lines brings nothing, and one that has brings no more than twice as many, up to `lines`. 0 (to
    /// 64): the second line in order brings all `lines`, but for `runs_on`.
    ///
    /// `domicile probe` on a Zen 3: the fourth line in order brings some six, and twelve bring 23.
    #[serde(skip_serializing_if = "is_zero")]
    pub after: u32,
    /// The steps of single instructions that it follows besides, through virtual memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stride: Option<Stride>,
}

/// A stride prefetcher: it sees that an instruction repeats a step, and brings the line some steps ahead.
///
/// Baer and Chen, "An Effective On-Chip Preloading Scheme to Reduce Data Access Penalty" (1991), for the table by
/// instruction; Intel's and AMD's optimization manuals call it "IP-based stride" and "L1 stride" prefetcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Stride {
    /// Instructions followed at a time, 1 to 256.
    pub entries: u32,
    /// Steps ahead, 1 to 64.
    pub ahead: u32,
    /// The longest step that is followed, 1 to 2^32.
    pub bytes: u64,
}

impl Default for Stride {
    /// Entries: Coffee Lake's, as Chen and others found ("AfterImage", ASPLOS 2023, section 4). Bytes: Intel's manual.
    fn default() -> Self {
        Stride {
            entries: 24,
            ahead: 4,
            bytes: 2048,
        }
    }
}

impl Prefetch {
    /// Streams that bring `lines` lines at once, and stay in their page; steps may be as long.
    pub fn new(streams: u32, lines: u32) -> Self {
        Prefetch {
            streams,
            lines,
            step: lines,
            pair: false,
            runs_on: false,
            after: 0,
            stride: None,
        }
    }
}

// Serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Default for SoftwarePrefetch {
    /// The R10000's four.
    fn default() -> Self {
        SoftwarePrefetch { outstanding: 4 }
    }
}

impl Default for Prefetch {
    /// 16 streams (Intel's Pentium M: 12 forwards, 4 backwards), 4 lines (its first Xeon Phi).
    fn default() -> Self {
        Prefetch::new(16, 4)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Data,
    Instruction,
    Unified,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Index {
    Virtual,
    Physical,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Write {
    Back,
    Through,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Replacement {
    Lru,
    /// Tree pseudo-LRU; the ways must be a power of two.
    Plru,
    Random,
    /// LRU of the lines that are used again. A line that comes for the first time in a long while is the least
    /// recently used.
    Reuse,
}

/// Slices chosen by a hash of the address: bit i of the slice number is the parity of
/// `address & masks[i]`, taken modulo `slices`. The set within the slice is the line number
/// modulo the sets of a slice (`bytes / slices / ways / line_bytes`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IndexHash {
    pub slices: u32,
    pub masks: Vec<u64>,
}

/// One TLB per cpu, LRU within a set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tlb {
    /// All entries, the wired ones included.
    pub entries: u32,
    /// `entries` makes it fully associative.
    pub ways: u32,
    /// Entries that the kernel keeps for itself; not available to the program.
    pub wired: u32,
    pub refill_ns: f64,
    /// Page walks that a cpu with a core carries out at a time; 0: any number.
    #[serde(skip_serializing_if = "is_any")]
    pub walkers: u32,
    /// The time of a walk on a guest's huge pages that the host keeps in small ones: the TLB has an entry for each
    /// small page there. `None`: it has one for the huge page, and a walk takes `refill_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub huge_refill_ns: Option<f64>,
    /// The fewest pages first. Empty: a walk takes the same for every page.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub far: Vec<FarPages>,
}

/// Page tables that do not stay in a cache: a walk finds a line of them, with the entries of eight pages, only if it
/// was one of the last that were walked to. For a guest, two tables are walked, its own and its host's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FarPages {
    /// The last lines have the entries of this many pages.
    pub pages: u32,
    /// The time of a walk to any other page, if it is not farther still.
    pub refill_ns: f64,
}

/// For machines that do not say how long.
fn is_nothing(ns: &f64) -> bool {
    *ns == 0.0
}

/// For machines that do not say how many there are.
fn is_any(number: &u32) -> bool {
    *number == 0
}

/// Main memory: nodes and the time of reaching them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Memory {
    /// NUMA nodes with cpus; cpu `c` is on node `c * nodes / cpus`.
    pub nodes: u32,
    pub local_ns: f64,
    pub remote_ns: f64,
    /// A line that another cpu holds modified.
    pub dirty_remote_ns: f64,
    /// Gigabytes (10^9) a second that one node's memory, or the bus, can move; 0: no contention.
    pub bandwidth_gbps: f64,
    /// The time that a cpu's request to write a line that others hold too occupies one node's memory, or the bus,
    /// though no data is moved; 0: such requests take no room there.
    pub upgrade_ns: f64,
    /// The system's time for the first touch of a page of 4 KiB, beyond the cache misses of reading it, 0 to 1e6; 0:
    /// nothing.
    pub fault_ns: f64,
    /// The time that each further 4 KiB of a larger page adds to that, 0 to 1e6.
    pub clear_ns: f64,
    /// The data that is on huge pages unless something prevents it. Simulations use it only if asked to (a change of
    /// the program); advice on colors of pages is weighed by it.
    #[serde(skip_serializing_if = "HugeData::is_never")]
    pub huge_pages: HugeData,
    /// Page frames of one node; 0: more than any program touches.
    pub frames_per_node: u64,
    /// Relative distances between nodes as in ACPI's SLIT (10: local), row by row; empty where
    /// only local and remote are distinguished. A remote latency is then scaled by
    /// `distance / smallest remote distance`.
    pub distances: Vec<Vec<u32>>,
    /// Nodes without cpus. Their numbers follow those of the nodes above.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<Tier>,
}

/// The data that Linux puts on transparent huge pages by itself (`/sys/kernel/mm/transparent_hugepage/enabled`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HugeData {
    #[default]
    Never,
    /// Data that the program asks for it.
    Madvise,
    Always,
}

impl HugeData {
    /// From the kernel's own word; an unknown word means no huge pages.
    pub fn of_word(word: &str) -> HugeData {
        match word {
            "always" => HugeData::Always,
            "madvise" => HugeData::Madvise,
            _ => HugeData::Never,
        }
    }

    /// Returns whether data gets huge pages. `asked`: the program asks for it.
    pub fn gives(self, asked: bool) -> bool {
        match self {
            HugeData::Never => false,
            HugeData::Madvise => asked,
            HugeData::Always => true,
        }
    }

    /// Returns whether no data gets them.
    fn is_never(&self) -> bool {
        *self == HugeData::Never
    }
}

/// A node without cpus: CXL memory, or a slower kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tier {
    pub name: String,
    /// The latency of a miss of a cpu of one of the nodes `near`.
    pub latency_ns: f64,
    /// The same of other nodes' cpus.
    pub far_latency_ns: f64,
    /// The nodes that it is attached to; empty: it is as far from all.
    pub near: Vec<u32>,
    /// As [`Memory::bandwidth_gbps`].
    pub bandwidth_gbps: f64,
    /// Page frames; 0: more than any program touches.
    pub frames: u64,
}

impl Tier {
    /// The latency of a miss of a node's cpu.
    pub fn latency_from(&self, node: u32) -> f64 {
        match self.near.is_empty() || self.near.contains(&node) {
            true => self.latency_ns,
            false => self.far_latency_ns,
        }
    }
}

impl Memory {
    /// Nodes with cpus and without.
    pub fn all_nodes(&self) -> u32 {
        self.nodes + self.tiers.len() as u32
    }

    /// A node, if it has no cpus.
    pub fn tier(&self, node: u32) -> Option<&Tier> {
        self.tiers.get(node.checked_sub(self.nodes)? as usize)
    }

    /// Page frames of a node; 0: more than any program touches.
    pub fn frames_of(&self, node: u32) -> u64 {
        self.tier(node).map_or(self.frames_per_node, |tier| tier.frames)
    }

    /// Gigabytes a second of a node; 0: no contention.
    pub fn bandwidth_of(&self, node: u32) -> f64 {
        self.tier(node).map_or(self.bandwidth_gbps, |tier| tier.bandwidth_gbps)
    }

    /// Returns whether any node's transfers wait for one another.
    pub fn is_contended(&self) -> bool {
        (0..self.all_nodes()).any(|node| self.bandwidth_of(node) > 0.0)
    }
}
