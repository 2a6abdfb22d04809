//! The machine that this runs on, as Linux describes it, with substitutes for figures that Linux does not report.
//!
//! The description has instances that serve equally many consecutive cpus. Linux numbers cpus as it likes (the two
//! threads of a core are often 0 and 64), so cpus are renumbered such that those that share caches and nodes are
//! neighbors; [`HostReport::cpu_numbers`] maps back. If the machine is not uniform (two kinds of core, cpus that are
//! offline), the description is that of the larger part, and the report says what it leaves out.

mod assume;
mod caches;
mod memory;
mod order;

use serde::Serialize;

use crate::check::CPUS_MAX;
use crate::error::MachineError;
use crate::model::{HugeData, Machine};

/// The machine that Linux describes, and how much of it to believe.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostReport {
    pub machine: Machine,
    /// The processor's name, if Linux knows it.
    pub processor: Option<String>,
    /// Linux's number of each of the machine's cpus: cpu `c` is Linux's `cpu_numbers[c]`.
    pub cpu_numbers: Vec<u32>,
    /// Linux's number of each of the machine's nodes.
    pub node_numbers: Vec<u32>,
    /// Bytes of memory of each of the machine's nodes, if known.
    pub node_memory_bytes: Vec<Option<u64>>,
    /// Sets of cpus as Linux writes them: `0-3,8`.
    pub online: String,
    pub possible: Option<String>,
    pub present: Option<String>,
    /// Transparent huge pages; none where the kernel has none or hides them.
    pub huge_pages: Option<HugePages>,
    /// The figures that were read, assumed, missing or simplified, in the order in which it was found.
    pub notes: Vec<Note>,
}

/// State of transparent huge pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HugePages {
    /// `always`, `madvise` or `never`.
    pub enabled: String,
    /// When the kernel compacts memory to make one; none where it does not say.
    pub defrag: Option<String>,
}

/// One thing to know about a [`HostReport`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    pub trust: Trust,
    /// The figures it is about, such as `hit_ns` or `cache L3`.
    pub about: String,
    pub text: String,
}

/// The source of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// Linux says so.
    Read,
    /// `domicile probe` timed it, since the last boot.
    Measured,
    /// Linux does not report it; the figure is usual for machines of this kind.
    Assumed,
    /// Linux should say, but does not here; the text names the reason and what is used instead.
    Missing,
    /// Linux says something that a description cannot hold; the text says what was left out.
    Simplified,
}

impl HostReport {
    /// The basis of the machine's figures in a sentence or two, for readers of times that were simulated on it.
    pub fn basis(&self) -> String {
        let about = |trust| {
            let mut about: Vec<&str> = Vec::new();
            for note in self.notes_of(trust) {
                if !about.contains(&note.about.as_str()) {
                    about.push(&note.about);
                }
            }
            about.join(", ")
        };
        if self.notes_of(Trust::Measured).next().is_none() {
            return "Linux reports the sizes of this machine's caches but not their latencies: those used are typical ones, so \
                    times are estimates, while misses are counted; `domicile probe` measures them once, in some ten seconds, \
                    and `domicile machine host` shows what is used"
                .to_string();
        }
        format!(
            "the machine is this one as `domicile probe` measured it ({}); assumed are {}; `domicile machine host` shows all of it",
            about(Trust::Measured),
            about(Trust::Assumed)
        )
    }

    /// The notes of one kind.
    pub fn notes_of(&self, trust: Trust) -> impl Iterator<Item = &Note> {
        self.notes.iter().filter(move |note| note.trust == trust)
    }
}

#[derive(Default)]
pub(crate) struct Notes(Vec<Note>);

impl Notes {
    pub(crate) fn add(&mut self, trust: Trust, about: impl Into<String>, text: impl Into<String>) {
        self.0.push(Note {
            trust,
            about: about.into(),
            text: text.into(),
        });
    }
}

/// Reads the machine below `root`: `/` for this one, or a captured tree.
///
/// Fails only if the kernel does not even report the online cpus; any other missing figure gets a note and a fallback.
/// The machine passes [`Machine::check`].
pub fn host(root: &sys::Root) -> Result<HostReport, MachineError> {
    let mut notes = Notes::default();
    let cpus = sys::cpus::cpus(root)?;
    let seen = caches::readings(root, &cpus.online, &mut notes);
    let nodes = memory::nodes(root, &cpus.online, &mut notes);

    let mut cpu_numbers = order::neighbors(&cpus.online, &seen, &nodes);
    if cpu_numbers.len() > CPUS_MAX as usize {
        let rest = cpu_numbers.split_off(CPUS_MAX as usize);
        let text = format!("a description has up to {CPUS_MAX} cpus; left out are {}", list(&rest));
        notes.add(Trust::Simplified, "cpus", text);
    }
    if !cpu_numbers.is_sorted() {
        let text =
            "renumbered so that cpus that share a cache or a node are neighbors; cpu_numbers maps them to Linux's";
        notes.add(Trust::Read, "cpu_numbers", text);
    }
    if let Some(present) = &cpus.present {
        let offline: Vec<u32> = present
            .iter()
            .copied()
            .filter(|cpu| cpus.online.binary_search(cpu).is_err())
            .collect();
        if !offline.is_empty() {
            let text = format!(
                "cpus {} are offline and left out, and the caches that only they use",
                list(&offline)
            );
            notes.add(Trust::Read, "cpus", text);
        }
    }

    let page_bytes = page_bytes(root, &mut notes);
    let caches = caches::caches(&cpu_numbers, &seen, page_bytes, &mut notes);
    let described = memory::memory(root, &cpu_numbers, &nodes, page_bytes, &mut notes);
    let processor = sys::cpuinfo::processor(root).unwrap_or_default();
    if processor.is_guest {
        let text =
            "this is a guest: its caches are what the hypervisor says, shared with other guests or cut to a part";
        notes.add(Trust::Assumed, "cache", text);
    }
    let huge_pages = huge_pages(root, &mut notes);
    let mut machine = Machine {
        name: "host".into(),
        clock_mhz: clock_mhz(root, cpu_numbers[0], &mut notes),
        page_bytes,
        // At most CPUS_MAX, as cut above.
        cpus: cpu_numbers.len() as u32,
        caches,
        tlb: Some(assume::tlb(&mut notes)),
        memory: described.memory,
        // Their prefetch instructions are not simulated: they bring lines into the nearest cache.
        prefetch: None,
        core: None,
        regions: None,
    };
    let huge_data = huge_pages.as_ref().map(|pages| HugeData::of_word(&pages.enabled));
    machine.memory.huge_pages = huge_data.unwrap_or_default();
    machine.check()?;
    Ok(HostReport {
        machine,
        processor: processor.model,
        cpu_numbers,
        node_numbers: described.numbers,
        node_memory_bytes: described.memory_bytes,
        online: list(&cpus.online),
        possible: cpus.possible.as_deref().map(list),
        present: cpus.present.as_deref().map(list),
        huge_pages,
        notes: notes.0,
    })
}

fn page_bytes(root: &sys::Root, notes: &mut Notes) -> u64 {
    sys::pages::page_bytes(root).unwrap_or_else(|| {
        let text = format!(
            "the captured tree does not say (proc/self/smaps); {} bytes",
            assume::PAGE_BYTES
        );
        notes.add(Trust::Missing, "page_bytes", text);
        assume::PAGE_BYTES
    })
}

fn clock_mhz(root: &sys::Root, cpu: u32, notes: &mut Notes) -> f64 {
    match sys::cpuinfo::clock_mhz(root, cpu) {
        Some((mhz, source)) => {
            notes.add(Trust::Read, "clock_mhz", format!("from {source}"));
            mhz
        }
        None => {
            let text = format!(
                "neither cpufreq nor /proc/cpuinfo has the clock; {} MHz",
                assume::CLOCK_MHZ
            );
            notes.add(Trust::Missing, "clock_mhz", text);
            assume::CLOCK_MHZ
        }
    }
}

fn huge_pages(root: &sys::Root, notes: &mut Notes) -> Option<HugePages> {
    match sys::pages::huge_pages(root) {
        Ok(pages) => Some(HugePages {
            enabled: pages.enabled,
            defrag: pages.defrag,
        }),
        Err(error) => {
            let text = format!("transparent huge pages are off or hidden ({error}); taken as not available");
            notes.add(Trust::Missing, "huge_pages", text);
            None
        }
    }
}

/// Numbers in any order, as Linux writes a set.
fn list(numbers: &[u32]) -> String {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    sys::cpus::list(&numbers)
}
