//! Stall by call stack as a flame graph: the waiting time, and the part of it that the largest change would avoid.

use std::collections::BTreeMap;

use results::{Profile, ProfileFrame, ProfileStack, short};

use super::pictures::{Bar, Drawing, Picture, View};
use super::sections::Sections;
use crate::table::{Cell, Column, Role, Table};

pub const TITLE: &str = "Flame graphs of waiting";

/// Parts of the whole that are too narrow to see are not drawn.
const NARROW: f64 = 0.001;
/// How many frames of a stack are drawn, the innermost: a result may have any number.
const DEEPEST: usize = 200;
/// Rows of the table.
const ROWS: usize = 30;

pub fn section(sections: &mut Sections, title: &str, of: &Profile) {
    let waits = bars(of, |stack| stack.stall_ns);
    if waits.is_empty() {
        return;
    }
    let mut views = vec![view("Waiting", waits)];
    let avoided = bars(of, |stack| stack.avoided_ns.unwrap_or(0).max(0) as u64);
    if !avoided.is_empty() {
        views.push(view("What the change avoids", avoided));
    }
    let mut caption = match of.samples {
        0 => "The recording has no call stacks: lines stand without their callers.".to_string(),
        samples => format!(
            "Callers stand above what they call; below each line is the data that it waits for. Waits of lines are exact, and are \
             divided among callers by {} samples of the call stack.",
            results::count(samples)
        ),
    };
    if let Some(change) = &of.change {
        caption += &format!(" The change: {change}.");
    }
    caption += " Select a bar to see it in full width.";
    let picture = Picture::new(title, views);
    // A screen reader also reads the caption: it has no code.
    sections.picture(title, &caption.replace('`', ""), picture, &[table(of)]);
}

fn view(name: &str, bars: Vec<Bar>) -> View {
    View {
        name: name.to_string(),
        drawing: Drawing::Flame { bars },
    }
}

/// A function, line or data structure, below those that called it.
#[derive(Default)]
struct Node {
    ns: u64,
    below: BTreeMap<String, Node>,
}

/// The bars from the top down; a part begins at the end of its siblings with a larger stall.
fn bars(of: &Profile, weight: impl Fn(&ProfileStack) -> u64) -> Vec<Bar> {
    let mut root = Node::default();
    for stack in &of.stacks {
        let ns = weight(stack);
        if ns == 0 {
            continue;
        }
        root.ns = root.ns.saturating_add(ns);
        let mut node = &mut root;
        let (program, frames) = match stack.frames.split_last() {
            Some((&last, rest)) if of.is_program(last) => (Some(of.frames[last as usize].function.clone()), rest),
            _ => (None, &stack.frames[..]),
        };
        let frames = from_main(of, frames).iter().take(DEEPEST).enumerate().rev();
        let names = frames.map(|(at, &frame)| name(of.frames.get(frame as usize), at == 0));
        for name in program
            .into_iter()
            .chain(names)
            .chain([format!("[{}]", short(&stack.structure))])
        {
            node = node.below.entry(name).or_default();
            node.ns = node.ns.saturating_add(ns);
        }
    }
    let mut bars = Vec::new();
    if root.ns > 0 {
        bars.push(Bar {
            name: "all".to_string(),
            depth: 0,
            from: 0,
            ns: root.ns,
        });
        put(&root, 1, 0, (root.ns as f64 * NARROW) as u64, &mut bars);
    }
    bars
}

/// Innermost first, without the callers of `main`: the C library's work before it is the same in every program.
fn from_main<'a>(of: &Profile, frames: &'a [u32]) -> &'a [u32] {
    let is_main = |frame: &u32| {
        let frame = of.frames.get(*frame as usize);
        frame.is_some_and(|frame| frame.function == "main")
    };
    let main = frames.iter().rposition(is_main);
    main.map_or(frames, |main| &frames[..=main])
}

fn put(node: &Node, depth: u32, mut from: u64, least: u64, bars: &mut Vec<Bar>) {
    let mut below: Vec<(&String, &Node)> = node.below.iter().collect();
    below.sort_by_key(|(_, node)| std::cmp::Reverse(node.ns));
    for (name, node) in below {
        if node.ns > least {
            bars.push(Bar {
                name: name.clone(),
                depth,
                from,
                ns: node.ns,
            });
            put(node, depth + 1, from, least, bars);
        }
        from = from.saturating_add(node.ns);
    }
}

/// A function; for the one that waits, with its line.
fn name(frame: Option<&ProfileFrame>, waits: bool) -> String {
    let Some(frame) = frame else { return String::new() };
    let function = short(&frame.function);
    match place(frame).filter(|_| waits) {
        Some(place) => format!("{function} ({place})"),
        None => function,
    }
}

fn place(frame: &ProfileFrame) -> Option<String> {
    let file = frame.file.as_ref()?;
    Some(format!("{}:{}", file.rsplit('/').next().unwrap_or(file), frame.line?))
}

fn table(of: &Profile) -> Table {
    let mut columns = vec![
        Column::new(Role::Label, "line"),
        Column::new(Role::Text, "called by").wrap(),
        Column::new(Role::Text, "waits for"),
        Column::new(Role::Time, "waited"),
    ];
    if of.change.is_some() {
        columns.push(Column::new(Role::Text, "the change avoids"));
    }
    columns.push(Column::new(Role::Count, "misses"));
    let mut table = Table::new("Waiting by call stack", columns);
    for stack in of.stacks.iter().take(ROWS) {
        let frame = |at: usize| stack.frames.get(at).and_then(|&frame| of.frames.get(frame as usize));
        let callers = (1..stack.frames.len().min(DEEPEST)).map(|at| name(frame(at), false));
        let mut cells = vec![
            Cell::name(name(frame(0), true)),
            callers.collect::<Vec<_>>().join(", ").into(),
            Cell::name(stack.structure.as_str()),
            Cell::time(stack.stall_ns),
        ];
        if of.change.is_some() {
            let avoided = stack.avoided_ns.unwrap_or(0);
            let sign = if avoided < 0 { "-" } else { "" };
            cells.push(format!("{sign}{}", results::time(avoided.unsigned_abs())).into());
        }
        cells.push(Cell::count(stack.misses));
        table.row(cells);
    }
    if of.stacks.len() > ROWS {
        table.note(format!("{} more in the full result", of.stacks.len() - ROWS));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_holds_anything_is_drawn() {
        let stack = |frames: Vec<u32>| ProfileStack {
            frames,
            stall_ns: u64::MAX,
            ..ProfileStack::default()
        };
        let profile = Profile {
            stacks: vec![stack(vec![7; 1 << 20]), stack(Vec::new())],
            ..Profile::default()
        };
        let bars = bars(&profile, |stack| stack.stall_ns);
        assert_eq!(bars.iter().map(|bar| bar.depth).max(), Some(DEEPEST as u32 + 1));
        assert_eq!(table(&profile).len(), 2);
    }

    #[test]
    fn bars_lie_within_those_above_them() {
        let frame = |function: &str| ProfileFrame {
            function: function.to_string(),
            ..ProfileFrame::default()
        };
        let stack = |frames: &[u32], structure: &str, stall_ns| ProfileStack {
            frames: frames.to_vec(),
            structure: structure.to_string(),
            stall_ns,
            ..ProfileStack::default()
        };
        let profile = Profile {
            frames: vec![frame("walk"), frame("sum"), frame("main")],
            stacks: vec![
                stack(&[1, 2], "array", 200),
                stack(&[0, 2], "list", 700),
                stack(&[0, 2], "tree", 100),
            ],
            ..Profile::default()
        };
        let bars = bars(&profile, |stack| stack.stall_ns);
        let seen: Vec<_> = bars
            .iter()
            .map(|bar| (bar.name.as_str(), bar.depth, bar.from, bar.ns))
            .collect();
        let expected = [
            ("all", 0, 0, 1000),
            ("main", 1, 0, 1000),
            ("walk", 2, 0, 800),
            ("[list]", 3, 0, 700),
            ("[tree]", 3, 700, 100),
            ("sum", 2, 800, 200),
            ("[array]", 3, 800, 200),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn callers_of_main_are_left_out() {
        let frame = |function: &&str| ProfileFrame {
            function: (*function).to_string(),
            ..ProfileFrame::default()
        };
        let profile = Profile {
            frames: ["walk", "main", "_start"].iter().map(frame).collect(),
            ..Profile::default()
        };
        assert_eq!(from_main(&profile, &[0, 1, 2]), [0, 1]);
        assert_eq!(from_main(&profile, &[0, 2]), [0, 2]);
    }
}
