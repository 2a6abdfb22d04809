//! Branches that a processor foretells wrongly, found by foretelling those of samples.
#![forbid(unsafe_code)]

use crate::workshop;

use std::collections::BTreeSet;

use trace::{Misprediction, Op, SiteId, Trace};
use workshop::{compile, stream, symbol};

/// The sites that read a variable.
fn sites(trace: &Trace, name: &str) -> BTreeSet<SiteId> {
    let (start, bytes) = symbol(trace, name);
    let (refs, _) = stream(trace, 0);
    let reads = refs
        .iter()
        .filter(|r| r.op == Op::Read && (start..start + bytes).contains(&r.addr));
    reads.map(|r| r.site).collect()
}

#[test]
fn branches_on_chance_are_foretold_wrongly_every_other_time() {
    let bench = compile("branches", &["-O1", "-fno-if-conversion", "-fno-if-conversion2"]);
    let (_, trace) = bench.record(&[]);
    let of = |name: &str| -> Vec<Misprediction> {
        let sites = sites(&trace, name);
        assert!(!sites.is_empty(), "{name}");
        let all = trace.mispredictions().iter();
        all.filter(|one| sites.contains(&one.site)).cloned().collect()
    };
    let wrong: u32 = of("after_regular").iter().map(|one| one.per_1024).sum();
    assert!(wrong < 40, "{wrong} of 1024 that repeat");
    let after_chance = of("after_chance");
    // One load for each way.
    assert_eq!(after_chance.len(), 2, "{after_chance:?}");
    let bits = sites(&trace, "chance");
    for one in after_chance {
        assert!((420..620).contains(&one.per_1024), "{one:?}");
        assert!(one.on.iter().any(|load| bits.contains(load)), "{one:?}");
    }
}
