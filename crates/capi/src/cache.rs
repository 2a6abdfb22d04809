//! How much cache this process actually gets, for the default block.

use std::sync::OnceLock;

/// Bytes that a block may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fit {
    pub cache_bytes: u64,
    pub tlb_reach_bytes: Option<u64>,
    /// The source of the figures, in a word or two.
    pub source: &'static str,
}

impl Fit {
    /// These figures, with those given instead where there are any.
    pub fn within(self, given: Fit) -> Fit {
        Fit {
            tlb_reach_bytes: given.tlb_reach_bytes.or(self.tlb_reach_bytes),
            ..self
        }
    }
}

/// Assumed for a machine that does not report its caches.
const USUAL: Fit = Fit {
    cache_bytes: 1 << 20,
    tlb_reach_bytes: None,
    source: "assumed, because Linux does not report it",
};

/// The figures from `DOMICILE_CACHE_BYTES` and `DOMICILE_TLB_REACH_BYTES` where they are set, else those of this
/// machine.
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

/// The cache that this process gets, as measured. It is measured at most once per boot, which takes about a second;
/// later calls read it from a file.
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

/// Returns true if this runs under Valgrind, where timing reveals nothing about caches and measuring would take
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
