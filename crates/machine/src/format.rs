//! From a name, a path or a text to a [`Machine`].
//!
//! # The format
//!
//! TOML. Keys without a default are required; a key that is not listed is refused.
//!
//! | key | default | |
//! | --- | --- | --- |
//! | `name` | | what the machine is called in results |
//! | `clock_mhz` | | 0.001 to 1000000; an instruction takes one clock |
//! | `page_bytes` | | a power of two |
//! | `cpus` | | 1 to 128 |
//! | `[[cache]]` | | one table for each kind of cache; at least one at level 1 for data |
//! | `cache.name` | | unique |
//! | `cache.level` | | 1 is nearest to the cpu; no gaps |
//! | `cache.kind` | | `data`, `instruction`, `unified`; each kind of reference once a level |
//! | `cache.bytes` | | of one instance; a multiple of slices x ways x line |
//! | `cache.ways` | | `bytes / line_bytes` makes it fully associative |
//! | `cache.line_bytes` | | a power of two up to 256, not smaller than a level nearer to the cpu |
//! | `cache.cpus_per_instance` | 1 | consecutive cpus that share an instance; divides `cpus` unless it is larger: then all share one |
//! | `cache.index` | `physical` | or `virtual` |
//! | `cache.hit_ns` | | what a hit waits, beyond the instruction itself |
//! | `cache.transfer_ns` | a hit's | what a line waits that another core beneath the cache holds modified |
//! | `cache.others_gbps` | 0 | GB/s of lines that programs which are not simulated bring into an instance; not of the first cache that a core asks |
//! | `cache.write` | `back` | or `through` |
//! | `cache.allocate_on_write` | true for `back`, false for `through` | whether a store that misses brings the line in |
//! | `cache.inclusive` | false | whether what it evicts leaves the nearer caches too |
//! | `cache.replacement` | `lru` | or `plru` (ways a power of two), `random`, `reuse` (a line that comes for the first time in a long while is the next to leave) |
//! | `cache.prefetch` | `none` | or `stream`, see [`Prefetch`]; beyond level 1, or on machines with one cpu |
//! | `cache.prefetch_streams` | 16 | with `stream`: 1 to 256 streams followed at a time |
//! | `cache.prefetch_lines` | 4 | with `stream`: 1 to 64 lines ahead |
//! | `cache.prefetch_step` | `prefetch_lines` | with `stream`: the longest step from line to line that belongs to a stream, 1 to 64 |
//! | `cache.prefetch_pair` | false | with `stream`: whether a lookup that misses brings the other line of its pair, too |
//! | `cache.prefetch_runs_on` | false | with `stream`: whether a stream brings more the longer it is, and goes on in the next virtual page |
//! | `cache.prefetch_after` | 0 | with `stream`: a stream brings nothing before it has gone on for so many lines, and then at most twice as many; up to 64 |
//! | `cache.prefetch_stride_entries` | none | with `stream`: 1 to 256 instructions whose steps are followed, see [`Stride`] |
//! | `cache.prefetch_stride_ahead` | 4 | with `prefetch_stride_entries`: 1 to 64 steps ahead |
//! | `cache.prefetch_stride_bytes` | 2048 | with `prefetch_stride_entries`: the longest step, 1 to 2^32 |
//! | `[cache.hash]` | none | see [`IndexHash`]: `slices`, `masks` |
//! | `[tlb]` | no TLB time | `entries`, `refill_ns` |
//! | `tlb.ways` | `entries` | fully associative |
//! | `tlb.wired` | 0 | entries that the kernel keeps |
//! | `tlb.walkers` | 0 | page walks of a cpu at a time, up to 256, for machines with `[core]`; 0: any number |
//! | `tlb.huge_refill_ns` | huge pages are translated whole | what a walk takes on huge pages that the host of a guest keeps in small ones |
//! | `[[tlb.far]]` | none | see [`FarPages`]: `pages`, `refill_ns`, which both grow from one to the next |
//! | `[memory]` | | `local_ns` |
//! | `memory.nodes` | 1 | |
//! | `memory.remote_ns` | `local_ns` | required where there are several nodes |
//! | `memory.dirty_remote_ns` | `remote_ns` | |
//! | `memory.bandwidth_gbps` | 0 | no contention |
//! | `memory.upgrade_ns` | 0 | what an upgrade occupies the bus for; only with `bandwidth_gbps` |
//! | `memory.fault_ns` | 0 | 0 to 1e6; the first touch of a page of 4 KiB |
//! | `memory.clear_ns` | 0 | 0 to 1e6; each further 4 KiB of a larger page |
//! | `memory.huge_pages` | `never` | or `madvise`, `always`: the data that the system puts on huge pages by itself; for advice on colors of pages |
//! | `memory.frames_per_node` | 0 | more than any program touches |
//! | `memory.distances` | [] | nodes x nodes, 10 on the diagonal, else 10 to 255 |
//! | `[[memory.tier]]` | none | a node without cpus, see [`Tier`]: `name`, `latency_ns` |
//! | `memory.tier.far_latency_ns` | `latency_ns` | from the nodes that are not `near` |
//! | `memory.tier.near` | [] | the nodes that it is attached to; none: all are as near |
//! | `memory.tier.bandwidth_gbps` | 0 | no contention |
//! | `memory.tier.frames` | 0 | more than any program touches |
//! | `[prefetch]` | prefetch instructions do nothing | see [`SoftwarePrefetch`]; machines with two levels of caches for data, of which none has `prefetch = "stream"` |
//! | `prefetch.outstanding` | 4 | 1 to 64 prefetches of a cpu under way |
//! | `[core]` | each reference waits by itself | see [`Core`]; machines without `[prefetch]` |
//! | `core.instructions_per_clock` | | 0.01 to 64; of code that waits for nothing |
//! | `core.window` | | 1 to 65536 instructions under way |
//! | `core.outstanding` | | 1 to 256 lines of a cpu on their way at once |
//! | `core.outstanding_of_bank` | 0 | 0 to 256; of these, lines whose numbers are the same modulo 4; 0: any |
//! | `core.line_ns` | 0 | 0 to 1000; between two lines that come to a core from a third level or memory |
//! | `core.memory_line_ns` | 0 | 0 to 1000; the same of lines from memory, where it is another |
//! | `core.huge_memory_line_ns` | 0 | 0 to 1000; the same of lines from memory on huge pages, where it is another |
//! | `core.store_buffer` | | 1 to 4096 stores that wait without holding the cpu up |
//! | `core.set_refill_ns` | 0 | 0 to 1000; between two lines that come to one set of the first cache |
//! | `core.bank_refill_ns` | 0 | 0 to 1000; between two lines that come to one bank of the first cache: their numbers are the same modulo 4 |
//! | `core.set_rewrite_ns` | 0 | 0 to 1000; what a store takes of its set whose line is replaced before it leaves |
//! | `core.misprediction_ns` | 0 | 0 to 1000; until the next instruction enters after a branch that was foretold wrongly |
//! | `[regions]` | not calibrated | see [`Regions`]: `switch_ns` |
//! | `regions.switch_ns` | | 0 to 1e9; what moving a thread to another cache takes in all |
//! | `regions.stay_least_ns`, `stay_most_ns`, `one_cache`, `all_caches` | not calibrated | see [`Gains`]; all four or none |

use std::io::Read;
use std::path::Path;

use toml::de::DeTable;

use crate::check::{NODES_MAX, check};
use crate::error::{Fault, MachineError, nearest};
use crate::host::host;
use crate::keys::{Keys, Lines, elements, integer};
use crate::model::{
    Cache, Core, FarPages, Gains, HugeData, Index, IndexHash, Kind, Machine, Memory, Prefetch, Regions, Replacement,
    SoftwarePrefetch, Stride, Tier, Tlb, Write,
};
use crate::presets::{preset, presets};

/// Longest description that is read; the longest preset has a few kilobytes.
const FILE_LIMIT: u64 = 1 << 20;

/// The machine that `name_or_path` names: a preset, `host` for the machine that this runs on as Linux describes it, or a file
/// (with a `/` in its name, or ending in `.toml`). `measured::load` puts in what was measured of this machine.
pub fn load(name_or_path: &str) -> Result<Machine, MachineError> {
    if name_or_path.contains('/') || name_or_path.ends_with(".toml") {
        return from_file(Path::new(name_or_path));
    }
    if name_or_path == "host" {
        return Ok(host(&sys::Root::default())?.machine);
    }
    match preset(name_or_path) {
        Some(preset) => from_toml(preset.text, &format!("machines/{}.toml", preset.name)),
        None => Err(MachineError::UnknownName {
            name: name_or_path.to_string(),
            nearest: nearest(name_or_path, presets().iter().map(|preset| preset.name).chain(["host"])),
        }),
    }
}

fn from_file(path: &Path) -> Result<Machine, MachineError> {
    let unreadable = |source| MachineError::Read {
        path: path.to_path_buf(),
        source,
    };
    let mut file = std::fs::File::open(path).map_err(unreadable)?;
    let mut text = String::new();
    // One byte more than allowed, so that a device that never ends is noticed as well.
    file.by_ref()
        .take(FILE_LIMIT + 1)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    if text.len() as u64 > FILE_LIMIT {
        let bytes = file
            .metadata()
            .map_or(0, |metadata| metadata.len())
            .max(text.len() as u64);
        return Err(MachineError::TooLong {
            path: path.to_path_buf(),
            bytes,
            limit: FILE_LIMIT,
        });
    }
    from_toml(&text, &path.display().to_string())
}

/// The machine that `text` describes; `file_label` names the text in errors.
pub fn from_toml(text: &str, file_label: &str) -> Result<Machine, MachineError> {
    let mut lines = Lines::new(text);
    let document = DeTable::parse(text).map_err(|error| {
        let (line, column) = lines.place(error.span().map_or(0, |span| span.start));
        MachineError::Syntax {
            file: file_label.into(),
            line,
            column,
            message: error.message().trim().into(),
        }
    })?;
    let read = machine(Keys::new(String::new(), document.into_inner()), &mut lines);
    // Rules are checked in the order of the file, because that is what their keys count.
    let checked = read.and_then(|machine| check(&machine).map(|()| machine));
    match checked {
        Ok(mut machine) => {
            machine.caches.sort_by_key(|cache| cache.level);
            Ok(machine)
        }
        Err(fault) => Err(MachineError::Description {
            file: file_label.into(),
            line: lines.line(fault.key()),
            fault,
        }),
    }
}

fn machine(mut keys: Keys, lines: &mut Lines) -> Result<Machine, Fault> {
    let machine = Machine {
        name: keys.required_text("name", lines)?,
        clock_mhz: keys.required_number("clock_mhz", lines)?,
        page_bytes: keys.required_integer("page_bytes", i64::MAX as u64, lines)?,
        cpus: keys.required_u32("cpus", lines)?,
        caches: keys
            .tables("cache", lines)?
            .into_iter()
            .map(|keys| cache(keys, lines))
            .collect::<Result<_, _>>()?,
        tlb: keys.table("tlb", lines)?.map(|keys| tlb(keys, lines)).transpose()?,
        memory: memory(keys.required_table("memory", lines)?, lines)?,
        prefetch: keys
            .table("prefetch", lines)?
            .map(|keys| software_prefetch(keys, lines))
            .transpose()?,
        core: keys.table("core", lines)?.map(|keys| core(keys, lines)).transpose()?,
        regions: keys
            .table("regions", lines)?
            .map(|keys| regions(keys, lines))
            .transpose()?,
    };
    keys.finish(lines)?;
    Ok(machine)
}

fn cache(mut keys: Keys, lines: &mut Lines) -> Result<Cache, Fault> {
    let name = keys.required_text("name", lines)?;
    // The cast keeps the value: it is at most 255.
    let level = keys.required_integer("level", 255, lines)? as u8;
    let kind = keys.required_word(
        "kind",
        &[
            ("data", Kind::Data),
            ("instruction", Kind::Instruction),
            ("unified", Kind::Unified),
        ],
        lines,
    )?;
    let write = keys.word("write", &[("back", Write::Back), ("through", Write::Through)], lines)?;
    let write = write.unwrap_or(Write::Back);
    let cache = Cache {
        name,
        level,
        kind,
        bytes: keys.required_integer("bytes", i64::MAX as u64, lines)?,
        ways: keys.required_u32("ways", lines)?,
        line_bytes: keys.required_u32("line_bytes", lines)?,
        cpus_per_instance: keys.u32("cpus_per_instance", lines)?.unwrap_or(1),
        index: keys
            .word(
                "index",
                &[("virtual", Index::Virtual), ("physical", Index::Physical)],
                lines,
            )?
            .unwrap_or(Index::Physical),
        hash: keys.table("hash", lines)?.map(|keys| hash(keys, lines)).transpose()?,
        hit_ns: keys.required_number("hit_ns", lines)?,
        transfer_ns: keys.number("transfer_ns", lines)?.unwrap_or(0.0),
        others_gbps: keys.number("others_gbps", lines)?.unwrap_or(0.0),
        write,
        allocate_on_write: keys.flag("allocate_on_write", lines)?.unwrap_or(write == Write::Back),
        inclusive: keys.flag("inclusive", lines)?.unwrap_or(false),
        replacement: keys
            .word(
                "replacement",
                &[
                    ("lru", Replacement::Lru),
                    ("plru", Replacement::Plru),
                    ("random", Replacement::Random),
                    ("reuse", Replacement::Reuse),
                ],
                lines,
            )?
            .unwrap_or(Replacement::Lru),
        prefetch: prefetch(&mut keys, lines)?,
    };
    keys.finish(lines)?;
    Ok(cache)
}

fn prefetch(keys: &mut Keys, lines: &mut Lines) -> Result<Option<Prefetch>, Fault> {
    let follows = keys.word("prefetch", &[("none", false), ("stream", true)], lines)?;
    let streams = keys.u32("prefetch_streams", lines)?;
    let ahead = keys.u32("prefetch_lines", lines)?;
    let step = keys.u32("prefetch_step", lines)?;
    let pair = keys.flag("prefetch_pair", lines)?;
    let runs_on = keys.flag("prefetch_runs_on", lines)?;
    let after = keys.u32("prefetch_after", lines)?;
    let entries = keys.u32("prefetch_stride_entries", lines)?;
    let steps = keys.u32("prefetch_stride_ahead", lines)?;
    let bytes = keys.integer("prefetch_stride_bytes", u64::MAX, lines)?;
    let given = |value: Option<u32>| value.map(|value| value.to_string());
    let of_strides = [
        ("prefetch_stride_ahead", given(steps)),
        ("prefetch_stride_bytes", bytes.map(|value| value.to_string())),
    ];
    let of_streams = [
        ("prefetch_streams", given(streams)),
        ("prefetch_lines", given(ahead)),
        ("prefetch_step", given(step)),
        ("prefetch_pair", pair.map(|value| value.to_string())),
        ("prefetch_runs_on", runs_on.map(|value| value.to_string())),
        ("prefetch_after", given(after)),
        ("prefetch_stride_entries", given(entries)),
    ];
    if follows != Some(true) {
        let allowed = "nothing, unless the cache has prefetch = \"stream\"";
        refused(keys, of_streams.into_iter().chain(of_strides), allowed)?;
        return Ok(None);
    }
    if entries.is_none() {
        refused(
            keys,
            of_strides,
            "nothing, unless the cache has prefetch_stride_entries",
        )?;
    }
    let usual = Prefetch::default();
    let ahead = ahead.unwrap_or(usual.lines);
    Ok(Some(Prefetch {
        streams: streams.unwrap_or(usual.streams),
        lines: ahead,
        step: step.unwrap_or(ahead),
        pair: pair.unwrap_or(false),
        runs_on: runs_on.unwrap_or(false),
        after: after.unwrap_or(0),
        stride: entries.map(|entries| Stride {
            entries,
            ahead: steps.unwrap_or(Stride::default().ahead),
            bytes: bytes.unwrap_or(Stride::default().bytes),
        }),
    }))
}

/// Keys that say nothing without another one.
fn refused(
    keys: &Keys,
    given: impl IntoIterator<Item = (&'static str, Option<String>)>,
    allowed: &str,
) -> Result<(), Fault> {
    match given.into_iter().find_map(|(key, value)| Some((key, value?))) {
        Some((key, value)) => Err(Fault::value(keys.path(key), value, allowed)),
        None => Ok(()),
    }
}

fn software_prefetch(mut keys: Keys, lines: &mut Lines) -> Result<SoftwarePrefetch, Fault> {
    let usual = SoftwarePrefetch::default();
    let prefetch = SoftwarePrefetch {
        outstanding: keys.u32("outstanding", lines)?.unwrap_or(usual.outstanding),
    };
    keys.finish(lines)?;
    Ok(prefetch)
}

fn core(mut keys: Keys, lines: &mut Lines) -> Result<Core, Fault> {
    let core = Core {
        instructions_per_clock: keys.required_number("instructions_per_clock", lines)?,
        window: keys.required_u32("window", lines)?,
        outstanding: keys.required_u32("outstanding", lines)?,
        outstanding_of_bank: keys.u32("outstanding_of_bank", lines)?.unwrap_or(0),
        line_ns: keys.number("line_ns", lines)?.unwrap_or(0.0),
        memory_line_ns: keys.number("memory_line_ns", lines)?.unwrap_or(0.0),
        huge_memory_line_ns: keys.number("huge_memory_line_ns", lines)?.unwrap_or(0.0),
        store_buffer: keys.required_u32("store_buffer", lines)?,
        set_refill_ns: keys.number("set_refill_ns", lines)?.unwrap_or(0.0),
        bank_refill_ns: keys.number("bank_refill_ns", lines)?.unwrap_or(0.0),
        set_rewrite_ns: keys.number("set_rewrite_ns", lines)?.unwrap_or(0.0),
        misprediction_ns: keys.number("misprediction_ns", lines)?.unwrap_or(0.0),
    };
    keys.finish(lines)?;
    Ok(core)
}

fn regions(mut keys: Keys, lines: &mut Lines) -> Result<Regions, Fault> {
    let switch_ns = keys.required_number("switch_ns", lines)?;
    let mut bound = |key: &'static str| keys.integer(key, i64::MAX as u64, lines);
    let bounds = [
        bound("stay_least_ns")?,
        bound("stay_most_ns")?,
        bound("one_cache")?,
        bound("all_caches")?,
    ];
    let gains = match bounds {
        [None, None, None, None] => None,
        [
            Some(stay_least_ns),
            Some(stay_most_ns),
            Some(one_cache),
            Some(all_caches),
        ] => Some(Gains {
            stay_least_ns,
            stay_most_ns,
            one_cache,
            all_caches,
        }),
        _ => {
            let allowed = "all of stay_least_ns, stay_most_ns, one_cache and all_caches, or none";
            return Err(Fault::value("regions", "some bounds without others", allowed));
        }
    };
    keys.finish(lines)?;
    Ok(Regions { switch_ns, gains })
}

fn hash(mut keys: Keys, lines: &mut Lines) -> Result<IndexHash, Fault> {
    let hash = IndexHash {
        slices: keys.required_u32("slices", lines)?,
        masks: keys.array("masks", lines, |value, path| integer(value, path, i64::MAX as u64))?,
    };
    keys.finish(lines)?;
    Ok(hash)
}

fn tlb(mut keys: Keys, lines: &mut Lines) -> Result<Tlb, Fault> {
    let entries = keys.required_u32("entries", lines)?;
    let tlb = Tlb {
        entries,
        ways: keys.u32("ways", lines)?.unwrap_or(entries),
        wired: keys.u32("wired", lines)?.unwrap_or(0),
        refill_ns: keys.required_number("refill_ns", lines)?,
        walkers: keys.u32("walkers", lines)?.unwrap_or(0),
        huge_refill_ns: keys.number("huge_refill_ns", lines)?,
        far: keys
            .tables("far", lines)?
            .into_iter()
            .map(|keys| far(keys, lines))
            .collect::<Result<_, _>>()?,
    };
    keys.finish(lines)?;
    Ok(tlb)
}

fn far(mut keys: Keys, lines: &mut Lines) -> Result<FarPages, Fault> {
    let far = FarPages {
        pages: keys.required_u32("pages", lines)?,
        refill_ns: keys.required_number("refill_ns", lines)?,
    };
    keys.finish(lines)?;
    Ok(far)
}

fn memory(mut keys: Keys, lines: &mut Lines) -> Result<Memory, Fault> {
    let nodes = keys.u32("nodes", lines)?.unwrap_or(1);
    let local_ns = keys.required_number("local_ns", lines)?;
    let remote_ns = match nodes {
        // With one node nothing is remote.
        0 | 1 => keys.number("remote_ns", lines)?.unwrap_or(local_ns),
        _ => keys.required_number("remote_ns", lines)?,
    };
    let memory = Memory {
        nodes,
        local_ns,
        remote_ns,
        dirty_remote_ns: keys.number("dirty_remote_ns", lines)?.unwrap_or(remote_ns),
        bandwidth_gbps: keys.number("bandwidth_gbps", lines)?.unwrap_or(0.0),
        upgrade_ns: keys.number("upgrade_ns", lines)?.unwrap_or(0.0),
        fault_ns: keys.number("fault_ns", lines)?.unwrap_or(0.0),
        clear_ns: keys.number("clear_ns", lines)?.unwrap_or(0.0),
        huge_pages: keys
            .word(
                "huge_pages",
                &[
                    ("never", HugeData::Never),
                    ("madvise", HugeData::Madvise),
                    ("always", HugeData::Always),
                ],
                lines,
            )?
            .unwrap_or_default(),
        frames_per_node: keys.integer("frames_per_node", i64::MAX as u64, lines)?.unwrap_or(0),
        distances: keys.array("distances", lines, |row, path| {
            elements(row, path)?
                .iter()
                .enumerate()
                .map(|(index, value)| {
                    integer(value.get_ref(), &format!("{path}[{index}]"), 255).map(|distance| distance as u32)
                })
                .collect()
        })?,
        tiers: keys
            .tables("tier", lines)?
            .into_iter()
            .map(|keys| tier(keys, lines))
            .collect::<Result<_, _>>()?,
    };
    keys.finish(lines)?;
    Ok(memory)
}

fn tier(mut keys: Keys, lines: &mut Lines) -> Result<Tier, Fault> {
    let latency_ns = keys.required_number("latency_ns", lines)?;
    let tier = Tier {
        name: keys.required_text("name", lines)?,
        latency_ns,
        far_latency_ns: keys.number("far_latency_ns", lines)?.unwrap_or(latency_ns),
        near: keys.array("near", lines, |value, path| {
            integer(value, path, u64::from(NODES_MAX)).map(|node| node as u32)
        })?,
        bandwidth_gbps: keys.number("bandwidth_gbps", lines)?.unwrap_or(0.0),
        frames: keys.integer("frames", i64::MAX as u64, lines)?.unwrap_or(0),
    };
    keys.finish(lines)?;
    Ok(tier)
}
