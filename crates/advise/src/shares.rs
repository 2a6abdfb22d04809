//! The parts of the time.

use results::{CLASSES, Outcome, Share, Time};

/// Computing, and waiting by reason.
pub fn shares(outcome: &Outcome) -> Vec<Share> {
    let time = &outcome.time_ns;
    let mut shares = vec![share("busy", "busy", time.busy)];
    for cache in &outcome.caches {
        let name = &cache.name;
        let stall = &cache.stall_ns;
        shares.push(share("cache", &format!("{name} hits"), stall.hit));
        let classes = CLASSES.iter().zip(stall.classes());
        let classes = classes.filter_map(|(class, ns)| Some((class.to_string(), ns.filter(|ns| *ns > 0)?)));
        shares.push(Share {
            classes: classes.collect(),
            ..share("cache", &format!("{name} misses"), stall.miss)
        });
        shares.push(share("cache", &format!("{name} upgrades"), stall.upgrade));
        let late = stall.late.unwrap_or_default();
        shares.push(share("cache", &format!("{name} lines on their way"), late));
    }
    shares.push(share("tlb", "TLB misses", time.tlb_stall));
    shares.push(share("policy", "work of the policy", time.policy_overhead));
    shares.push(share("fault", "page faults", time.page_faults));
    shares.push(share("prefetch", "room for prefetches", time.prefetch_stall));
    shares.push(share("imbalance", "waiting for other threads", time.imbalance));
    shares.push(share(
        "sequential",
        "waiting while one thread works alone",
        time.sequential,
    ));
    shares.push(share("synchronization", "locks and barriers", time.synchronization));
    // References that no cache serves wait only for memory. A few nanoseconds are rounding.
    let named: u64 = shares.iter().map(|share| share.ns).sum();
    let rest = time.total.saturating_sub(named);
    if rest as f64 > 1e-6 * time.total as f64 {
        shares.push(share("memory", "other waiting for memory", rest));
    }
    complete(shares, time)
}

/// The waiting time by the memory or cache that ended it.
pub fn served(outcome: &Outcome) -> Vec<Share> {
    let time = &outcome.time_ns;
    let shares = vec![
        share("cache", "a cache", time.cache_stall),
        share("local", "local memory", time.local_stall),
        share("remote", "remote memory or another cpu's cache", time.remote_stall),
    ];
    complete(shares, time)
}

fn share(part: &str, name: &str, ns: u64) -> Share {
    Share {
        part: part.to_string(),
        name: name.to_string(),
        ns,
        ..Share::default()
    }
}

fn complete(mut shares: Vec<Share>, time: &Time) -> Vec<Share> {
    shares.retain(|share| share.ns > 0);
    for share in &mut shares {
        let total = if share.is_waiting() { time.total } else { time.worked() };
        share.fraction = if total > 0 { share.ns as f64 / total as f64 } else { 0.0 };
    }
    shares
}
