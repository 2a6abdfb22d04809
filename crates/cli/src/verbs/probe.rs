//! `domicile probe`: how much of the caches this process actually gets, and whether page colors work here.

mod processor;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use ::measured::processor::{Processor, processor as cpu};
use ::measured::{
    self, ColorReport, ColorVerdict, Effect, Effort, Far, Finding, FrameSource, LevelGot, Measured, Others, Validated,
};
use anstyle::{AnsiColor, Style};
use clap::Args;
use report::{Cell, Column, Exact, Role, Table};
use serde::Serialize;

use super::Done;
use crate::console::Console;
use crate::failure::Failure;
use crate::progress;

/// Measure the caches that this process really gets, and validate page colors by timing
///
/// Slots are made of colors: sets of frames that compete for the same sets of a cache. Pages of one color must thrash
/// beyond their share, and pages of different colors must not; if timing shows otherwise, nothing is colored, and the
/// reason is given. Measurements are kept until the machine boots again.
#[derive(Args)]
#[command(after_help = "Example:\n  domicile probe\n  domicile probe --quick --json")]
pub struct Probe {
    /// Take about two seconds
    #[arg(long, conflicts_with = "careful")]
    quick: bool,
    /// Take more rounds, about ten seconds (the default)
    #[arg(long)]
    careful: bool,
    /// Repeat measurements that were made since the last boot
    #[arg(long)]
    fresh: bool,

    /// Print all timings, not only the conclusions
    #[arg(long)]
    details: bool,
}

#[derive(Serialize)]
struct Outcome {
    levels: Vec<LevelGot>,
    measured: Measured,
    processor: Processor,
    colors: ColorReport,
}

impl Probe {
    pub fn run(&self, console: &mut Console) -> Done {
        let effort = if self.quick { Effort::Quick } else { Effort::Careful };
        let host = ::machine::host(&sys::Root::default()).map_err(Failure::work)?;
        let progress = progress::unknown("timing working sets");
        let figures = match self.fresh {
            true => measured::measured_afresh(effort),
            false => measured::measured(effort),
        };
        progress.set_message("timing chains of loads, walks in order, and lines handed from cpu to cpu");
        let processor = cpu(&host, effort, self.fresh);
        progress.set_message("timing pages of equal and of different colors");
        let colors = measured::color_report(effort, self.fresh);
        progress.finish_and_clear();
        let outcome = Outcome {
            levels: figures.levels(&host.machine),
            measured: figures,
            processor,
            colors,
        };
        if console.json() {
            console.line(&outcome)?;
        } else {
            console.text(&text(&outcome, console.columns(), self.details))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

const HEADING: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Yellow.on_default();

/// Nanoseconds of a load, with one decimal.
fn load(ns: f64) -> Cell {
    Cell::decimals(ns, 1, " ns")
}

/// A column of such times.
fn loads(title: &str) -> Column {
    Column::new(Role::Number, title).of("ns")
}

/// Times of loads over working sets.
fn curve(measured: &Measured) -> Table {
    let columns = [Column::new(Role::Bytes, "working set"), loads("a load")];
    let mut table = Table::new("Time of a load over the working set", columns);
    for point in &measured.curve {
        table.row([Cell::bytes(point.bytes), load(point.ns)]);
    }
    table
}

/// The part of each cache that this process gets.
fn levels(outcome: &Outcome) -> Table {
    let mut table = Table::new(
        "What this process gets",
        [
            Column::new(Role::Label, "cache"),
            Column::new(Role::Bytes, "it has"),
            Column::new(Role::Bytes, "we get"),
            loads("a load"),
        ],
    );
    for level in &outcome.levels {
        table.row([
            level.cache.as_str().into(),
            Cell::bytes(level.described_bytes),
            Cell::bytes(level.got_bytes),
            load(level.ns),
        ]);
    }
    table.row([
        "memory".into(),
        Cell::empty(),
        Cell::empty(),
        load(outcome.measured.memory_ns),
    ]);
    table
}

/// Times of loads from pages that agree in the candidate bits, and from pages that do not, by the number of pages.
fn steps(finding: &Finding) -> Table {
    let mut table = Table::new(
        format!("Pages that agree in the candidate bits of {}", finding.cache),
        [
            Column::new(Role::Count, "  pages"),
            loads("equal in these bits"),
            loads("taking all their values"),
        ],
    );
    for step in &finding.steps {
        let pages = Exact::Whole(step.pages as u64);
        table.row([
            Cell::number(pages, step.pages.to_string()),
            load(step.same_ns),
            load(step.mixed_ns),
        ]);
    }
    table
}

/// The effect of flipping single bits.
fn single_bits(finding: &Finding) -> Table {
    let mut table = Table::new(
        format!("Candidate bits of {}, each by itself", finding.cache),
        [
            Column::new(Role::Label, "  bits"),
            loads("equal"),
            loads("half flipped"),
            Column::new(Role::Text, "they separate pages"),
        ],
    );
    for test in &finding.tests {
        let names: Vec<String> = test.bits.iter().map(u32::to_string).collect();
        let effect = match test.effect {
            Effect::Separates { .. } => "yes",
            Effect::Nothing { .. } => "no",
            Effect::Unclear => "not clear",
        };
        table.row([
            format!("  {}", names.join("+")).into(),
            load(test.same_ns),
            load(test.flipped_ns),
            effect.into(),
        ]);
    }
    table
}

/// The result; with `details`, all timings before it.
fn text(outcome: &Outcome, width: usize, details: bool) -> String {
    let measured = &outcome.measured;
    let curve = curve(measured);
    let mut text = format!("{HEADING}{}{HEADING:#}, in random order\n", curve.title());
    text += &curve.text(width);
    let levels = levels(outcome);
    match details {
        true => text += &levels.section(width),
        false => text = format!("{HEADING}{}{HEADING:#}\n{}", levels.title(), levels.text(width)),
    }
    if let Some(others) = &measured.others {
        text += &wrapped(&shared(others), width);
    }
    let tlb = match (measured.tlb_reach_bytes, measured.refill_ns) {
        (Some(reach), Some(refill)) => format!(
            "  The TLB reaches {} of small pages; beyond, translation adds {refill:.1} ns to a load of another page{}{}.",
            report::bytes(reach),
            match measured.walkers {
                None => String::new(),
                Some(walkers) => format!(", {walkers} of them at a time"),
            },
            far(&measured.far)
        ),
        _ => "  Translation of small pages costs no more than a load from the last cache, as far as was looked at."
            .into(),
    };
    text += &wrapped(&tlb, width);
    if details {
        text += "\n";
    }
    text += &processor::text(&outcome.processor, width, details);
    if details {
        return text + "\n" + &colors(&outcome.colors, width) + &conclusion(&outcome.colors, width);
    }
    text + &conclusion(&outcome.colors, width) + "More: domicile probe --details\n"
}

/// Walks to page tables that are no longer in the caches.
fn far(steps: &[Far]) -> String {
    let step = |far: &Far| format!("{:.1} ns beyond {}", far.refill_ns, report::bytes(far.bytes));
    match steps.iter().map(step).collect::<Vec<String>>() {
        none if none.is_empty() => String::new(),
        steps => format!("; page tables leave the caches: {}", steps.join(", ")),
    }
}

/// The effect of other programs on the last level.
fn shared(others: &Others) -> String {
    let kept_ms = |bytes: u64| (others.bytes.saturating_sub(bytes)) as f64 / others.gbps / 1e6;
    let set = others.bytes / 4;
    format!(
        "  Others bring {:.1} GB/s into the last level: {} that are not used for {:.0} ms are gone. It keeps {:.0}% of what is read once.",
        others.gbps,
        report::bytes(set),
        kept_ms(set),
        100.0 * others.kept_once
    )
}

fn colors(colors: &ColorReport, width: usize) -> String {
    let mut text = format!("{HEADING}Page colors{HEADING:#}\n");
    if let Some(source) = colors.frames {
        let known = match source {
            FrameSource::Pagemap => "known from /proc/self/pagemap",
            FrameSource::HugePages => "known by their order in huge pages (bits 12 to 20)",
        };
        let made = if colors.huge {
            "in huge pages"
        } else {
            "not all in huge pages"
        };
        let tried = format!(
            "  Tried with {} {made}; frames are {known}.",
            report::bytes(colors.bytes)
        );
        text += &wrapped(&tried, width);
    }
    if let Some(translation) = colors.translation {
        let meaning = match translation.whole() {
            Some(true) => "huge pages are translated as a whole",
            Some(false) => "huge pages are translated piece by piece, as if they were small ones",
            None => "too little to tell them apart",
        };
        let added = format!(
            "  Translation adds {:.1} ns to a load in huge pages and {:.1} ns in small ones: {meaning}.",
            translation.huge_ns, translation.small_ns
        );
        text += &wrapped(&added, width);
    }
    for finding in &colors.findings {
        text += "\n";
        text += &of_cache(finding, width);
    }
    text + "\n"
}

/// The text on usable colors.
fn conclusion(colors: &ColorReport, width: usize) -> String {
    match colors.outcome() {
        Ok(validated) => wrapped(
            &format!(
                "{GOOD}Conclusion{GOOD:#}: colors are real here: {}.",
                sentence(&validated)
            ),
            width,
        ),
        Err(not) => wrapped(&format!("{BAD}Conclusion{BAD:#}: {}.", not.reason), width),
    }
}

fn sentence(validated: &Validated) -> String {
    format!(
        "{} of {} each in {} ({}), by bits {} of a frame's address; confidence {:.2} %",
        1u64 << validated.bits,
        report::bytes(validated.color_bytes),
        validated.cache,
        if validated.shared {
            "shared by cpus"
        } else {
            "private to a cpu"
        },
        bits(validated.first_bit, validated.bits),
        100.0 * validated.confidence
    )
}

fn of_cache(finding: &Finding, width: usize) -> String {
    let mut head = format!("  {HEADING}{}{HEADING:#}", finding.cache);
    if finding.bits > 0 {
        head += &format!(", candidate bits {}", bits(finding.first_bit, finding.bits));
    }
    if let Some(times) = finding.times {
        head += &format!(
            "; a load that it serves takes {:.1} ns, one that it does not {:.1} ns",
            times.inside_ns, times.outside_ns
        );
    }
    let mut text = wrapped(&head, width);
    if !finding.steps.is_empty() {
        text += &steps(finding).text(width);
    }
    if !finding.tests.is_empty() {
        text += &single_bits(finding).text(width);
    }
    let verdict = match &finding.verdict {
        ColorVerdict::Colors {
            first_bit,
            bits: count,
            pages,
            confidence,
        } => format!(
            "colors by bits {}, {pages} pages each; confidence {:.2} %",
            bits(*first_bit, *count),
            100.0 * confidence
        ),
        ColorVerdict::Nothing { reason, confidence } => {
            format!("no colors: {reason}; confidence {:.2} %", 100.0 * confidence)
        }
        ColorVerdict::Unclear { reason } => format!("nothing can be said: {reason}"),
    };
    text + &wrapped(&format!("    {}: {verdict}.", finding.cache), width)
}

fn bits(first: u32, count: u32) -> String {
    match count {
        0 | 1 => first.to_string(),
        _ => format!("{first} to {}", first + count - 1),
    }
}

/// A paragraph in lines that fit, each indented as the first.
fn wrapped(paragraph: &str, width: usize) -> String {
    let body = paragraph.trim_start();
    let indent = " ".repeat(paragraph.len() - body.len());
    let room = width.saturating_sub(indent.len()).max(24);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in body.split(' ') {
        let long = anstream::adapter::strip_str(word).to_string().chars().count();
        if used > 0 && used + 1 + long > room {
            lines.push(String::new());
            used = 0;
        }
        let last = lines.len() - 1;
        if used > 0 {
            lines[last].push(' ');
            used += 1;
        }
        lines[last].push_str(word);
        used += long;
    }
    lines.iter().map(|line| format!("{indent}{line}\n")).collect()
}
