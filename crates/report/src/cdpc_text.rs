//! The part of the advice on compiler-directed page coloring, for terminals.

use results::{CdpcAdvice, change, count, time};

use crate::cdpc::{facts, size};
use crate::table::{BAD, Cell, Column, FAINT, GOOD, NAME, Table, wrap};

/// The other policies beside it, the arrays that conflict, and what the hints are of.
pub fn cdpc(advice: &CdpcAdvice, width: usize) -> String {
    let mut table = Table::new([
        (Column::Left, "policy".to_string()),
        (Column::Right, "time".to_string()),
        (Column::Right, "cdpc".to_string()),
        (Column::Right, format!("{} misses", advice.cache)),
        (Column::Right, "conflicts".to_string()),
    ]);
    let after = advice.against.first();
    for rival in &advice.against {
        let style = if rival.gain > 0.0 { GOOD } else { BAD };
        let saved = match rival.gain.abs() < 0.0005 {
            true => Cell::styled("same", FAINT),
            false => Cell::styled(change(advice.wall_ns as f64, rival.wall_ns as f64), style),
        };
        table.row([
            Cell::styled(&rival.policy, NAME),
            time(rival.wall_ns).into(),
            saved,
            count(rival.misses.before).into(),
            count(rival.conflicts.before).into(),
        ]);
    }
    table.row([
        Cell::styled(&advice.policy, NAME),
        time(advice.wall_ns).into(),
        "".into(),
        after.map_or_else(String::new, |rival| count(rival.misses.after)).into(),
        after
            .map_or_else(String::new, |rival| count(rival.conflicts.after))
            .into(),
    ]);
    let mut text = table.render(width);
    if !advice.arrays.is_empty() {
        let mut table = Table::new([
            (Column::Right, "conflicts".to_string()),
            (Column::Right, format!("{} misses", advice.cache)),
            (Column::Right, "size".to_string()),
            (Column::Wrap, "arrays that conflict as things are".to_string()),
        ]);
        for array in &advice.arrays {
            table.row([
                count(array.conflicts).into(),
                count(array.misses).into(),
                size(array).into(),
                Cell::styled(&array.name, NAME),
            ]);
        }
        text += &table.render(width);
    }
    for line in wrap(&facts(advice), width.saturating_sub(2).max(20)) {
        text += &format!("  {FAINT}{line}{FAINT:#}\n");
    }
    text
}
