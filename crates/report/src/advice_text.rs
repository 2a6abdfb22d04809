//! The advice, for terminals.

use anstyle::Style;
use results::{
    Advice, Change, Collision, Outcome, SlotAdvice, Structure, StructureKind, WorkAdvice, bytes, change, count,
    percent, time,
};

use crate::bar::bar;
use crate::outcome_text::{classes, size};
use crate::table::{BAD, Cell, Column, FAINT, GOOD, HEADING, NAME, PLAIN, Table, cut, unbroken, wrap};

/// Columns of the longest bar.
const BAR: usize = 20;

/// The whole advice in at most `width` columns, without the closing lines that name files.
pub fn advice(advice: &Advice, width: usize) -> String {
    let mut text = header(advice, width);
    if advice.policies.is_empty() {
        return text;
    }
    text += &heading(&format!("Where the time goes under {}", advice.baseline));
    text += &shares(advice, width);
    if !advice.structures.is_empty() {
        text += &heading("What costs most");
        let stall = advice.base().map_or(0, |base| base.stall_ns());
        text += &structures(&advice.structures, stall, width);
    }
    if !advice.false_sharing.is_empty() {
        text += &heading("False sharing: different data in one line");
        text += &collisions(&advice.false_sharing, width);
    }
    text += &heading("Policies, the fastest first");
    text += &policies(advice, width);
    if let Some(advice) = &advice.work {
        text += &heading(&format!("The work in another order, {}", advice.policy));
        text += &work(advice, width);
    }
    if let Some(slots) = advice.slots.as_ref().filter(|slots| !slots.data.is_empty()) {
        text += &heading(&format!("Cache slots: a partition of {}", slots.cache));
        text += &partition(slots, width);
    }
    if let Some(cdpc) = &advice.cdpc {
        text += &heading(&format!("Compiler-directed page coloring of {}", cdpc.cache));
        text += &crate::cdpc_text::cdpc(cdpc, width);
    }
    text.push('\n');
    text += &paragraph("", &advice.verdict, width, HEADING);
    if !advice.notes.is_empty() {
        text.push('\n');
        for note in &advice.notes {
            text += &paragraph("note: ", note, width, FAINT);
        }
    }
    text
}

fn header(advice: &Advice, width: usize) -> String {
    let command = std::iter::once(&advice.program).chain(&advice.arguments);
    let command = command.map(String::as_str).collect::<Vec<_>>().join(" ");
    let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text = format!("{HEADING}{}{HEADING:#}\n", cut(&command, width));
    let machine = &advice.machine;
    let plural = |count: u32, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let facts = format!(
        "on {}: {}, {}, {}",
        machine.name,
        plural(machine.cpus, "cpu"),
        plural(machine.nodes, "node"),
        plural(machine.colors, "color"),
    );
    text += &paragraph("", &facts, width, PLAIN);
    let trace = &advice.trace;
    let mut facts = format!("{} references", count(trace.references));
    if let Some(instructions) = trace.instructions {
        facts += &format!(", {} instructions", count(instructions));
    }
    let threads = u32::try_from(trace.threads).unwrap_or(u32::MAX);
    facts += &format!(", {}", plural(threads, "thread"));
    if trace.processes > 1 {
        facts += &format!(" in {} processes", trace.processes);
    }
    facts += &format!(", {} of memory touched", bytes(trace.footprint_bytes));
    text + &paragraph("", &facts, width, PLAIN)
}

fn heading(title: &str) -> String {
    format!("\n{HEADING}{title}{HEADING:#}\n")
}

/// A text broken into lines, each after the first indented like the first word.
fn paragraph(start: &str, body: &str, width: usize, style: Style) -> String {
    let indent = " ".repeat(2 + start.chars().count());
    let lines = wrap(body, width.saturating_sub(indent.len()).max(20));
    let lines = lines.iter().enumerate().map(|(at, line)| match at {
        0 => format!("  {style}{start}{line}{style:#}\n"),
        _ => format!("{indent}{style}{line}{style:#}\n"),
    });
    lines.collect()
}

fn shares(advice: &Advice, width: usize) -> String {
    let mut table = Table::new([
        (Column::Cut, ""),
        (Column::Left, ""),
        (Column::Right, ""),
        (Column::Right, ""),
        (Column::Wrap, ""),
    ]);
    let largest = advice.shares.iter().map(|share| share.fraction).fold(0.0, f64::max);
    // What is too small to be seen is in the JSON.
    for share in advice.shares.iter().filter(|share| share.fraction >= 0.0005) {
        let style = if share.part == "busy" { GOOD } else { BAD };
        let mut classes: Vec<_> = share.classes.iter().collect();
        classes.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let classes = classes
            .iter()
            .map(|(class, ns)| unbroken(&format!("{class} {}", percent(*ns as f64 / share.ns as f64))));
        let fraction = if largest > 0.0 { share.fraction / largest } else { 0.0 };
        table.row([
            share.name.as_str().into(),
            Cell::styled(bar(fraction, BAR), style),
            percent(share.fraction).into(),
            time(share.ns).into(),
            Cell::styled(classes.collect::<Vec<_>>().join(", "), FAINT),
        ]);
    }
    let total = advice.base().map_or(0, |base| base.time_ns.total);
    let all = if advice.machine.cpus > 1 { "all cpus" } else { "all" };
    table.row([
        all.into(),
        " ".repeat(BAR).into(),
        percent(1.0).into(),
        time(total).into(),
        "".into(),
    ]);
    let mut text = table.render(width);
    if !advice.served.is_empty() {
        let served = advice
            .served
            .iter()
            .map(|share| format!("{} {}", share.name, percent(share.fraction)));
        let served = format!(
            "The waiting ended with data from: {}.",
            served.collect::<Vec<_>>().join(", ")
        );
        text += &paragraph("", &served, width, FAINT);
    }
    text
}

/// Structures with a smaller part of the stall, and lines with a smaller part of the worst line's
/// misses, are counted, not shown.
const SEEN: f64 = 0.001;

/// What was left out of a table, if anything.
fn left_out(count: usize, what: &str, of: &str, width: usize) -> String {
    let text = match count {
        0 => return String::new(),
        1 => format!("and 1 more {what} with less than 0.1% of {of}"),
        _ => format!("and {count} more {what}s with less than 0.1% of {of} each"),
    };
    paragraph("", &text, width, FAINT)
}

/// The data structures that cost most. `stall` is the time that their shares are of.
pub fn structures(structures: &[Structure], stall: u64, width: usize) -> String {
    let mut levels: Vec<u8> = structures
        .iter()
        .flat_map(|structure| structure.caches.iter().map(|cache| cache.level))
        .collect();
    levels.sort_unstable();
    levels.dedup();
    let mut columns = vec![(Column::Right, "stall".to_string())];
    columns.extend(levels.iter().map(|level| (Column::Right, format!("L{level} misses"))));
    columns.push((Column::Right, "size".to_string()));
    columns.push((Column::Wrap, "data structure".to_string()));
    let mut table = Table::new(columns);
    let small = |structure: &Structure| stall > 0 && (structure.stall_ns as f64) < SEEN * stall as f64;
    for structure in structures.iter().filter(|structure| !small(structure)) {
        let share = if stall > 0 {
            percent(structure.stall_ns as f64 / stall as f64)
        } else {
            String::new()
        };
        let mut row = vec![Cell::from(share)];
        row.extend(levels.iter().map(|&level| quiet(structure.of_level(level).misses)));
        row.push(size(structure.bytes, structure.blocks).into());
        row.push(Cell::styled(named_with_place(structure), NAME));
        table.row(row);
        for &level in &levels {
            let classes = classes(&structure.of_level(level));
            if !classes.is_empty() {
                let mut row = vec![Cell::from(""); levels.len() + 2];
                row.push(Cell::styled(format!("L{level}: {classes}"), FAINT));
                table.row(row);
            }
        }
    }
    let few = structures.iter().filter(|structure| small(structure)).count();
    table.render(width) + &left_out(few, "data structure", "the stall", width)
}

/// Allocation sites have their place in their name; symbols get it here.
fn named_with_place(structure: &Structure) -> String {
    match (structure.kind, &structure.file, structure.line) {
        (StructureKind::Symbol, Some(file), Some(line)) => {
            let file = file.rsplit('/').next().unwrap_or(file);
            format!("{} ({file}:{line})", structure.name)
        }
        _ => structure.name.clone(),
    }
}

fn collisions(collisions: &[Collision], width: usize) -> String {
    let mut table = Table::new([
        (Column::Right, "misses"),
        (Column::Left, "thread"),
        (Column::Left, ""),
        (Column::Cut, "data"),
        (Column::Cut, "source"),
    ]);
    let most = collisions.iter().map(|collision| collision.misses).max().unwrap_or(0);
    let small = |collision: &Collision| (collision.misses as f64) < SEEN * most as f64;
    for collision in collisions.iter().filter(|collision| !small(collision)) {
        for (at, side) in collision.sides.iter().enumerate() {
            let misses = if at == 0 {
                count(collision.misses)
            } else {
                String::new()
            };
            table.row([
                misses.into(),
                side.thread.as_str().into(),
                if side.write { "writes" } else { "reads" }.into(),
                Cell::styled(&side.field, NAME),
                side.source.as_deref().unwrap_or("").into(),
            ]);
        }
    }
    let few = collisions.iter().filter(|collision| small(collision)).count();
    table.render(width) + &left_out(few, "line", "the most misses", width)
}

fn policies(advice: &Advice, width: usize) -> String {
    let nodes = advice.machine.nodes > 1;
    let outer = |outcome: &Outcome| outcome.caches.last().cloned().unwrap_or_default();
    let name = advice
        .policies
        .first()
        .map_or(String::new(), |outcome| outer(outcome).name);
    let mut columns = vec![
        (Column::Left, "policy".to_string()),
        (Column::Right, "time".to_string()),
        (Column::Right, String::new()),
        (Column::Right, format!("{name} misses")),
    ];
    if nodes {
        columns.push((Column::Right, "local".to_string()));
    }
    columns.push((Column::Wrap, "misses by class".to_string()));
    let mut table = Table::new(columns);
    let base = advice.base().map_or(0, |base| base.time_ns.wall) as f64;
    for outcome in &advice.policies {
        let outer = outer(outcome);
        let wall = outcome.time_ns.wall as f64;
        let more = if base > 0.0 { wall / base - 1.0 } else { 0.0 };
        let more = match outcome.policy == advice.baseline {
            true => Cell::styled("(as now)", FAINT),
            false if more.abs() < 0.0005 => Cell::styled("same", FAINT),
            false => Cell::styled(change(wall, base), if more < 0.0 { GOOD } else { BAD }),
        };
        let mut row = vec![
            Cell::styled(&outcome.policy, NAME),
            time(outcome.time_ns.wall).into(),
            more,
            quiet(outer.misses),
        ];
        if nodes {
            row.push(percent(outcome.memory.local_percent / 100.0).into());
        }
        row.push(Cell::styled(classes(&outer.totals()), FAINT));
        table.row(row);
    }
    table.render(width)
}

/// Misses of every cache, before and after.
fn work(advice: &WorkAdvice, width: usize) -> String {
    let mut table = Table::new([
        (Column::Left, "cache"),
        (Column::Right, "misses"),
        (Column::Right, "in order"),
        (Column::Right, ""),
        (Column::Wrap, "by class"),
    ]);
    for cache in &advice.caches {
        let Change { before, after } = cache.misses;
        let change = match before {
            _ if before == after => Cell::styled("same", FAINT),
            0 => Cell::styled("", FAINT),
            _ => Cell::styled(
                change(after as f64, before as f64),
                if after < before { GOOD } else { BAD },
            ),
        };
        let classes = cache.classes.iter().filter(|(_, change)| change.before != change.after);
        let classes = classes.map(|(class, change)| unbroken(&advise::class_in_words(class, *change)));
        table.row([
            Cell::styled(&cache.name, NAME),
            quiet(before),
            quiet(after),
            change,
            Cell::styled(classes.collect::<Vec<_>>().join(", "), FAINT),
        ]);
    }
    table.render(width) + &paragraph("", &crate::work::facts(&advice.work), width, FAINT)
}

/// Who is protected and who is confined, with misses before and after.
fn partition(advice: &SlotAdvice, width: usize) -> String {
    let mut table = Table::new([
        (Column::Left, ""),
        (Column::Right, "slot"),
        (Column::Right, &format!("{} misses", advice.cache)[..]),
        (Column::Right, "in slots"),
        (Column::Right, ""),
        (Column::Right, "first uses"),
        (Column::Wrap, "data structure"),
    ]);
    let changed = |Change { before, after }: Change| match before {
        _ if before == after => Cell::styled("same", FAINT),
        0 => Cell::styled("", FAINT),
        _ => Cell::styled(
            change(after as f64, before as f64),
            if after < before { GOOD } else { BAD },
        ),
    };
    for data in &advice.data {
        table.row([
            data.role.as_str().into(),
            bytes(data.slot_bytes).into(),
            quiet(data.misses.before),
            quiet(data.misses.after),
            changed(data.misses),
            quiet(data.cold),
            Cell::styled(&data.name, NAME),
        ]);
    }
    table.row([
        "".into(),
        "".into(),
        quiet(advice.misses.before),
        quiet(advice.misses.after),
        changed(advice.misses),
        "".into(),
        "all data".into(),
    ]);
    let facts = format!(
        "{} of {} a color; a private slot is its data's alone, shared ones are small",
        bytes(advice.color_bytes),
        bytes(advice.bytes)
    );
    table.render(width) + &paragraph("", &facts, width, FAINT)
}

/// A count, faint where it is nothing.
fn quiet(value: u64) -> Cell {
    match value {
        0 => Cell::styled("0", FAINT),
        value => count(value).into(),
    }
}
