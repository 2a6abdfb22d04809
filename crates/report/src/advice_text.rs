//! The advice, for terminals.

use results::{Advice, bytes, command_line, count};

use crate::table::{FAINT, HEADING, PLAIN, WARNING, cut, paragraph};
use crate::tables::{Top, of_advice};

/// The whole advice in at most `width` columns, without the closing lines that name files. The warning that a run broke off is
/// one line of any length.
pub fn advice(advice: &Advice, width: usize, top: Top) -> String {
    // One line, whatever its length: a reader of only the first line gets all of it.
    let warning = advice.warning().map(|text| format!("{WARNING}{text}{WARNING:#}\n"));
    let mut text = warning.unwrap_or_default() + &header(advice, width);
    if advice.policies.is_empty() {
        return text;
    }
    for table in of_advice(advice, top) {
        text += &table.section(width);
    }
    text.push('\n');
    for line in advice.regions.iter().flat_map(|regions| &regions.lines) {
        text += &paragraph("", line, width, PLAIN);
    }
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
    let command = command_line(std::iter::once(&advice.program).chain(&advice.arguments));
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
