//! Addresses that the processor itself samples: IBS of AMD, PEBS of Intel, by `perf_event_open(2)`.
//!
//! **What a count is.** A sampled access that no cache of its cpu's served: memory did, or another socket's cache. The
//! sample has its thread, cpu, address, and kind (read or write). IBS samples one in [`OPERATIONS`] operations of the
//! processor, PEBS one in [`LOADS`] loads that took long, so that one in so many misses is a count.
//!
//! **What is not seen.** With PEBS, stores. Accesses of the kernel, whose addresses belong to no process. Samples that
//! arrive while the rings of the cpus are full ([`sys::samples`]).
//!
//! **What it costs.** An interrupt for each sample, on all cpus, whatever runs there: CAP_PERFMON.
//!
//! No machine with IBS or PEBS was at hand when this was written. The reader of the records is tested with those of
//! page faults, which have the same form, and the decoding of a processor's access words with words made by hand.

use std::collections::BTreeMap;

use sys::memory::{PAGE, Span};
use sys::perf_devices::{self, Fields};
use sys::samples::{Event, Sample};
use sys::{Root, SysError};

use super::gathered::Gathered;
use super::{Lost, Probed, Scale, Source, Touched};

pub const NAME: &str = "hardware";

/// Some ten thousand samples a second on a cpu that is busy.
const OPERATIONS: u32 = 1 << 18;
const LOADS: u32 = 1000;
/// Loads that took so many cycles: the last cache takes fewer of most, memory more of all.
const CYCLES: u64 = 64;

/// A processor's sampling device, in the kernel's names.
struct Device {
    name: &'static str,
    what: &'static str,
}

const IBS: Device = Device {
    name: "ibs_op",
    what: "IBS of this AMD processor",
};
/// On processors with two kinds of cores, only the fast ones are sampled.
const PEBS: [Device; 2] = [
    Device {
        name: "cpu",
        what: "PEBS of this Intel processor",
    },
    Device {
        name: "cpu_core",
        what: "PEBS of this Intel processor's fast cores",
    },
];

pub fn probe(root: &Root) -> Probed {
    let (event, what) = offered(root)?;
    Ok(Box::new(Hardware::begin(root, &event, what)?))
}

/// The sampling that the processor offers, as the kernel describes it.
fn offered(root: &Root) -> Result<(Event, &'static str), String> {
    let unreadable = |what: &str| {
        let what = what.to_string();
        move |error: SysError| format!("{what} is there, and its description cannot be read: {error}")
    };
    if let Ok(kind) = perf_devices::kind(root, IBS.name) {
        let fields = ibs(root).map_err(unreadable(IBS.what))?;
        let event = Event {
            kind,
            fields,
            one_in: OPERATIONS.into(),
            exact: 0,
            beside: None,
        };
        return Ok((event, IBS.what));
    }
    for device in &PEBS {
        let Ok(loads) = perf_devices::event(root, device.name, "mem-loads") else {
            continue;
        };
        let event = pebs(root, device.name, loads).map_err(unreadable(device.what))?;
        return Ok((event, device.what));
    }
    Err(
        "the processor samples no addresses, or its hypervisor hides it (neither ibs_op nor mem-loads in \
         /sys/bus/event_source/devices)"
            .to_string(),
    )
}

/// Operations are counted, not cycles; if the processor can leave out accesses that the last cache served, it
/// does.
fn ibs(root: &Root) -> Result<Fields, SysError> {
    let wanted = ["cnt_ctl", "l3missonly"];
    let there = wanted
        .into_iter()
        .filter(|field| perf_devices::has_field(root, IBS.name, field));
    let values: Vec<_> = there.map(|field| (field.to_string(), 1)).collect();
    perf_devices::fields(root, IBS.name, &values)
}

fn pebs(root: &Root, device: &str, mut loads: Vec<(String, u64)>) -> Result<Event, SysError> {
    for (name, value) in &mut loads {
        if name == "ldlat" {
            *value = CYCLES;
        }
    }
    // Newer processors count loads only beside another event.
    let beside = perf_devices::event(root, device, "mem-loads-aux").ok();
    let beside = beside
        .map(|values| perf_devices::fields(root, device, &values))
        .transpose()?;
    Ok(Event {
        kind: perf_devices::kind(root, device)?,
        fields: perf_devices::fields(root, device, &loads)?,
        one_in: LOADS.into(),
        exact: 2,
        beside,
    })
}

/// Accesses that are sampled by an event.
pub struct Hardware {
    gathered: Gathered,
    what: String,
    one_in: u32,
    stores: bool,
}

impl Hardware {
    /// Samples an event on all cpus; `what` is its name, for people.
    ///
    /// Errors: why it cannot be sampled.
    pub fn begin(root: &Root, event: &Event, what: &str) -> Result<Hardware, String> {
        let gathered = Gathered::begin(root, event).map_err(|why| format!("{what} cannot be sampled: {why}"))?;
        Ok(Hardware {
            gathered,
            what: what.to_string(),
            one_in: u32::try_from(event.one_in).unwrap_or(u32::MAX),
            // Exact events are loads.
            stores: event.exact == 0,
        })
    }
}

impl Source for Hardware {
    fn name(&self) -> &'static str {
        NAME
    }

    fn counts(&self) -> String {
        let unseen = if self.stores { "" } else { "; stores are not seen" };
        format!(
            "a sampled access that no cache of its cpu's served, one in {}, by {}{unseen}",
            self.one_in, self.what
        )
    }

    fn scale(&self) -> Scale {
        Scale::Events(self.one_in)
    }

    fn knows_cpus(&self) -> bool {
        true
    }

    fn knows_writes(&self) -> bool {
        self.stores
    }

    fn begin(&mut self, process: u32) -> Result<(), Lost> {
        self.gathered.watch(process);
        Ok(())
    }

    fn look(&mut self, process: u32) -> Result<Vec<Touched>, Lost> {
        self.gathered.gather();
        Ok(pages(&self.gathered.take(process)?))
    }

    fn end(&mut self, process: u32) {
        self.gathered.leave(process);
    }

    fn notes(&self) -> Vec<String> {
        self.gathered.notes("samples")
    }
}

/// Counts of each page, by thread and kind of access; ascending by address. Hits in a cache do not count, and the
/// kernel's own addresses belong to no process.
pub(super) fn pages(samples: &[Sample]) -> Vec<Touched> {
    const KERNEL: usize = 1 << 63;
    let mut counts: BTreeMap<(usize, u32, u32, bool), u32> = BTreeMap::new();
    let far = samples.iter().filter(|sample| sample.access.missed != Some(false));
    for sample in far.filter(|sample| sample.address != 0 && sample.address < KERNEL) {
        let write = sample.access.write == Some(true);
        *counts
            .entry((sample.address / PAGE, sample.thread, sample.cpu, write))
            .or_default() += 1;
    }
    let touched = counts.into_iter().map(|((page, thread, cpu, write), counts)| Touched {
        span: Span::new(page * PAGE, PAGE),
        counts,
        by: Some((thread, cpu)),
        write: Some(write),
    });
    touched.collect()
}

#[cfg(test)]
mod tests {
    use sys::memory::{Area, Size};
    use sys::samples::Access;

    use super::*;

    /// The description of a machine's devices, as files.
    fn described(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = folder.path().join("sys/bus/event_source/devices").join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::new(folder.path());
        (folder, root)
    }

    #[test]
    fn what_the_processor_offers_is_asked_for_as_the_kernel_describes_it() {
        let (_folder, none) = described(&[]);
        assert!(offered(&none).unwrap_err().contains("hypervisor"));
        let (_folder, old) = described(&[("ibs_op/type", "11"), ("ibs_op/format/cnt_ctl", "config:19")]);
        let (event, what) = offered(&old).unwrap();
        assert_eq!((event.kind, event.fields.config, event.exact), (11, 1 << 19, 0));
        assert!(what.contains("IBS"));
        let (_folder, new) = described(&[
            ("ibs_op/type", "11"),
            ("ibs_op/format/cnt_ctl", "config:19"),
            ("ibs_op/format/l3missonly", "config:16"),
        ]);
        assert_eq!(offered(&new).unwrap().0.fields.config, 1 << 19 | 1 << 16);
        let intel = [
            ("cpu/type", "4"),
            ("cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
            ("cpu/format/event", "config:0-7"),
            ("cpu/format/umask", "config:8-15"),
            ("cpu/format/ldlat", "config1:0-15"),
        ];
        let (_folder, older) = described(&intel);
        let (event, what) = offered(&older).unwrap();
        assert_eq!((event.fields.config, event.fields.config1), (0x1cd, CYCLES));
        assert!(event.exact == 2 && event.beside.is_none() && what.contains("PEBS"));
        let aux = ("cpu/events/mem-loads-aux", "event=0x03,umask=0x82");
        let (_folder, newer) = described(&[&intel[..], &[aux]].concat());
        assert_eq!(offered(&newer).unwrap().0.beside.unwrap().config, 0x8203);
        // A device that is described but missing is reported by name.
        let why = probe(&newer).map(|_| ()).unwrap_err();
        assert!(why.contains("PEBS"), "{why}");
    }

    #[test]
    fn what_a_cache_served_is_no_count_and_pages_are_counted_by_who_and_how() {
        let sample = |address, thread, write, missed| Sample {
            process: 1,
            thread,
            cpu: thread + 10,
            address,
            access: Access { write, missed },
        };
        let far = Some(true);
        let found = pages(&[
            sample(5 * PAGE + 8, 2, Some(false), far),
            sample(5 * PAGE, 2, Some(false), far),
            sample(5 * PAGE, 3, Some(true), far),
            sample(4 * PAGE, 2, Some(false), Some(false)),
            sample(3 * PAGE, 2, None, None),
            sample(usize::MAX - 7, 2, Some(false), far),
            sample(0, 2, None, far),
        ]);
        let found: Vec<_> = found
            .iter()
            .map(|touched| (touched.span.start / PAGE, touched.counts, touched.by, touched.write))
            .collect();
        let (two, three) = (Some((2, 12)), Some((3, 13)));
        assert_eq!(
            found,
            [
                (3, 1, two, Some(false)),
                (5, 2, two, Some(false)),
                (5, 1, three, Some(true))
            ]
        );
    }

    #[test]
    fn records_of_the_kernel_become_what_is_told() {
        let mut source = match Hardware::begin(&Root::default(), &Event::PAGE_FAULTS, "page faults") {
            Ok(source) => source,
            Err(why) => return harness::not_allowed(why),
        };
        let me = std::process::id();
        assert!(matches!(source.look(me), Err(Lost::Gone)));
        source.begin(me).unwrap();
        let area = Area::map(64 * PAGE, Size::Small).unwrap();
        [9, 5, 60].into_iter().for_each(|page| area.set_word(page, 0, 1));
        let found = source.look(me).unwrap();
        let mine: Vec<_> = found
            .iter()
            .filter(|touched| area.span().contains(touched.span.start))
            .collect();
        let pages: Vec<_> = mine
            .iter()
            .map(|touched| (touched.span.start - area.start()) / PAGE)
            .collect();
        assert_eq!(pages, [5, 9, 60]);
        let thread = sys::affinity::this_thread();
        assert!(
            mine.iter()
                .all(|touched| touched.counts == 1 && touched.by.unwrap().0 == thread)
        );
        // A sample is reported only once, and a process that is no longer watched gets no more
        // samples.
        let found = source.look(me).unwrap();
        assert!(found.iter().all(|touched| !area.span().contains(touched.span.start)));
        source.end(me);
        assert!(matches!(source.look(me), Err(Lost::Gone)));
    }
}
