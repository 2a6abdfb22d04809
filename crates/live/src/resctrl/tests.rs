//! Slots of ways on trees made after the kernel's documentation, with the kernel's rules: they refuse the same writes,
//! a new group has its files, tasks have one group.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use super::tree::Locked;
use super::*;

/// Processors as the documentation shows them.
pub(crate) struct Processor {
    /// `info`'s resources and files.
    info: &'static [(&'static str, &'static str)],
    schemata: &'static str,
    size: &'static str,
    /// Kernel's number of the cache of each cpu, at level 3.
    caches: &'static [u32],
    groups: usize,
    least: u32,
}

/// Two sockets, 20 ways of 1.5 MiB, of which devices use the upper two.
pub(crate) const INTEL: Processor = Processor {
    info: &[
        ("L3/cbm_mask", "fffff"),
        ("L3/min_cbm_bits", "2"),
        ("L3/num_closids", "4"),
        ("L3/shareable_bits", "c0000"),
        ("MB/num_closids", "4"),
    ],
    schemata: "    L3:0=fffff;1=fffff\n    MB:0=100;1=100\n",
    size: "    L3:0=31457280;1=31457280\n    MB:0=100;1=100\n",
    caches: &[0, 0, 1, 1],
    groups: 4,
    least: 2,
};

/// The same, mounted so that code and data have masks of their own.
const INTEL_CODE_AND_DATA: Processor = Processor {
    info: &[
        ("L3CODE/cbm_mask", "fffff"),
        ("L3CODE/min_cbm_bits", "1"),
        ("L3CODE/num_closids", "8"),
        ("L3CODE/shareable_bits", "0"),
        ("L3DATA/cbm_mask", "fffff"),
        ("L3DATA/min_cbm_bits", "1"),
        ("L3DATA/num_closids", "8"),
        ("L3DATA/shareable_bits", "0"),
    ],
    schemata: "L3DATA:0=fffff\nL3CODE:0=fffff\n",
    size: "L3DATA:0=20971520\nL3CODE:0=20971520\n",
    caches: &[0, 0],
    groups: 8,
    least: 1,
};

/// Four complexes, 16 ways of 2 MiB; the widths of the bandwidth lines differ.
const AMD: Processor = Processor {
    info: &[
        ("L3/cbm_mask", "ffff"),
        ("L3/min_cbm_bits", "1"),
        ("L3/num_closids", "16"),
        ("L3/shareable_bits", "0"),
    ],
    schemata: "    MB:0=2048;1=2048;2=2048;3=2048\n    L3:0=ffff;1=ffff;2=ffff;3=ffff\n",
    size: "    MB:0=2048;1=2048;2=2048;3=2048\n    L3:0=33554432;1=33554432;2=33554432;3=33554432\n",
    caches: &[0, 1, 2, 3],
    groups: 16,
    least: 1,
};

/// MPAM: portions for ways, numbers of caches with gaps, nothing said of devices.
const ARM: Processor = Processor {
    info: &[
        ("L3/cbm_mask", "ff"),
        ("L3/min_cbm_bits", "1"),
        ("L3/num_closids", "32"),
    ],
    schemata: "L3:1=ff;17=ff\n",
    size: "L3:1=8388608;17=8388608\n",
    caches: &[1, 1, 17, 17],
    groups: 32,
    least: 1,
};

/// A tree below a folder, and the kernel that keeps it.
struct Kernel {
    files: Directory,
    processor: &'static Processor,
    root: std::path::PathBuf,
    /// The answer to the next write to `schemata` of this group.
    refuses: RefCell<Option<String>>,
}

impl Kernel {
    fn masks(&self, group: &str) -> BTreeMap<String, BTreeMap<u32, u64>> {
        let text = fs::read_to_string(self.root.join(group).join("schemata")).unwrap();
        let mut lines = BTreeMap::new();
        for line in text.lines() {
            let (resource, values) = line.split_once(':').unwrap();
            let radix = if resource.trim() == "MB" { 10 } else { 16 };
            let values = values.split(';').map(|part| {
                let (cache, value) = part.split_once('=').unwrap();
                (cache.parse().unwrap(), u64::from_str_radix(value, radix).unwrap())
            });
            lines.insert(resource.trim().to_string(), values.collect());
        }
        lines
    }

    /// Merges a command into a group's masks, if the processor can do it.
    fn obey(&self, path: &str, text: &str) -> Result<(), (i32, String)> {
        let group = path.trim_end_matches("schemata").trim_end_matches('/');
        if self.refuses.borrow().as_deref() == Some(group) {
            self.refuses.borrow_mut().take();
            return Err((22, "no reason".to_string()));
        }
        let mut masks = self.masks(group);
        for line in text.lines() {
            let (resource, values) = line.split_once(':').ok_or((22, "no resource".to_string()))?;
            let known = masks
                .get_mut(resource)
                .ok_or((22, format!("unknown resource {resource}")))?;
            for part in values.split(';') {
                let (cache, value) = part.split_once('=').unwrap();
                let mask = u64::from_str_radix(value, 16).unwrap();
                let run = mask >> mask.trailing_zeros().min(63);
                if mask == 0 || run & (run + 1) != 0 {
                    return Err((22, format!("mask {mask:x} has non-consecutive 1-bits")));
                }
                if mask.count_ones() < self.processor.least {
                    return Err((
                        22,
                        format!("mask {mask:x} needs at least {} bits", self.processor.least),
                    ));
                }
                *known
                    .get_mut(&cache.parse().unwrap())
                    .ok_or((22, "unknown cache".to_string()))? = mask;
            }
        }
        let line = |(resource, values): (&String, &BTreeMap<u32, u64>)| {
            let value = |(cache, value): (&u32, &u64)| match resource.as_str() {
                "MB" => format!("{cache}={value:4}"),
                _ => format!("{cache}={value:x}"),
            };
            format!(
                "{resource:>6}:{}\n",
                values.iter().map(value).collect::<Vec<_>>().join(";")
            )
        };
        let text: String = masks.iter().map(line).collect();
        fs::write(self.root.join(path), text.replace("= ", "=").replace("= ", "=")).unwrap();
        Ok(())
    }
}

impl Tree for Kernel {
    fn read(&self, path: &str) -> io::Result<String> {
        self.files.read(path)
    }

    fn write(&self, path: &str, text: &str) -> Result<(), WaysError> {
        let (code, said) = match self.obey(path, text) {
            Ok(()) => return Ok(()),
            Err(refusal) => refusal,
        };
        fs::write(self.root.join("info/last_cmd_status"), said).unwrap();
        Err(self.cannot("write", path, io::Error::from_raw_os_error(code)))
    }

    fn append(&self, path: &str, text: &str) -> io::Result<()> {
        let task: u32 = text.trim().parse().unwrap();
        if task == 666 {
            return Err(io::Error::from_raw_os_error(3));
        }
        self.files.append(path, text)
    }

    fn groups(&self) -> Result<Vec<String>, WaysError> {
        self.files.groups()
    }

    fn make(&self, group: &str) -> Result<(), WaysError> {
        // The default group counts too.
        if self.groups()?.len() + 1 == self.processor.groups {
            return Err(WaysError::NoGroups);
        }
        self.files.make(group)?;
        let folder = self.root.join(group);
        fs::write(folder.join("tasks"), "").unwrap();
        fs::write(folder.join("mode"), "shareable\n").unwrap();
        fs::write(folder.join("schemata"), self.processor.schemata).unwrap();
        Ok(())
    }

    fn remove(&self, group: &str) -> Result<(), WaysError> {
        // Its tasks are the default group's again.
        let tasks = fs::read_to_string(self.root.join(group).join("tasks")).unwrap();
        self.files.append("tasks", &tasks).unwrap();
        fs::remove_dir_all(self.root.join(group)).unwrap();
        Ok(())
    }

    fn lock(&self) -> Result<Locked, WaysError> {
        self.files.lock()
    }

    fn cannot(&self, what: &'static str, path: &str, source: io::Error) -> WaysError {
        self.files.cannot(what, path, source)
    }

    fn malformed(&self, path: &str, found: &str, expected: &'static str) -> WaysError {
        self.files.malformed(path, found, expected)
    }
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The machine's tree: caches of cpus, and resctrl.
pub(crate) fn machine(processor: &'static Processor) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (cpu, cache) in processor.caches.iter().enumerate() {
        for (index, level, kind, id) in [(0, 1, "Data", cpu as u32 + 7), (3, 3, "Unified", *cache)] {
            let at = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
            write(folder.path(), &format!("{at}/level"), &format!("{level}\n"));
            write(folder.path(), &format!("{at}/type"), &format!("{kind}\n"));
            write(folder.path(), &format!("{at}/id"), &format!("{id}\n"));
        }
    }
    let root = folder.path().join("sys/fs/resctrl");
    for (path, text) in processor.info {
        write(&root, &format!("info/{path}"), &format!("{text}\n"));
    }
    write(&root, "info/last_cmd_status", "ok\n");
    write(&root, "schemata", processor.schemata);
    write(&root, "size", processor.size);
    write(&root, "tasks", "1\n2\n");
    write(&root, "mon_groups/x/tasks", "");
    fs::create_dir_all(folder.path().join(format!("proc/{}", std::process::id()))).unwrap();
    folder
}

fn kernel(folder: &tempfile::TempDir, processor: &'static Processor) -> Kernel {
    let root = folder.path().join("sys/fs/resctrl");
    Kernel {
        files: Directory::new(&root),
        processor,
        root,
        refuses: RefCell::new(None),
    }
}

pub(crate) fn ways(folder: &tempfile::TempDir, processor: &'static Processor) -> Ways {
    Ways::of(Box::new(kernel(folder, processor)), Root::new(folder.path()), 3).unwrap()
}

/// The masks of a group in cache after cache.
pub(crate) fn masks(folder: &tempfile::TempDir, processor: &'static Processor, group: &str) -> Vec<u64> {
    let masks = kernel(folder, processor).masks(group);
    masks
        .into_iter()
        .filter(|(resource, _)| resource != "MB")
        .flat_map(|(_, masks)| masks.into_values())
        .collect()
}

/// The groups beside the default one.
pub(crate) fn group_names(folder: &tempfile::TempDir) -> Vec<String> {
    kernel(folder, &INTEL).groups().unwrap()
}

const MIB: u64 = 1 << 20;

#[test]
fn a_private_slot_takes_ways_out_of_the_default_group_where_its_threads_run() {
    let folder = machine(&INTEL);
    let ways = ways(&folder, &INTEL);
    // 18 ways are not for devices, of which the default group keeps at least two; or the devices' two.
    assert_eq!(ways.available(&[0, 1]).unwrap(), 18 * 3 * MIB / 2);
    let slot = ways.slot(7 * MIB, Kind::Private, &[0, 1]).unwrap();
    slot.add(100).unwrap();
    slot.add(101).unwrap();
    // 7 MiB are 4 ways of 1.5 MiB, and a bit.
    assert_eq!(slot.bytes(), 6 * MIB);
    let taken = slot.masks().collect::<Vec<_>>();
    assert_eq!(taken, [(0, 0xf)]);
    assert_eq!(masks(&folder, &INTEL, slot.group()), [0xf, 0xfffff]);
    assert_eq!(masks(&folder, &INTEL, ""), [0xffff0, 0xfffff]);
    let tasks = folder.path().join("sys/fs/resctrl").join(slot.group()).join("tasks");
    assert_eq!(fs::read_to_string(tasks).unwrap(), "100\n101\n");
    slot.free().unwrap();
    assert_eq!(masks(&folder, &INTEL, ""), [0xfffff, 0xfffff]);
    let tasks = fs::read_to_string(folder.path().join("sys/fs/resctrl/tasks")).unwrap();
    assert!(tasks.ends_with("100\n101\n"));
}

#[test]
fn private_slots_never_overlap_and_all_ways_come_back() {
    let folder = machine(&AMD);
    let ways = ways(&folder, &AMD);
    let one = ways.slot(8 * MIB, Kind::Private, &[0, 1]).unwrap();
    let two = ways.slot(6 * MIB, Kind::Private, &[1, 2]).unwrap();
    let of = |slot: &WaySlot, cache| slot.masks().find(|(other, _)| *other == cache).unwrap().1;
    assert_eq!(of(&one, 1) & of(&two, 1), 0);
    assert_eq!(of(&one, 1).count_ones() + of(&two, 1).count_ones(), 7);
    assert_eq!(masks(&folder, &AMD, "")[1], 0xffff & !of(&one, 1) & !of(&two, 1));
    // In a cache that does not concern a slot, its threads are kept out of the other's ways like all
    // others.
    assert_eq!(masks(&folder, &AMD, one.group())[2] & of(&two, 2), 0);
    assert_eq!(masks(&folder, &AMD, two.group())[0] & of(&one, 0), 0);
    assert_eq!(masks(&folder, &AMD, one.group())[3], 0xffff);
    // The one that was taken first is freed first: its ways are not the default group's neighbours yet, or are.
    drop(one);
    let three = ways.slot(8 * MIB, Kind::Private, &[1]).unwrap();
    assert_eq!(of(&three, 1) & of(&two, 1), 0);
    drop(two);
    drop(three);
    assert_eq!(masks(&folder, &AMD, ""), [0xffff; 4]);
    let names = kernel(&folder, &AMD).groups().unwrap();
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn shared_slots_share_the_lowest_ways() {
    let folder = machine(&ARM);
    let ways = ways(&folder, &ARM);
    let one = ways.slot(MIB, Kind::Shared, &[0, 2]).unwrap();
    let two = ways.slot(2 * MIB, Kind::Shared, &[1]).unwrap();
    assert_eq!(one.masks().collect::<Vec<_>>(), [(1, 1), (17, 1)]);
    assert_eq!(two.masks().collect::<Vec<_>>(), [(1, 3)]);
    assert_eq!(masks(&folder, &ARM, ""), [0xff, 0xff]);
    // Private ones stay away from them.
    let private = ways.slot(5 * MIB, Kind::Private, &[0]).unwrap();
    assert_eq!(private.masks().collect::<Vec<_>>(), [(1, 0xf8)]);
    assert_eq!(masks(&folder, &ARM, ""), [0x07, 0xff]);
}

#[test]
fn over_commitment_is_refused_with_what_is_free() {
    let folder = machine(&ARM);
    let ways = ways(&folder, &ARM);
    let _one = ways.slot(4 * MIB, Kind::Private, &[0]).unwrap();
    let error = ways.slot(6 * MIB, Kind::Private, &[0, 2]).err().unwrap();
    let WaysError::Full { free, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(
        free,
        &[FreeWays {
            cache: 1,
            asked: 6,
            free: 3,
            way_bytes: MIB
        }]
    );
    assert!(
        error
            .to_string()
            .contains("cache 1 can give 3 of 6 ways (3072 of 6144 KiB)"),
        "{error}"
    );
    assert_eq!(masks(&folder, &ARM, ""), [0x0f, 0xff]);
    assert_eq!(ways.available(&[0, 2]).unwrap(), 3 * MIB);
    // The default group keeps a way, whatever the request.
    assert!(ways.slot(8 * MIB, Kind::Private, &[2]).is_err());
    assert!(ways.slot(7 * MIB, Kind::Private, &[2]).is_ok());
}

#[test]
fn code_and_data_are_given_alike() {
    let folder = machine(&INTEL_CODE_AND_DATA);
    let ways = ways(&folder, &INTEL_CODE_AND_DATA);
    let slot = ways.slot(4 * MIB, Kind::Private, &[0]).unwrap();
    assert_eq!(masks(&folder, &INTEL_CODE_AND_DATA, slot.group()), [0xf0000; 2]);
    assert_eq!(masks(&folder, &INTEL_CODE_AND_DATA, ""), [0x0ffff; 2]);
}

#[test]
fn groups_of_others_are_left_alone_and_those_of_the_dead_are_removed() {
    let folder = machine(&AMD);
    let root = folder.path().join("sys/fs/resctrl");
    for (group, schemata) in [
        ("database", "L3:0=ff00;1=ff00;2=ffff;3=ffff\n"),
        ("domicile.1.0.private.0", "L3:0=00f0;1=ffff;2=ffff;3=ffff\n"),
    ] {
        write(&root, &format!("{group}/schemata"), schemata);
        write(&root, &format!("{group}/tasks"), "");
    }
    // The dead one's ways were taken out of the default group's.
    fs::write(root.join("schemata"), "L3:0=000f;1=ffff;2=ffff;3=ffff\n").unwrap();
    fs::write(root.join("size"), "L3:0=8388608;1=33554432;2=33554432;3=33554432\n").unwrap();
    let ways = ways(&folder, &AMD);
    let slot = ways.slot(4 * MIB, Kind::Private, &[0]).unwrap();
    let names = kernel(&folder, &AMD).groups().unwrap();
    assert_eq!(names, ["database", slot.group()]);
    assert_eq!(slot.masks().collect::<Vec<_>>(), [(0, 0xc0)]);
    assert_eq!(masks(&folder, &AMD, ""), [0x3f, 0xffff, 0xffff, 0xffff]);
    assert_eq!(masks(&folder, &AMD, "database"), [0xff00, 0xff00, 0xffff, 0xffff]);
}

#[test]
fn what_the_kernel_refuses_leaves_everything_as_it_was() {
    let folder = machine(&INTEL);
    let stubborn = kernel(&folder, &INTEL);
    *stubborn.refuses.borrow_mut() = Some(String::new());
    let ways = Ways::of(Box::new(stubborn), Root::new(folder.path()), 3).unwrap();
    let error = ways.slot(6 * MIB, Kind::Private, &[0]).err().unwrap().to_string();
    assert!(
        error.contains("schemata: cannot write") && error.contains("the kernel says: no reason"),
        "{error}"
    );
    assert_eq!(masks(&folder, &INTEL, ""), [0xfffff, 0xfffff]);
    assert!(kernel(&folder, &INTEL).groups().unwrap().is_empty());
    // Three groups beside the default one, and no more.
    let slots: Vec<WaySlot> = (0..3)
        .map(|_| ways.slot(3 * MIB, Kind::Shared, &[0]).unwrap())
        .collect();
    assert!(matches!(
        ways.slot(3 * MIB, Kind::Shared, &[0]),
        Err(WaysError::NoGroups)
    ));
    assert!(matches!(slots[0].add(666), Err(WaysError::NoThread { thread: 666 })));
}

#[test]
fn what_is_not_there_is_reported() {
    let folder = machine(&AMD);
    let root = folder.path().join("sys/fs/resctrl");
    let open = |level| Ways::open(&root, Root::new(folder.path()), level);
    assert!(matches!(open(2), Err(WaysError::NoCache { level: 2 })));
    let ways = open(3).unwrap();
    assert!(matches!(
        ways.slot(1, Kind::Shared, &[9]),
        Err(WaysError::UnknownCpu { cpu: 9, level: 3 })
    ));
    assert!(matches!(ways.slot(1, Kind::Shared, &[]), Err(WaysError::NoCpus)));
    for (file, text, expected) in [
        ("info/L3/cbm_mask", "many", "a number"),
        ("info/L3/cbm_mask", "0", "at least one way"),
        ("size", "", "bytes of each cache"),
        ("schemata", "MB:0=1\n", "bytes of each cache"),
    ] {
        let before = fs::read_to_string(root.join(file)).unwrap();
        fs::write(root.join(file), text).unwrap();
        let error = open(3).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
        fs::write(root.join(file), before).unwrap();
    }
    let nowhere = Ways::open(Path::new("/nowhere"), Root::new(folder.path()), 3);
    assert!(matches!(nowhere, Err(WaysError::NoCache { level: 3 })));
}
