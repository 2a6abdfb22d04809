//! Plans of slots: reading returns what was written, and a mistake is reported at its place.

use policy::slots::{Kind, Plan, PlannedData, PlannedSlot, What};
use proptest::prelude::*;
use results::site::{Frame, Memory, Site, Symbol};

const CG: &str = r#"
# NAS CG
[[slot]]
name = "vector"
bytes = "3584 KiB"
kind = "private"

[[slot]]
name = "matrix"
bytes = 65536
kind = "shared"

[[data]]
symbol = "p (cg.c:40)"
slot = "vector"
cpus = [1, 0, 1]

[[data]]
site = "heap: makea (cg.c:412)"
at_least = "1 MiB"
slot = "matrix"

[[data]]
site = "heap: makea (cg.c:412)"
slot = "none"
"#;

#[test]
fn a_plan_says_which_data_gets_which_slot() {
    let plan = Plan::read(CG, "cg.toml").unwrap();
    assert_eq!((plan.slots[0].bytes, plan.slots[0].kind), (3584 << 10, Kind::Private));
    assert_eq!((plan.slots[1].bytes, plan.slots[1].kind), (65536, Kind::Shared));
    assert_eq!((plan.data[0].slot, &plan.data[0].cpus[..]), (Some(0), &[0, 1][..]));
    assert_eq!(plan.for_variable("p", "/home/me/cg"), Some(&plan.data[0]));
    assert_eq!(plan.for_variable("q", "/home/me/cg"), None);
    let frame = Frame {
        function: Some("makea"),
        file: Some("/src/cg.c"),
        line: Some(412),
        ..Frame::default()
    };
    let block = |bytes| plan.for_block(&[frame], Memory::Heap, bytes).unwrap().slot;
    // The first entry that fits counts.
    assert_eq!((block(1 << 20), block(1 << 19)), (Some(1), None));
    assert_eq!(plan.for_block(&[frame], Memory::Map, 1 << 20), None);
}

#[test]
fn a_mistake_is_reported_with_its_line_its_key_and_what_is_allowed() {
    for (from, to, expected) in [
        (
            "bytes = 65536",
            "bytes = 0",
            "p.toml:10: slot[1].bytes: found 0; allowed: a number of bytes from 1, or a size such as \"256 KiB\" (B, KiB, MiB, GiB)",
        ),
        (
            "bytes = 65536",
            "bytes = \"64 KB\"",
            "p.toml:10: slot[1].bytes: found \"64 KB\"; allowed:",
        ),
        (
            "bytes = 65536",
            "bytes = \"17179869184 GiB\"",
            "p.toml:10: slot[1].bytes: found",
        ),
        ("bytes = 65536", "bytes = true", "p.toml:10:9: "),
        (
            "\"shared\"",
            "\"common\"",
            "p.toml:11: slot[1].kind: found \"common\"; allowed: \"private\" (strong",
        ),
        (
            "name = \"matrix\"",
            "name = \"vector\"",
            "p.toml:9: slot[1].name: found \"vector\"; allowed: a name that no other slot has",
        ),
        (
            "name = \"matrix\"",
            "name = \"none\"",
            "p.toml:9: slot[1].name: found \"none\"; allowed: another name",
        ),
        (
            "slot = \"matrix\"",
            "slot = \"matrx\"",
            "p.toml:21: data[1].slot: found \"matrx\"; allowed: the name of a slot: vector, matrix, none",
        ),
        (
            "slot = \"vector\"",
            "slot = \"vector\"\nsite = \"x\"",
            "p.toml:13: data[0]: found both; allowed: one of `symbol` and `site`",
        ),
        ("symbol = \"p (cg.c:40)\"", "", "p.toml:13: data[0]: found neither"),
        (
            "cpus = [1, 0, 1]",
            "cpus = [1, -1]",
            "p.toml:16: data[0].cpus: found -1",
        ),
        ("cpus = [1, 0, 1]", "cpus = []", "p.toml:16: data[0].cpus: found []"),
        (
            "at_least = \"1 MiB\"",
            "at_least = 9\nat_most = 8",
            "p.toml:21: data[1].at_most: found 8; allowed: at least 9",
        ),
        (
            "at_least = \"1 MiB\"",
            "",
            "p.toml:23: data[2]: found the same data as an entry above (heap: makea (cg.c:412))",
        ),
        (
            "at_least = \"1 MiB\"",
            "module = \"x\"",
            "p.toml:20: data[1].module: found \"x\"",
        ),
        (
            "cpus = [1, 0, 1]",
            "at_most = 8",
            "p.toml:16: data[0].at_most: found a size",
        ),
        (
            "cpus = [1, 0, 1]",
            "cpu = 1",
            "p.toml:16:1: unknown field `cpu`, expected one of `symbol`",
        ),
        (
            "site = \"heap: makea (cg.c:412)\"\nat",
            "site = \" \"\nat",
            "p.toml:19: data[1].site: found \" \"",
        ),
        ("kind = \"private\"", "", "missing field `kind`"),
        ("[[data]]\nsymbol", "[[data]\nsymbol", "p.toml:13:"),
    ] {
        assert!(CG.contains(from), "{from}");
        let error = Plan::read(&CG.replacen(from, to, 1), "p.toml").unwrap_err().to_string();
        assert!(error.contains(expected), "{to}: {error}");
        assert!(error.starts_with("p.toml:") && !error.contains('\n'), "{error}");
    }
    let error = Plan::read(&"#".repeat((1 << 20) + 1), "p.toml")
        .unwrap_err()
        .to_string();
    assert!(error.contains("too long"), "{error}");
}

#[test]
fn a_proposal_is_written_with_its_reason() {
    let plan = Plan {
        about: vec!["Proposed from trace.dtr for clovertown-x5355.".to_string()],
        slots: vec![PlannedSlot {
            name: "p".to_string(),
            bytes: 3 << 19,
            kind: Kind::Private,
            why: Some("read 26 times by each\nthread".to_string()),
        }],
        data: vec![PlannedData {
            what: What::Symbol {
                symbol: Symbol::parse("p"),
                module: None,
            },
            slot: Some(0),
            cpus: vec![0, 1],
            why: None,
        }],
    };
    let expected = r#"# Proposed from trace.dtr for clovertown-x5355.

# read 26 times by each thread
[[slot]]
name = "p"
bytes = "1536 KiB"
kind = "private"

[[data]]
symbol = "p"
slot = "p"
cpus = [0, 1]
"#;
    assert_eq!(plan.write(), expected);
}

fn name() -> impl Strategy<Value = String> {
    "[a-z_\"'\\\\#é:]{1,12}"
}

fn what() -> impl Strategy<Value = What> {
    let symbol = ("[a-z_:~<>]{1,12}", prop::option::of("[a-z.]{1,8}")).prop_map(|(name, module)| What::Symbol {
        symbol: Symbol::parse(&name),
        module,
    });
    let site = (
        "[a-z_]{1,8}",
        prop::option::of(1u32..5000),
        any::<u64>(),
        any::<u64>(),
        0usize..3,
    )
        .prop_map(|(function, line, a, b, memory)| {
            let memory = ["", "heap: ", "mmap: "][memory];
            let place = line.map_or(" (libx.so.1)".to_string(), |line| format!(" ({function}.c:{line})"));
            What::Site {
                site: Site::parse(&format!("{memory}grow ← {function}{place}")).unwrap(),
                at_least: a.min(b),
                at_most: a.max(b),
            }
        });
    prop_oneof![symbol, site]
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        slots in prop::collection::btree_map(name(), (1u64.., any::<bool>()), 1..5),
        data in prop::collection::vec((what(), any::<prop::sample::Index>(), any::<bool>(), prop::collection::btree_set(0u32..64, 0..4)), 0..6),
        why in "\\PC{0,300}",
    ) {
        let slots: Vec<PlannedSlot> = slots
            .into_iter()
            .filter(|(name, _)| name != "none")
            .map(|(name, (bytes, private))| PlannedSlot {
                name,
                bytes,
                kind: if private { Kind::Private } else { Kind::Shared },
                why: None,
            })
            .collect();
        prop_assume!(!slots.is_empty());
        let mut plan = Plan { slots, ..Plan::default() };
        for (what, slot, some, cpus) in data {
            if plan.data.iter().all(|known| known.what != what) {
                let slot = some.then(|| slot.index(plan.slots.len()));
                plan.data.push(PlannedData { what, slot, cpus: cpus.into_iter().collect(), why: None });
            }
        }
        let mut written = plan.clone();
        written.about.push(why.clone());
        written.slots[0].why = Some(why);
        prop_assert_eq!(Plan::read(&written.write(), "plan.toml").unwrap(), plan);
    }

    #[test]
    fn names_that_were_understood_are_understood_again(text in "(heap: |mmap: )?[a-z:← ()\\[\\]0-9/.+<-]{0,24}") {
        let symbol = Symbol::parse(&text);
        prop_assert_eq!(Symbol::parse(&symbol.to_string()), symbol);
        if let Some(site) = Site::parse(&text) {
            prop_assert_eq!(Site::parse(&site.to_string()), Some(site));
        }
    }

    #[test]
    fn nothing_that_is_read_panics(text in "(\\[\\[(slot|data)\\]\\]\n|(name|bytes|kind|slot|site|symbol|cpus|at_least) = (\"[a-z0-9 ()←:+]{0,9}\"|[0-9-]{1,9}|\\[1\\])\n){0,9}", junk in "\\PC{0,40}") {
        let _ = Plan::read(&text, "plan.toml");
        let _ = Plan::read(&junk, "plan.toml");
        let _ = Site::parse(&junk);
        let _ = Symbol::parse(&junk);
    }
}
