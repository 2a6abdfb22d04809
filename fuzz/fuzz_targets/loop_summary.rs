//! Any text as what a compiler says of a parallel loop, and on to the hints that it leads to. Programs of up to 2^16 pages: beyond, time and
//! memory are those of the pages.
#![no_main]

use policy::cdpc::{Loop, Machine, hints};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(a_loop) = serde_json::from_str::<Loop>(text) else { return };
    let written = serde_json::to_string(&a_loop).expect("a loop can be written");
    assert_eq!(serde_json::from_str::<Loop>(&written).expect("just written"), a_loop);
    let machine = Machine {
        page_bytes: 1 << 46,
        colors: 16,
        cpus: 4,
    };
    if let Ok(hints) = hints(&[a_loop], &machine) {
        assert!(hints.pages.iter().all(|hint| hint.color < machine.colors));
        let pages: std::collections::HashSet<u64> = hints.pages.iter().map(|hint| hint.page).collect();
        assert_eq!(pages.len(), hints.pages.len(), "a page has two colors");
    }
});
