//! Domains that preferred processes have to themselves, and those of the others.

use super::{CPU, Domain, Patience, Process, STEP, rounded, usable};

/// The domains that each process may have, when a preferred one gets its own: as many as its working set fills and as
/// its busy threads need for cpus. Domains without a process that cannot leave come first. `None` if no process is
/// preferred, or there is no other, or a preferred one cannot move: its neighbors then gain nothing by moving to its
/// domains.
///
/// A preferred one that has domains keeps them for a while, and for as long as others would gain less than an eighth; also while
/// all others are idle, since they may come back.
pub fn parts(domains: &[Domain], processes: &[Process], patience: Patience) -> Option<Vec<Vec<u32>>> {
    let preferred = Need::of(processes.iter().filter(|process| process.preferred));
    let mut busy = processes.iter().filter(counts);
    let is_stuck = busy.any(|process| process.preferred && stays(process));
    if preferred.busy == 0 || is_stuck || domains.len() < 2 {
        return None;
    }
    let own = own(domains, processes);
    let mut others = processes.iter().filter(|process| !process.preferred);
    let suffices = |own: &[u32]| preferred.less_an_eighth().fills(domains) <= own.len();
    let is_shared = match others.clone().any(|process| counts(&process)) {
        true => true,
        false => others.next().is_some() && !own.is_empty() && suffices(&own),
    };
    if !is_shared {
        return None;
    }
    let is_recent = |process: &Process| process.preferred && process.placed.is_some() && process.since < patience.least;
    let own = match own.is_empty() {
        false if processes.iter().any(is_recent) => own,
        _ => chosen(domains, processes, &own, preferred),
    };
    let part = |process: &Process| {
        let all = 0..domains.len() as u32;
        all.filter(|domain| own.contains(domain) == process.preferred).collect()
    };
    Some(processes.iter().map(part).collect())
}

fn counts(process: &&Process) -> bool {
    rounded(process.busy) > 0
}

/// True for one that cannot go elsewhere.
fn stays(process: &Process) -> bool {
    process.fixed || usable(process).len() < 2
}

/// The memory and the busy threads of several processes.
#[derive(Clone, Copy)]
struct Need {
    bytes: u64,
    busy: u32,
}

impl Need {
    fn of<'a>(processes: impl Iterator<Item = &'a Process>) -> Need {
        let none = Need { bytes: 0, busy: 0 };
        processes.filter(counts).fold(none, |sum, process| Need {
            bytes: sum.bytes.saturating_add(process.bytes),
            busy: sum.busy.saturating_add(rounded(process.busy)),
        })
    }

    /// Domains that this fills, one at least; it may be more than there are.
    fn fills(self, domains: &[Domain]) -> usize {
        // A cache whose size is not known holds everything.
        let cache = domains.iter().filter_map(|domain| domain.bytes).min();
        let cpus = domains.iter().map(|domain| domain.cpus).min().unwrap_or(1).max(1);
        let for_bytes = cache.map_or(1, |bytes| self.bytes.div_ceil(bytes.max(1)));
        let for_threads = u64::from(self.busy.div_ceil(cpus.saturating_mul(CPU)));
        usize::try_from(for_bytes.max(for_threads).max(1)).unwrap_or(usize::MAX)
    }

    /// The memory of which this is an eighth more. Threads that wait for a cpu are not passed over.
    fn less_an_eighth(self) -> Need {
        Need {
            bytes: self.bytes - self.bytes / 9,
            ..self
        }
    }

    fn and_an_eighth(self) -> Need {
        Need {
            bytes: self.bytes.saturating_add(self.bytes / 8),
            busy: self.busy.saturating_add(self.busy / 8),
        }
    }
}

/// The domains that preferred processes have already; none if one of them may no longer use any of these, or nothing is
/// left to the others.
fn own(domains: &[Domain], processes: &[Process]) -> Vec<u32> {
    let preferred = || processes.iter().filter(|process| process.preferred);
    let mut own: Vec<u32> = preferred()
        .flat_map(|process| process.placed.clone().unwrap_or_default())
        .collect();
    own.sort_unstable();
    own.dedup();
    let is_of_use = |process: &Process| usable(process).iter().any(|domain| own.contains(domain));
    match own.len() < domains.len() && preferred().filter(counts).all(is_of_use) {
        true => own,
        false => Vec::new(),
    }
}

/// The domains of preferred processes from now on; as they are, unless others are worth it.
fn chosen(domains: &[Domain], processes: &[Process], own: &[u32], need: Need) -> Vec<u32> {
    // One is left to the others.
    let fills = |need: Need| need.fills(domains).min(domains.len() - 1);
    let (least, most) = (fills(need.less_an_eighth()), fills(need.and_an_eighth()));
    let count = match (least..=most).contains(&own.len()) {
        true => own.len(),
        false => fills(need),
    };
    let stuck = || processes.iter().filter(counts).filter(|process| stays(process));
    let stuck_in = |domain: u32| {
        let there = stuck().filter(|process| match process.seen {
            Some(seen) => seen == domain,
            None => process.cpus[domain as usize] > 0,
        });
        there.map(|process| rounded(process.busy)).fold(0, u32::saturating_add)
    };
    // Those that cannot even go to the others' domains. One that can may be seen here or there, which is no reason to move.
    let held_in = |these: &[u32]| {
        let there = stuck().filter(|process| usable(process).iter().all(|domain| these.contains(domain)));
        there.map(|process| rounded(process.busy)).fold(0, u32::saturating_add)
    };
    let mut ranked: Vec<u32> = (0..domains.len() as u32).collect();
    ranked.sort_by_key(|&domain| (stuck_in(domain), domain));
    let anew = &ranked[..count];
    let (held, held_anew) = (held_in(own), held_in(anew));
    if held > held_anew.saturating_add((held_anew / 8).max(STEP)) {
        return anew.to_vec();
    }
    // Its own ones first.
    ranked.sort_by_key(|domain| !own.contains(domain));
    ranked.truncate(count);
    ranked
}
