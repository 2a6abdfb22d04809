//! How much cache this process really gets, for the default block.

use std::sync::OnceLock;

/// Bytes that a block may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fit {
    pub cache_bytes: u64,
    pub tlb_reach_bytes: Option<u64>,
    /// Where the figures come from, in a word or two.
    pub source: &'static str,
}

impl Fit {
    /// With what was given instead, where something was.
    pub fn within(self, given: Fit) -> Fit {
        Fit {
            tlb_reach_bytes: given.tlb_reach_bytes.or(self.tlb_reach_bytes),
            ..self
        }
    }
}

/// Assumed of a machine that says nothing of its caches.
const USUAL: Fit = Fit {
    cache_bytes: 1 << 20,
    tlb_reach_bytes: None,
    source: "assumed, because Linux does not report it",
};

/// The figures of `DOMICILE_CACHE_BYTES` and `DOMICILE_TLB_REACH_BYTES` where these are set, else
/// of this machine.
pub fn fit() -> Fit {
    let given = |name| {
        let bytes: u64 = std::env::var(name).ok()?.parse().ok()?;
        (bytes > 0).then_some(bytes)
    };
    let tlb_reach_bytes = given("DOMICILE_TLB_REACH_BYTES");
    match given("DOMICILE_CACHE_BYTES") {
        Some(cache_bytes) => Fit {
            cache_bytes,
            tlb_reach_bytes,
            source: "DOMICILE_CACHE_BYTES",
        },
        None => {
            static FOUND: OnceLock<Fit> = OnceLock::new();
            let found = *FOUND.get_or_init(|| if is_instrumented() { reported() } else { measured() });
            Fit {
                tlb_reach_bytes: tlb_reach_bytes.or(found.tlb_reach_bytes),
                ..found
            }
        }
    }
}

/// The cache that this process gets, measured: at most once between two boots, which takes about a second,
/// and read from a file from then on.
fn measured() -> Fit {
    let measured = measured::measured(measured::Effort::Quick);
    if measured.cache_bytes == 0 {
        return reported();
    }
    Fit {
        cache_bytes: measured.cache_bytes,
        tlb_reach_bytes: measured.tlb_reach_bytes,
        source: "as measured on this machine",
    }
}

/// Whether this runs under Valgrind, where time says nothing of caches and measuring would take
/// minutes.
fn is_instrumented() -> bool {
    std::env::var("LD_PRELOAD").is_ok_and(|preload| preload.contains("vgpreload_"))
}

/// The largest cache that Linux reports.
fn reported() -> Fit {
    let report = machine::host(&sys::Root::default());
    let caches = report.map(|report| report.machine.caches).unwrap_or_default();
    let largest = caches.iter().map(|cache| cache.bytes).max();
    largest.map_or(USUAL, |cache_bytes| Fit {
        cache_bytes,
        tlb_reach_bytes: None,
        source: "as Linux reports",
    })
}
