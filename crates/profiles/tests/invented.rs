//! A result that nobody measured, with everything in it that a form can stumble over.

use results::{
    Advice, Document, MachineFacts, Misses, Outcome, Page, Profile, ProfileFrame, ProfileStack, SourceLine, Structure,
    StructureKind, Timeline, TimelineBlock, TimelinePhase, TimelineRow,
};

pub const CHANGE: &str = "page coloring; \"bin hopping\"";

fn frame(function: &str, file: Option<&str>, line: Option<u32>) -> ProfileFrame {
    ProfileFrame {
        function: function.to_string(),
        file: file.map(str::to_string),
        line,
    }
}

fn stack(frames: &[u32], structure: &str, stall_ns: u64, misses: u64, avoided_ns: i64) -> ProfileStack {
    ProfileStack {
        frames: frames.to_vec(),
        inlined: 0,
        structure: structure.to_string(),
        stall_ns,
        misses,
        avoided_ns: Some(avoided_ns),
    }
}

pub fn profile() -> Profile {
    let frames = vec![
        frame("main", Some("/src/join.c"), Some(12)),
        frame("walk", Some("/src/tree.c"), Some(40)),
        frame("walk", Some("/src/tree.c"), Some(44)),
        // Inlined into `walk`, from a header.
        frame("key_of", Some("/src/tree.h"), Some(7)),
        frame("<img onerror=x>", Some("/src/a;b.cc"), Some(3)),
        frame("a;b", None, None),
        frame(
            "operator \"\" _s(unsigned long, char const*)",
            Some("/src/with space/lit.cc"),
            Some(88),
        ),
        frame("libx.so+0x12f0", None, None),
        frame("größe::次", Some("/src/größe.rs"), None),
        frame("(7)", Some("/src/tree.c"), Some(5)),
        frame("two\nlines", Some("/src/join.c"), Some(1)),
        frame("# of rows", Some("/src/join.c"), Some(2)),
        // The same name elsewhere.
        frame("walk", Some("/src/graph.c"), Some(9)),
        frame("main", Some("/src/join.c"), Some(13)),
        frame("", None, Some(4)),
    ];
    let stacks = vec![
        // Recursion, and inlined code at its end.
        stack(&[3, 2, 2, 1, 0], "nodes", 70_123_456_789, 1_000_003, 60_000_000_001),
        stack(&[3, 2, 1, 0], "nodes", 5_000_000_007, 90_001, -17),
        stack(&[2, 1, 0], "heap: build_table (join.c:120)", 1_234_567, 4321, 0),
        // Through one another, and back into the outermost.
        stack(&[4, 1, 13, 9, 2, 0], "counters", 999_999, 5000, 12_345),
        stack(&[5, 7], "[stack; of 3]", 777, 33, -800),
        stack(&[6, 8, 0], "a \"quoted\" 12", 4242, 21, 4242),
        stack(&[10, 13], "two\nlines", 31, 1, 30),
        stack(&[12, 11], "nodes", 1009, 11, 9),
        stack(&[14], "", 55, 2, 5),
        // Weighs nothing.
        stack(&[7, 0], "nodes", 0, 0, 0),
        // The same stack by folded lines, from two lines of a caller.
        stack(&[3, 2, 2, 2, 0], "nodes", 11, 1, 1),
        stack(&[3, 2, 2, 1, 13], "nodes", 13, 1, -1),
        // Of frames that are not there, and of none.
        stack(&[99, 0], "nodes", 17, 1, 2),
        stack(&[], "nowhere", 19, 1, 2),
    ];
    Profile {
        samples: 1234,
        frames,
        stacks,
        change: Some(CHANGE.to_string()),
    }
}

pub fn timeline() -> Timeline {
    let row = |name: &str, stall_ns: &[u64]| TimelineRow {
        name: name.to_string(),
        stall_ns: stall_ns.to_vec(),
    };
    let block = |address: u64, misses: &[u64]| TimelineBlock {
        address,
        bytes: 4096,
        stall_ns: vec![1; misses.len()],
        misses: misses.to_vec(),
        ..TimelineBlock::default()
    };
    Timeline {
        interval_ns: 2048,
        structures: vec![
            row("nodes", &[10, 0, 30, 4_000_000_000]),
            row("<img onerror=x>", &[0, 0, 7, 1]),
        ],
        // Two threads of one name.
        threads: vec![row("worker", &[5, 0, 37, 4_000_000_000]), row("worker", &[5, 0, 0, 1])],
        blocks: vec![block(0x1000, &[1, 2, 3, 4]), block(0x2000, &[100, 0, 0, 9])],
        colors: vec![
            row("color 0", &[10, 0, 37, 0]),
            row("color 1", &[0, 0, 0, 4_000_000_001]),
        ],
        moved_pages: vec![0, 3, 0, 1],
        phases: vec![
            TimelinePhase {
                name: "build".to_string(),
                begin_ns: 0,
            },
            TimelinePhase {
                name: "<img onerror=x>".to_string(),
                begin_ns: 3000,
            },
        ],
    }
}

fn misses(level: u8, misses: u64, classed: bool) -> Misses {
    Misses {
        name: format!("L{level}"),
        level,
        misses,
        cold: classed.then_some(misses / 2),
        capacity: classed.then_some(misses - misses / 2),
        conflict: classed.then_some(0),
        true_sharing: classed.then_some(0),
        false_sharing: classed.then_some(0),
    }
}

pub fn lines() -> Vec<SourceLine> {
    vec![
        SourceLine {
            function: "walk".to_string(),
            file: Some("/src/tree.c".to_string()),
            line: Some(44),
            stall_ns: 70_000_000_001,
            caches: vec![misses(1, 1001, true), misses(2, 77, true)],
            ..SourceLine::default()
        },
        SourceLine {
            function: "<img onerror=x>".to_string(),
            stall_ns: 3,
            caches: vec![misses(1, 2, false)],
            ..SourceLine::default()
        },
    ]
}

pub fn structures() -> Vec<Structure> {
    vec![Structure {
        name: "größe 'x'; \"y\"".to_string(),
        kind: StructureKind::Heap,
        file: Some("/src/join.c".to_string()),
        line: Some(120),
        bytes: 1 << 33,
        blocks: 12,
        stall_ns: 12_345_678_901,
        caches: vec![misses(1, 10, true)],
    }]
}

pub fn pages() -> Vec<Page> {
    vec![Page {
        process: u32::MAX,
        page: 0xffff_8000_0000_1000,
        structure: "nodes".to_string(),
        stall_ns: 9,
        caches: vec![misses(1, 3, false)],
    }]
}

/// An advice with all parts, and the outcome of a second policy with a profile of its own.
pub fn advice() -> Document {
    let other = Profile {
        change: None,
        stacks: vec![ProfileStack {
            frames: vec![0],
            inlined: 0,
            structure: "nodes".to_string(),
            stall_ns: 8,
            misses: 2,
            avoided_ns: None,
        }],
        ..profile()
    };
    let outcome = |policy: &str| Outcome {
        policy: policy.to_string(),
        machine: "invented".to_string(),
        ..Outcome::default()
    };
    Document::Advice(Box::new(Advice {
        program: "/opt/my join".to_string(),
        arguments: vec!["--rows".to_string(), "it's 5".to_string()],
        machine: MachineFacts {
            name: "invented".to_string(),
            ..MachineFacts::default()
        },
        baseline: "first-touch".to_string(),
        structures: structures(),
        source_lines: lines(),
        timeline: Some(timeline()),
        profile: Some(profile()),
        policies: vec![
            Outcome {
                pages: Some(pages()),
                ..outcome("first-touch")
            },
            Outcome {
                profile: Some(other),
                ..outcome("page-coloring")
            },
        ],
        ..Advice::default()
    }))
}

/// Outcomes of which the second alone has parts.
pub fn outcomes(profile: Profile, timeline: Timeline) -> Document {
    let bare = Outcome {
        policy: "random".to_string(),
        machine: "invented".to_string(),
        ..Outcome::default()
    };
    let full = Outcome {
        policy: "first-touch".to_string(),
        settings: vec!["trigger=64".to_string()],
        profile: Some(profile),
        timeline: Some(timeline),
        source_lines: Some(Vec::new()),
        structures: Some(Vec::new()),
        pages: Some(Vec::new()),
        ..bare.clone()
    };
    Document::Outcomes(vec![bare, full])
}

/// A result of a run that waited for nothing.
pub fn empty() -> Document {
    let profile = Profile {
        change: Some(CHANGE.to_string()),
        ..Profile::default()
    };
    let timeline = Timeline {
        interval_ns: 1024,
        ..Timeline::default()
    };
    outcomes(profile, timeline)
}
