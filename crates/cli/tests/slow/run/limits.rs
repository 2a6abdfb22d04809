//! Programs whose address space cannot grow: they end as they would by themselves, and pages that could not be colored
//! are reported.

use crate::slow::run::workshop::{Workshop, plainly};

const FLAGS: [&str; 1] = ["-O1"];

#[test]
fn a_program_whose_address_space_cannot_grow_goes_on_uncolored() {
    let shop = Workshop::new();
    let Some(program) = shop.linked("limited.c", &FLAGS) else {
        return;
    };
    let program = program.to_str().unwrap();
    for kind in ["as", "data"] {
        for pages in [1, 40, 2_000, 20_000u64] {
            for spare in [0, 4 << 10, 300 << 10, 2 << 20, 30 << 20, 300 << 20u64] {
                let words = [program, kind, &spare.to_string(), &pages.to_string()];
                let plain = plainly(&words);
                assert_eq!(plain.status.code(), Some(42), "{words:?}");
                let run = shop.directed("cdpc", &[], &words);
                run.is_as(&plain);
                let cdpc = run.cdpc();
                let number = |key: &str| cdpc[key].as_u64().unwrap();
                let left = cdpc["left_out"].as_array().unwrap();
                let left: u64 = left.iter().map(|left| left["pages"].as_u64().unwrap()).sum();
                // Pages without a color are counted as left; no page is skipped silently.
                assert!(number("pages") + left >= pages, "{words:?}: {:#}", run.report);
                if spare == 0 {
                    assert_eq!((number("pages"), left), (0, pages), "{words:?}: {:#}", run.report);
                    assert_eq!(number("loops"), 2, "{words:?}: {cdpc:#}");
                    let why = cdpc["left_out"].to_string();
                    assert!(why.contains("address space cannot grow"), "{words:?}: {why}");
                }
                if spare == 300 << 20 && pages < 20_000 {
                    assert_eq!((number("pages"), left), (pages, 0), "{words:?}: {:#}", run.report);
                }
            }
        }
    }
}
