//! This machine as Linux describes it, with what was measured in the place of what is usual.
//!
//! [`here`] is what the name `host` stands for. It measures nothing itself: `domicile probe` does, and keeps its
//! figures until the machine boots again.

use super::processor::{self, Faults, Processor, Sets};
use super::{Effort, Measured, Point};
use machine::{
    Cache, Core, FarPages, HostReport, Kind, Machine, MachineError, Note, Prefetch, Replacement, Stride, Trust, host,
};

/// This machine, with the figures that were kept since its last boot.
///
/// Errors: those of [`host()`].
pub fn here() -> Result<HostReport, MachineError> {
    let mut report = host(&sys::Root::default())?;
    take(&mut report, super::kept().as_ref(), processor::kept().as_ref());
    report.machine.check()?;
    Ok(report)
}

/// This machine as it is at this moment: measured now, and nothing is kept. Some seconds with [`Effort::Quick`].
///
/// Errors: those of [`host()`].
pub fn at_this_moment(effort: Effort) -> Result<HostReport, MachineError> {
    let mut report = host(&sys::Root::default())?;
    let processor = processor::measure(&report, effort);
    take(&mut report, Some(&super::measure(effort)), Some(&processor));
    report.machine.check()?;
    Ok(report)
}

/// The machine that `name_or_path` names, as [`machine::load`] reads it; `host` is [`here`].
pub fn load(name_or_path: &str) -> Result<Machine, MachineError> {
    match name_or_path {
        "host" => Ok(here()?.machine),
        _ => machine::load(name_or_path),
    }
}

/// Puts measured figures in the place of assumed ones, and notes each.
fn take(report: &mut HostReport, measured: Option<&Measured>, processor: Option<&Processor>) {
    if let Some(measured) = measured {
        take_caches(report, measured);
        take_translation(report, measured);
    }
    if let Some(processor) = processor {
        take_processor(report, processor);
    }
}

/// A note that takes the place of those about the same.
fn note_measured(report: &mut HostReport, about: &str, text: String) {
    report.notes.retain(|note| note.about != about);
    report.notes.push(Note {
        trust: Trust::Measured,
        about: about.to_string(),
        text,
    });
}

fn take_caches(report: &mut HostReport, measured: &Measured) {
    let Some(first) = nearest_ns(measured, &report.machine) else {
        return;
    };
    let levels = measured.levels(&report.machine);
    let mut inside = 0;
    let (mut sizes, mut said) = (Vec::new(), Vec::new());
    for got in &levels {
        let Some(at) = report.machine.caches.iter().position(|cache| cache.name == got.cache) else {
            continue;
        };
        let others = measured
            .others
            .filter(|_| levels.last().is_some_and(|last| last.cache == got.cache));
        if got.got_bytes <= inside && at > 0 && others.is_none() {
            sizes.push(format!("{} gives this process nothing and is left out", got.cache));
            report.machine.caches.remove(at);
            continue;
        }
        let cache = &mut report.machine.caches[at];
        // A hit in the nearest is what all other times are counted from.
        cache.hit_ns = match inside {
            0 => 0.0,
            _ => tenths(served_ns(&measured.curve, inside, got.got_bytes).unwrap_or(got.ns) - first),
        };
        // A fast walk finds more than a slow one, where others bring lines in.
        let holds = others.map_or(got.got_bytes, |others| others.bytes);
        // The sizes that are tried are a half apart, so a little less is no finding.
        if holds < cache.bytes / 4 * 3 {
            cut(cache, holds);
            sizes.push(format!(
                "{} holds {} KiB of {}",
                got.cache,
                cache.bytes >> 10,
                got.described_bytes >> 10
            ));
        }
        if let Some(others) = others {
            cache.hit_ns = tenths(others.ns - first);
            cache.others_gbps = hundredths(others.gbps).clamp(0.01, OTHERS_MAX);
            sizes.push(format!("others bring {} GB/s into {}", cache.others_gbps, got.cache));
            if others.kept_once < KEPT_ONCE_LEAST {
                cache.replacement = Replacement::Reuse;
                sizes.push(format!(
                    "{} keeps {:.0}% of the lines that are read once, so only lines that are used again stay (replacement = \"reuse\")",
                    got.cache,
                    100.0 * others.kept_once
                ));
            }
        }
        said.push(format!("a hit in {} waits {} ns", got.cache, cache.hit_ns));
        inside = cache.bytes;
    }
    if sizes.is_empty() {
        sizes.push("as large as Linux reports".to_string());
    }
    note_measured(report, "cache.bytes", sizes.join("; "));
    note_measured(report, "cache.hit_ns", said.join("; "));
    let memory = &mut report.machine.memory;
    let remote = memory.remote_ns / memory.local_ns;
    let dirty = memory.dirty_remote_ns / memory.local_ns;
    memory.local_ns = tenths(measured.memory_ns - first);
    memory.remote_ns = tenths(memory.local_ns * remote);
    memory.dirty_remote_ns = tenths(memory.local_ns * dirty);
    let text = format!("{} ns beyond a hit in the first cache", memory.local_ns);
    note_measured(report, "memory.local_ns", text);
}

fn take_translation(report: &mut HostReport, measured: &Measured) {
    let page_bytes = report.machine.page_bytes;
    let (Some(reach), Some(refill), Some(tlb)) = (
        measured.tlb_reach_bytes,
        measured.refill_ns,
        report.machine.tlb.as_mut(),
    ) else {
        return;
    };
    tlb.entries = (reach / page_bytes).clamp(1, 1 << 20) as u32;
    tlb.ways = if tlb.entries.is_multiple_of(TLB_WAYS) {
        TLB_WAYS
    } else {
        tlb.entries
    };
    tlb.refill_ns = tenths(refill);
    tlb.walkers = measured.walkers.unwrap_or(tlb.walkers);
    tlb.huge_refill_ns = measured.huge_refill_ns.map(tenths);
    let far = measured.far.iter().map(|far| FarPages {
        pages: (far.bytes / page_bytes).clamp(1, 1 << 24) as u32,
        refill_ns: tenths(far.refill_ns).max(tlb.refill_ns),
    });
    tlb.far = far.collect();
    let at_once = match tlb.walkers {
        0 => String::new(),
        walkers => format!(", {walkers} of them at a time"),
    };
    let far = tlb.far.iter();
    let far: String = far
        .map(|far| format!("; {} ns beyond {} pages", far.refill_ns, far.pages))
        .collect();
    let huge = match tlb.huge_refill_ns {
        None => String::new(),
        Some(ns) => format!("; on huge pages, which the host keeps in small ones, {ns} ns"),
    };
    let text = format!(
        "reaches {} KiB of small pages; beyond, translation adds {} ns to a load of another page{at_once}{far}{huge}",
        reach >> 10,
        tlb.refill_ns
    );
    note_measured(report, "tlb", text);
}

/// A walk in order that waits for each load is faster than memory by as many lines as are on their way ahead of it
/// (Little's law). What is walked nearly as fast belongs to a stream. A walk that takes less for a page than memory for
/// a line never waited at a page's beginning. Longer steps that are walked at least twice as fast as memory answers are
/// followed by instruction. How many streams and instructions are followed at a time is not measured.
fn take_prefetcher(report: &mut HostReport, processor: &Processor) {
    let Some(alone) = processor.chains.first().map(|chains| chains.ns) else {
        return;
    };
    let in_order = processor.strides.first().map_or(alone, |point| point.ns);
    let ahead = (alone / in_order.max(0.1)).round();
    let page_bytes = report.machine.page_bytes;
    let beyond_first = |cache: &&mut Cache| cache.level > 1 && cache.kind != Kind::Instruction;
    let Some(cache) = report
        .machine
        .caches
        .iter_mut()
        .find(beyond_first)
        .filter(|_| ahead >= 2.0)
    else {
        return;
    };
    let line = u64::from(cache.line_bytes);
    let nearly_as_fast = |point: &&Point| point.bytes >= line && point.ns < 2.0 * in_order;
    let longest = processor.strides.iter().take_while(nearly_as_fast).last();
    let lines_of_a_page = page_bytes as f64 / line as f64;
    let step = longest.map_or(1, |point| point.bytes / line).clamp(1, 64);
    let beyond = processor.strides.iter().filter(|point| point.bytes > step * line);
    let followed: Vec<&Point> = beyond.take_while(|point| point.ns * 2.0 <= alone).collect();
    let stride = followed.last().map(|longest| Stride {
        ahead: (alone / crate::rounds::median(followed.iter().map(|point| point.ns).collect()))
            .round()
            .clamp(1.0, 64.0) as u32,
        bytes: longest.bytes,
        ..Stride::default()
    });
    let prefetch = Prefetch {
        lines: ahead.min(64.0) as u32,
        step: step as u32,
        // The probe's lines are of 64 bytes.
        pair: cache.line_bytes == 64 && processor.pairs.brought(),
        runs_on: in_order * lines_of_a_page < 1.5 * alone,
        // A second line in order begins any stream.
        after: processor.walks.after().filter(|steps| *steps > 1).unwrap_or(0),
        stride,
        ..Prefetch::default()
    };
    cache.prefetch = Some(prefetch);
    let text = format!(
        "{} lines ahead of a walk in order, which waits {} ns for a line{}; steps of up to {} lines{}{}; {} streams at a time \
         are assumed",
        prefetch.lines,
        tenths(in_order),
        if prefetch.runs_on {
            ", and not at a page's beginning"
        } else {
            ""
        },
        prefetch.step,
        if prefetch.pair {
            "; the other line of each pair of 128 bytes is brought along"
        } else {
            ""
        },
        match prefetch.after {
            0 => String::new(),
            after => format!("; none before a walk has gone on for {after} lines, then twice as many as it has"),
        },
        prefetch.streams
    );
    let strides = stride.map(|stride| {
        format!(
            "{} steps ahead of an instruction whose steps are the same, of up to {} KiB; {} instructions at a time are assumed",
            stride.ahead,
            stride.bytes >> 10,
            stride.entries
        )
    });
    let name = cache.name.clone();
    note_measured(report, &format!("{name}.prefetch"), text);
    if let Some(text) = strides {
        note_measured(report, &format!("{name}.prefetch_stride_entries"), text);
    }
}

fn take_processor(report: &mut HostReport, processor: &Processor) {
    take_prefetcher(report, processor);
    let machine = &mut report.machine;
    machine.clock_mhz = processor.pace.clock_mhz.round();
    machine.memory.fault_ns = tenths(processor.faults.fault_ns).clamp(0.0, 1e6);
    machine.memory.clear_ns = tenths(processor.faults.clear_ns).clamp(0.0, 1e6);
    machine.memory.bandwidth_gbps = tenths(processor.stream.all_cpus_gbps / f64::from(machine.memory.nodes));
    // Where two cpus share no cache, a line that one of them wrote takes this long to the other.
    let apart = processor.transfers.iter().find(|transfer| transfer.shares.is_none());
    if let Some(apart) = apart {
        machine.memory.dirty_remote_ns = tenths(apart.ns);
    }
    // A cpu that hands a number on reads the other's line, and then announces its write, which takes a hit. Cpus of one core have all
    // caches in common.
    let mut within = Vec::new();
    let data = machine.caches.iter().filter(|cache| cache.kind != Kind::Instruction);
    let core = data
        .min_by_key(|cache| cache.level)
        .map_or(1, |first| first.cpus_per_instance);
    for transfer in &processor.transfers {
        let shared = machine
            .caches
            .iter_mut()
            .find(|cache| transfer.shares.as_ref() == Some(&cache.name) && cache.cpus_per_instance > core);
        if let Some(shared) = shared {
            shared.transfer_ns = tenths((transfer.ns - shared.hit_ns).max(shared.hit_ns));
            let [from, to] = transfer.cpus;
            let text = format!("{} ns from cpu {from} to cpu {to}", shared.transfer_ns);
            within.push((format!("{}.transfer_ns", shared.name), text));
        }
    }
    let clock = format!("{} MHz", machine.clock_mhz);
    let bandwidth = format!(
        "{} GB/s of each node, read by all cpus at once",
        machine.memory.bandwidth_gbps
    );
    let dirty = apart.map(|apart| {
        let [from, to] = apart.cpus;
        format!("{} ns from cpu {from} to cpu {to}", tenths(apart.ns))
    });
    let lines = processor.lines_at_once().round().clamp(1.0, 256.0);
    let of_bank = processor.lines_of_bank_at_once();
    let of_bank = of_bank.map(|lines| lines.round().clamp(1.0, 256.0));
    let line_ns = processor.stream.line_ns().map_or(0.0, hundredths).clamp(0.0, 1000.0);
    let of_memory = |ns: f64| hundredths(ns).clamp(0.0, 1000.0);
    let memory_line_ns = of_memory(processor.stream.memory_line_ns);
    // Huge pages are read no slower than small ones: what took longer was a busy moment.
    let huge_memory_line_ns = of_memory(processor.stream.huge_memory_line_ns).min(memory_line_ns);
    let pace = processor.pace.instructions_per_clock;
    report.machine.core = Some(Core {
        instructions_per_clock: tenths(pace.unwrap_or(USUAL_PACE)).clamp(0.1, 64.0),
        window: processor.window.unwrap_or(USUAL_WINDOW),
        outstanding: lines as u32,
        outstanding_of_bank: of_bank.map_or(0, |lines| lines as u32),
        line_ns,
        memory_line_ns,
        huge_memory_line_ns,
        store_buffer: USUAL_STORE_BUFFER,
        set_refill_ns: hundredths(processor.sets.refill_ns),
        bank_refill_ns: hundredths(processor.sets.bank_refill_ns).clamp(0.0, 1000.0),
        set_rewrite_ns: hundredths(processor.sets.rewrite_ns),
        misprediction_ns: tenths(processor.pace.misprediction_ns).clamp(0.0, 1000.0),
    });
    note_measured(
        report,
        "core.outstanding",
        format!("{lines} lines on their way at once, by chains of loads"),
    );
    if let Some(lines) = of_bank {
        let text = format!("{lines} of them where lines are a multiple of four apart");
        note_measured(report, "core.outstanding_of_bank", text);
    }
    if line_ns > 0.0 {
        let text = format!("{line_ns} ns from line to line that a core reads in order beyond its second level");
        note_measured(report, "core.line_ns", text);
    }
    for (key, ns, pages) in [
        ("core.memory_line_ns", memory_line_ns, "small"),
        ("core.huge_memory_line_ns", huge_memory_line_ns, "huge"),
    ] {
        if ns > 0.0 {
            let text = format!("{ns} ns from line to line that a core reads in order from memory on {pages} pages");
            note_measured(report, key, text);
        }
    }
    if processor.sets.bank_refill_ns > 0.0 {
        let ns = hundredths(processor.sets.bank_refill_ns);
        let text = format!(
            "{ns} ns from line to line in one bank of the first cache (line numbers that are the same modulo 4)"
        );
        note_measured(report, "core.bank_refill_ns", text);
    }
    if processor.sets.refill_ns > 0.0 {
        let Sets {
            refill_ns, rewrite_ns, ..
        } = processor.sets;
        let text = format!(
            "{} ns from line to line in one set of the first cache, and {} ns more where it is written",
            tenths(refill_ns),
            tenths(rewrite_ns)
        );
        note_measured(report, "core.set_refill_ns", text);
    }
    if let Some(pace) = pace {
        let text = format!("{} in straight code that waits for nothing", tenths(pace));
        note_measured(report, "core.instructions_per_clock", text);
    }
    if processor.pace.misprediction_ns > 0.0 {
        let text = format!(
            "{} ns for a branch that is foretold wrongly",
            tenths(processor.pace.misprediction_ns)
        );
        note_measured(report, "core.misprediction_ns", text);
    }
    if processor.faults.fault_ns > 0.0 {
        let Faults { fault_ns, clear_ns } = processor.faults;
        let text = format!(
            "{} ns for the first touch of a page, {} more for each further 4 KiB of a huge one",
            tenths(fault_ns),
            tenths(clear_ns)
        );
        note_measured(report, "memory.fault_ns", text);
    }
    if let Some(window) = processor.window {
        let text = format!("{window} instructions under way while a load waits for memory");
        note_measured(report, "core.window", text);
    }
    report.notes.push(Note {
        trust: Trust::Assumed,
        about: "core".to_string(),
        text: match processor.window {
            Some(_) => format!("{USUAL_STORE_BUFFER} stores that wait, as server processors have had since 2015"),
            None => format!(
                "{USUAL_WINDOW} instructions under way and {USUAL_STORE_BUFFER} stores that wait, as server processors have \
                 had since 2015"
            ),
        },
    });
    note_measured(report, "clock_mhz", clock);
    note_measured(report, "memory.bandwidth_gbps", bandwidth);
    for (about, text) in within {
        note_measured(report, &about, text);
    }
    if let Some(dirty) = dirty {
        note_measured(report, "memory.dirty_remote_ns", dirty);
    }
}

/// More than memory gives is a busy moment.
const OTHERS_MAX: f64 = 1000.0;

/// A last level that keeps fewer of the lines that are read once favors those that are used again.
const KEPT_ONCE_LEAST: f64 = 0.5;

/// Instructions under way: Intel's Skylake has 224, AMD's Zen 224, later ones up to 512 (the manufacturers' optimization
/// manuals).
const USUAL_WINDOW: u32 = 224;

/// Stores that wait: Skylake has 56, Zen 2 48 (likewise).
const USUAL_STORE_BUFFER: u32 = 48;

/// Instructions a clock where the loop that would show it is not written for this processor.
const USUAL_PACE: f64 = 4.0;

/// As many as second-level TLBs of x86 servers have had since 2015, of which 8 or 12 are usual.
const TLB_WAYS: u32 = 8;

/// The time of a load from the nearest cache for data.
fn nearest_ns(measured: &Measured, machine: &Machine) -> Option<f64> {
    let nearest = machine.caches.iter().find(|cache| cache.kind != Kind::Instruction)?;
    let within = measured.curve.iter().filter(|point| point.bytes <= nearest.bytes);
    within.map(|point| point.ns).min_by(f64::total_cmp)
}

/// The time of loads that a level serves: the middle one of the working sets that are twice what the levels before hold,
/// or larger, and that it holds. None where no such size was tried.
fn served_ns(curve: &[Point], inside: u64, holds: u64) -> Option<f64> {
    let of_level = |point: &&Point| point.bytes >= 2 * inside && point.bytes <= holds;
    let mut times: Vec<f64> = curve.iter().filter(of_level).map(|point| point.ns).collect();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

/// Leaves a cache as much as it really holds: a part of its sets, halved as often as that takes, and of those a part of
/// the ways. So pages keep their colors as far as the sets go.
fn cut(cache: &mut Cache, bytes: u64) {
    let halvings = (cache.bytes / bytes.max(1)).max(1).ilog2();
    let slices = cache.hash.as_ref().map_or(1, |hash| hash.slices);
    let way = u64::from(cache.line_bytes) * u64::from(slices);
    let all_sets = cache.bytes / u64::from(cache.ways) / way;
    let sets = (all_sets >> halvings).max(1);
    let ways = (bytes / (sets * way)).clamp(1, u64::from(cache.ways));
    cache.ways = ways as u32;
    cache.bytes = ways * sets * way;
}

/// Tenths are as fine as timing gets.
fn tenths(ns: f64) -> f64 {
    (ns.max(0.0) * 10.0).round() / 10.0
}

fn hundredths(ns: f64) -> f64 {
    (ns.max(0.0) * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests;
