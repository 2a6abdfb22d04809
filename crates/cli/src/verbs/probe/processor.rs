//! The probe's figures of a cpu that overlaps misses, as text.

use ::measured::processor::{Processor, Transfer};
use report::{Cell, Column, Exact, Role, Table};

use super::{HEADING, load, loads, wrapped};

/// The figures in sentences; with `details`, also the tables behind them.
pub fn text(processor: &Processor, width: usize, details: bool) -> String {
    let chains = chains(processor);
    let mut text = String::new();
    if details {
        text += &format!("{HEADING}{}{HEADING:#}\n", chains.title());
        text += &chains.text(width);
    }
    text += &wrapped(
        &format!(
            "  One cpu has up to {:.1} lines on their way at once{}.",
            processor.lines_at_once(),
            processor
                .lines_of_bank_at_once()
                .map_or_else(String::new, |lines| format!(
                    ", {lines:.1} where they are a multiple of four lines apart"
                ))
        ),
        width,
    );
    if let Some(window) = processor.window {
        text += &wrapped(
            &format!("  It has about {window} instructions under way while a load waits."),
            width,
        );
    }
    if processor.sets.refill_ns > 0.0 {
        text += &wrapped(
            &format!(
                "  One set of the first cache takes a line each {:.1} ns, and {:.1} ns more where lines are written.",
                processor.sets.refill_ns, processor.sets.rewrite_ns
            ),
            width,
        );
    }
    if processor.sets.bank_refill_ns > 0.0 {
        text += &wrapped(
            &format!(
                "  Lines whose numbers are the same modulo 4 come to the first cache each {:.1} ns.",
                processor.sets.bank_refill_ns
            ),
            width,
        );
    }
    let strides = strides(processor);
    if details {
        text += &format!("{HEADING}{}{HEADING:#}, each after the other\n", strides.title());
        text += &strides.text(width);
    }
    let mut said = format!(
        "  One cpu reads {:.1} GB/s in order, all of them together {:.1} GB/s.",
        processor.stream.one_cpu_gbps, processor.stream.all_cpus_gbps
    );
    let [small, huge] = [processor.stream.memory_line_ns, processor.stream.huge_memory_line_ns];
    if small > 0.0 {
        said += &format!(" A line of memory takes it {small:.1} ns");
        if huge > 0.0 {
            said += &format!(", and {huge:.1} ns on huge pages");
        }
        said += " (medians).";
    }
    said += &format!(" The clock runs at {:.0} MHz", processor.pace.clock_mhz);
    said += &match processor.pace.instructions_per_clock {
        Some(each) => format!("; straight code that waits for nothing carries out {each:.1} instructions a clock."),
        None => ".".to_string(),
    };
    if processor.pace.misprediction_ns > 0.0 {
        said += &format!(
            " A branch that is foretold wrongly costs {:.1} ns.",
            processor.pace.misprediction_ns
        );
    }
    if processor.faults.fault_ns > 0.0 {
        said += &format!(
            " The first touch of a page costs {:.0} ns, that of a huge one {:.0} us.",
            processor.faults.fault_ns,
            (processor.faults.fault_ns + 511.0 * processor.faults.clear_ns) / 1e3
        );
    }
    text += &wrapped(&said, width);
    for transfer in &processor.transfers {
        text += &wrapped(&format!("  {}", between(transfer)), width);
    }
    if processor.transfers.is_empty() {
        text += &wrapped(
            "  No two cpus were there at once, so the way of a line between them is not known.",
            width,
        );
    }
    text
}

fn between(transfer: &Transfer) -> String {
    let [from, to] = transfer.cpus;
    let shares = match &transfer.shares {
        Some(cache) => format!("which share {cache}"),
        None => "which share no cache".to_string(),
    };
    format!(
        "A line that cpu {from} wrote is seen by cpu {to}, {shares}, after {:.0} ns.",
        transfer.ns
    )
}

fn chains(processor: &Processor) -> Table {
    let columns = [Column::new(Role::Count, "chains"), loads("a load")];
    let mut table = Table::new("Loads from memory in chains side by side", columns);
    for chains in &processor.chains {
        let count = Exact::Whole(u64::from(chains.chains));
        table.row([Cell::number(count, chains.chains.to_string()), load(chains.ns)]);
    }
    table
}

fn strides(processor: &Processor) -> Table {
    let columns = [Column::new(Role::Bytes, "stride"), loads("a load")];
    let mut table = Table::new("Loads from memory in order, by stride", columns);
    for point in &processor.strides {
        table.row([Cell::bytes(point.bytes), load(point.ns)]);
    }
    table
}
