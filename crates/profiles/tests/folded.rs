//! Folded stacks, by the flame graph that Inferno draws of them.

use std::collections::BTreeMap;

use inferno::flamegraph::{Options, from_lines};
use profiles::{Format, Value};
use results::Profile;

use crate::invented;
use crate::readers::text;
use crate::sums::{named, one_line, total, weight};

/// The boxes of a flame graph: name and weight, and how often there is one such.
type Boxes = BTreeMap<(String, i64), usize>;

fn drawn(folded: &str) -> Boxes {
    let mut options = Options::default();
    options.min_width = 0.0;
    let mut svg = Vec::new();
    from_lines(&mut options, folded.lines(), &mut svg).expect("the lines are folded stacks");
    let svg = String::from_utf8(svg).expect("it is text");
    let allowed = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..roxmltree::ParsingOptions::default()
    };
    let svg = roxmltree::Document::parse_with_options(&svg, allowed).expect("it is XML");
    let mut boxes = Boxes::new();
    for title in svg.descendants().filter(|node| node.has_tag_name("title")) {
        let title = title.text().expect("a title is text");
        // `name (1,234 samples, 5.6%)`
        let (name, counts) = title.rsplit_once(" (").expect("a weight follows the name");
        let weight = counts.split(' ').next().unwrap_or_default().replace(',', "");
        *boxes
            .entry((name.to_string(), weight.parse().expect("a weight")))
            .or_default() += 1;
    }
    boxes
}

/// The same boxes, from the profile.
fn expected(profile: &Profile, value: Value) -> Boxes {
    let name = |name: &str| one_line(name).replace(';', ":");
    let mut tree: BTreeMap<Vec<String>, i64> = BTreeMap::new();
    for stack in &profile.stacks {
        let weight = weight(stack, value).max(0);
        let mut path = named(profile, stack, |frame| name(&frame.function));
        let innermost = stack.frames.first().and_then(|at| profile.frames.get(*at as usize));
        if let Some(frame) = innermost
            && let (Some(file), Some(line)) = (&frame.file, frame.line)
        {
            path[0] += &format!(" ({}:{line})", name(file.rsplit('/').next().unwrap()));
        }
        path.reverse();
        if path[0].starts_with('#') {
            path[0].insert(0, '_');
        }
        path.push(format!("[{}]", name(&stack.structure)));
        for depth in 1..=path.len() {
            *tree.entry(path[..depth].to_vec()).or_default() += weight;
        }
        *tree.entry(vec!["all".to_string()]).or_default() += weight;
    }
    let mut boxes = Boxes::new();
    for (path, weight) in tree.into_iter().filter(|(_, weight)| *weight > 0) {
        *boxes.entry((path.last().unwrap().clone(), weight)).or_default() += 1;
    }
    boxes
}

#[test]
fn a_flame_graph_of_them_has_the_profiles_sums() {
    let profile = invented::profile();
    for value in Value::ALL {
        let folded = text(&invented::advice(), Format::Folded, value);
        assert_eq!(drawn(&folded), expected(&profile, value), "{value}:\n{folded}");
    }
}

#[test]
fn lines_are_sorted_and_sum_up_to_the_profile() {
    let profile = invented::profile();
    for value in Value::ALL {
        let folded = text(&invented::advice(), Format::Folded, value);
        let lines: Vec<_> = folded.lines().map(|line| line.rsplit_once(' ').unwrap()).collect();
        assert!(lines.is_sorted_by(|a, b| a.0 < b.0), "{folded}");
        let sum: i64 = lines.iter().map(|(_, weight)| weight.parse::<i64>().unwrap()).sum();
        assert_eq!(sum, total(&profile, |stack| weight(stack, value).max(0)), "{value}");
        assert!(lines.iter().all(|(_, weight)| *weight != "0"), "{folded}");
    }
    let folded = text(&invented::advice(), Format::Folded, Value::Stall);
    // Two lines of the caller, one stack.
    assert!(
        folded.contains("main;walk;walk;walk;key_of (tree.h:7);[nodes] 70123456813\n"),
        "{folded}"
    );
    assert!(
        folded.contains("\nlibx.so+0x12f0;a:b;[[stack: of 3]] 777\n"),
        "{folded}"
    );
}

#[test]
fn a_run_that_waited_for_nothing_has_no_lines() {
    assert_eq!(text(&invented::empty(), Format::Folded, Value::Stall), "");
}
