//! The tables of a result: the rows of all its runs, each with its policy.

use results::{ClassTotals, Misses, Page, SourceLine, Structure, TimelineRow};

use crate::columns::Columns;
use crate::folded;
use crate::runs::Run;
use crate::stacks::{Stack, Stacks, signed};

/// The names of all files that there can be.
pub const TABLES: [&str; 5] = [
    "stacks.parquet",
    "lines.parquet",
    "structures.parquet",
    "pages.parquet",
    "timeline.parquet",
];

/// The files of the existing parts of runs.
pub fn files(runs: &[Run]) -> Vec<(&'static str, Vec<u8>)> {
    let files = [stacks(runs), lines(runs), structures(runs), pages(runs), timeline(runs)];
    TABLES
        .into_iter()
        .zip(files)
        .filter_map(|(name, file)| Some((name, file?)))
        .collect()
}

/// A policy and one of its rows.
type Of<'a, Row> = (&'a str, &'a Row);

/// The rows of all runs that have the part; `None` if none has.
fn rows<'a, Row>(runs: &'a [Run<'a>], part: impl Fn(&'a Run<'a>) -> Option<&'a [Row]>) -> Option<Vec<Of<'a, Row>>> {
    let parts: Vec<_> = runs.iter().filter_map(|run| Some((&*run.policy, part(run)?))).collect();
    let rows = |(policy, rows): &(&'a str, &'a [Row])| {
        let policy = *policy;
        rows.iter().map(move |row| (policy, row))
    };
    (!parts.is_empty()).then(|| parts.iter().flat_map(rows).collect())
}

fn stacks(runs: &[Run]) -> Option<Vec<u8>> {
    let profiles = runs.iter().filter_map(|run| Some((&*run.policy, run.profile?)));
    let profiles: Vec<_> = profiles
        .map(|(policy, profile)| (policy, Stacks::of(profile)))
        .collect();
    let all = profiles
        .iter()
        .flat_map(|(policy, of)| of.stacks.iter().map(move |stack| (*policy, of, stack)));
    let rows: Vec<(&str, &Stacks, &Stack)> = all.collect();
    if profiles.is_empty() {
        return None;
    }
    let columns = Columns::of(&rows)
        .text("policy", |(policy, ..)| policy.to_string())
        .text("stack", |(_, of, stack)| folded::calls(of, stack))
        .text("function", |(_, of, stack)| {
            of.function(stack.frames[0]).name.to_string()
        })
        .maybe_text("file", |(_, of, stack)| {
            of.function(stack.frames[0]).file.as_deref().map(str::to_string)
        })
        .maybe_number("line", |(_, of, stack)| of.frames[stack.frames[0]].line.map(i64::from))
        .text("structure", |(.., stack)| stack.structure.to_string())
        .number("stall_ns", |(.., stack)| signed(stack.stall_ns))
        .number("misses", |(.., stack)| signed(stack.misses))
        .maybe_number("avoided_ns", |(.., stack)| stack.avoided_ns);
    Some(columns.file())
}

fn lines(runs: &[Run]) -> Option<Vec<u8>> {
    let rows = rows(runs, |run| run.lines)?;
    let columns = Columns::of(&rows)
        .text("policy", |(policy, _)| policy.to_string())
        .text("function", |(_, line): &Of<SourceLine>| line.function.clone())
        .maybe_text("file", |(_, line)| line.file.clone())
        .maybe_number("line", |(_, line)| line.line.map(i64::from))
        .number("stall_ns", |(_, line)| signed(line.stall_ns));
    Some(misses(columns, |(_, line)| line.nearest()).file())
}

fn structures(runs: &[Run]) -> Option<Vec<u8>> {
    let rows = rows(runs, |run| run.structures)?;
    let columns = Columns::of(&rows)
        .text("policy", |(policy, _)| policy.to_string())
        .text("name", |(_, structure): &Of<Structure>| structure.name.clone())
        .text("kind", |(_, structure)| structure.kind.to_string())
        .maybe_text("file", |(_, structure)| structure.file.clone())
        .maybe_number("line", |(_, structure)| structure.line.map(i64::from))
        .number("bytes", |(_, structure)| signed(structure.bytes))
        .number("blocks", |(_, structure)| signed(structure.blocks))
        .number("stall_ns", |(_, structure)| signed(structure.stall_ns));
    Some(misses(columns, |(_, structure)| structure.nearest()).file())
}

fn pages(runs: &[Run]) -> Option<Vec<u8>> {
    let rows = rows(runs, |run| run.pages)?;
    let columns = Columns::of(&rows)
        .text("policy", |(policy, _)| policy.to_string())
        .number("process", |(_, page): &Of<Page>| page.process.into())
        .address("page", |(_, page)| page.page)
        .text("structure", |(_, page)| page.structure.clone())
        .number("stall_ns", |(_, page)| signed(page.stall_ns));
    Some(misses(columns, |(_, page)| Misses::nearest(&page.caches)).file())
}

/// Misses of the caches nearest to the cpus, with classes if they were classed.
fn misses<'a, Row>(columns: Columns<'a, Row>, of: impl Fn(&'a Row) -> ClassTotals) -> Columns<'a, Row> {
    let class = |at: usize| {
        let of = &of;
        move |row: &'a Row| of(row).classes[at].map(signed)
    };
    columns
        .number("misses", |row| signed(of(row).misses))
        .maybe_number("cold", class(0))
        .maybe_number("capacity", class(1))
        .maybe_number("conflict", class(2))
        .maybe_number("true_sharing", class(3))
        .maybe_number("false_sharing", class(4))
}

/// A row for each interval of each row of a timeline.
fn timeline(runs: &[Run]) -> Option<Vec<u8>> {
    let timelines: Vec<_> = runs.iter().filter_map(|run| Some((run, run.timeline?))).collect();
    if timelines.is_empty() {
        return None;
    }
    let mut rows: Vec<(&str, &str, &TimelineRow, u64, u64)> = Vec::new();
    for (run, of) in timelines {
        let structures = of.structures.iter().map(|row| ("structure", row));
        let threads = of.threads.iter().map(|row| ("thread", row));
        let colors = of.colors.iter().map(|row| ("color", row));
        for (what, row) in structures.chain(threads).chain(colors) {
            let intervals = (0..).map(|at: u64| at.saturating_mul(of.interval_ns));
            let values = intervals.zip(&row.stall_ns);
            rows.extend(values.map(|(start, stall)| (&*run.policy, what, row, start, *stall)));
        }
    }
    let columns = Columns::of(&rows)
        .text("policy", |(policy, ..)| policy.to_string())
        .number("start_ns", |(.., start, _)| signed(*start))
        .text("what", |(_, what, ..)| what.to_string())
        .text("name", |(_, _, row, ..)| row.name.clone())
        .number("stall_ns", |(.., stall)| signed(*stall));
    Some(columns.file())
}
