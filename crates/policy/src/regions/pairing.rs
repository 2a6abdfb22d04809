//! Processes paired with cache domains: a large working set beside a small one, and not beside another large one.
//!
//! The threads of a process stay together. No domain gets more work than its cpus can do while another one has cpus for it;
//! that comes before working sets. Then the fullest cache counts. Working sets go to caches by the balancer of regions
//! ([`super::balance`]); single moves and exchanges improve on that ([`search`]).
//!
//! A process is moved for a gain only: the fullest cache's load falls by an eighth, or busy threads get cpus that were idle.
//! A process without a place goes wherever the kernel takes it. Its cache is then as full as it can become there.

mod lately;
mod parts;
mod search;
pub(crate) mod simulated;
mod words;

use super::balance::Item;
pub use lately::{Lately, PATIENCE, WINDOW};
use parts::parts;
use search::{Board, Piece, Score};

/// Busy time is counted in thousandths of a cpu, and rounded to multiples of this: smaller differences move nothing.
pub const STEP: u32 = 250;
/// A whole cpu.
pub const CPU: u32 = 1000;
/// Number of passes over the relieved memory within which a move must be worth the lines that it brings into its new
/// cache.
const PASSES: u64 = 16;

/// The cpus below one instance of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    pub cpus: u32,
    /// The cache's size; `None` if it is not known.
    pub bytes: Option<u64>,
}

/// A process as it was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its working set.
    pub bytes: u64,
    /// Cpus that its threads would keep busy, in thousandths; below half a [`STEP`] it is idle.
    pub busy: u32,
    /// Cpus that it may use in each domain.
    pub cpus: Vec<u32>,
    /// The domain in which it was seen running most often.
    pub seen: Option<u32>,
    /// The domains that it was given; `None` where it goes wherever the kernel takes it.
    pub placed: Option<Vec<u32>>,
    /// Intervals since its place changed.
    pub since: u32,
    /// It gets domains of its own.
    pub preferred: bool,
    /// It must not be moved, for a reason that the caller knows.
    pub fixed: bool,
}

/// Bounds on how often something moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Intervals for which a process keeps its place.
    pub least: u32,
}

/// A process's place from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// On any cpu that the kernel chooses.
    Free(Free),
    /// These domains; several for a preferred process only.
    In(Vec<u32>),
}

/// The reason why a process has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Free {
    Fixed,
    Idle,
    /// It may use the cpus of no domain.
    NoDomain,
    /// It may use the cpus of one domain only.
    OneDomain,
    /// One domain only has cpus for all of its busy threads.
    OneFits,
    /// It keeps more cpus busy than it may use in a domain.
    Wide,
    /// It may use none of the domains that it would share with others, or have to itself.
    Taken,
    /// It may not use the cpus of its place any more.
    Lost,
    /// It had several domains, or a part of them, and no process has domains to itself any more.
    NoParts,
    /// A place of its own would gain nothing.
    NoGain,
}

/// The load of a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    pub bytes: u64,
    /// In thousandths of a cpu.
    pub busy: u32,
}

/// The reason for a change, or for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Threads get cpus that were idle, or fewer threads share a cpu.
    Cpus,
    /// The fullest cache becomes less full.
    Fullest,
    /// A preferred process gets domains of its own.
    Preferred,
    /// Places gain nothing any more.
    Released,
    /// The gain is too small, or there is none.
    Nothing,
}

/// A decision: a place for each process, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub places: Vec<Place>,
    pub why: Why,
    /// The load of each domain where processes were seen, and by this plan.
    pub seen: Vec<Load>,
    pub after: Vec<Load>,
    /// The fullest cache without a change, at worst, and by this plan.
    pub fullest_before: u64,
    pub fullest_after: u64,
}

/// Decides where processes run.
///
/// Requires: at least one domain; each process has a number of cpus for each domain.
pub fn decide(domains: &[Domain], processes: &[Process], patience: Patience) -> Plan {
    let parts = parts(domains, processes, patience);
    let partitioned = parts.is_some();
    let state: Vec<State> = (0..processes.len())
        .map(|at| state(&processes[at], parts.as_ref().map(|parts| &parts[at]), patience))
        .collect();
    let board = board(domains, processes, &state);
    let movable: Vec<usize> = (0..processes.len())
        .filter(|&at| matches!(state[at], State::Movable(_)))
        .collect();
    let now: Vec<Option<u32>> = board.pieces.iter().map(|piece| piece.placed).collect();
    let (given, started) = board.best(&now);
    let best = board.score(&given);
    // Those that have no place end up as badly as they can; those that have one stay.
    let kept = board.worst(&now, &best);
    let base = Score {
        fullest: board.score(&kept).fullest,
        ..started
    };
    let none = vec![None; now.len()];
    let at_worst = board.score(&board.worst(&none, &best)).fullest;
    let outside =
        |(at, piece): (usize, &Piece)| piece.placed.is_none_or(|cache| !board.pieces[at].may.contains(&cache));
    let moved: u64 = (board.pieces.iter().zip(&given))
        .filter(|(piece, given)| piece.placed.or(piece.item.now).is_some_and(|was| Some(was) != **given))
        .map(|(piece, _)| piece.item.bytes)
        .sum();
    let why = match () {
        () if partitioned && (unplaced_part(processes, &state) || board.pieces.iter().enumerate().any(outside)) => {
            Why::Preferred
        }
        () if best.overload + STEP <= base.overload => Why::Cpus,
        () if base.crowd > best.crowd + best.crowd / 8 => Why::Cpus,
        () if board.relieves(base.fullest, best.fullest, 8, moved) => Why::Fullest,
        () if !partitioned
            && now.iter().any(Option::is_some)
            && !board.relieves(at_worst, board.score(&kept).fullest, 16, 0) =>
        {
            Why::Released
        }
        () => Why::Nothing,
    };
    let acts = matches!(why, Why::Cpus | Why::Fullest | Why::Preferred);
    let new = |index: usize| match why {
        Why::Released => None,
        _ if acts => given[index],
        _ => now[index],
    };
    let place = |at: usize| match &state[at] {
        State::Free(free) => Place::Free(*free),
        State::Held(domains) => Place::In(domains.clone()),
        State::Movable(_) => {
            let index = movable.iter().position(|&one| one == at);
            let none = || Place::Free(ended(&processes[at], why));
            index.and_then(new).map_or_else(none, |domain| Place::In(vec![domain]))
        }
    };
    let places: Vec<Place> = (0..processes.len()).map(place).collect();
    let after = loads(domains, processes, &places);
    let before: Vec<Place> = processes
        .iter()
        .map(|process| process.placed.clone().map_or(Place::Free(Free::NoGain), Place::In))
        .collect();
    Plan {
        seen: loads(domains, processes, &before),
        after,
        fullest_before: base.fullest,
        fullest_after: if acts { best.fullest } else { base.fullest },
        places,
        why,
    }
}

/// The reason why a process that could be moved has no place, or has none any more.
fn ended(process: &Process, why: Why) -> Free {
    match &process.placed {
        None => Free::NoGain,
        Some(_) if why == Why::Released => Free::NoGain,
        Some(placed) if has_lost(process, placed) => Free::Lost,
        Some(_) => Free::NoParts,
    }
}

fn has_lost(process: &Process, placed: &[u32]) -> bool {
    placed.iter().all(|&domain| process.cpus[domain as usize] == 0)
}

/// Busy time as it counts: rounded.
pub fn rounded(busy: u32) -> u32 {
    busy.saturating_add(STEP / 2) / STEP * STEP
}

/// A process, as far as it can be moved.
enum State {
    Free(Free),
    /// It keeps these domains.
    Held(Vec<u32>),
    /// It may have one of these.
    Movable(Vec<u32>),
}

fn state(process: &Process, part: Option<&Vec<u32>>, patience: Patience) -> State {
    if process.fixed {
        return State::Free(Free::Fixed);
    }
    let busy = rounded(process.busy);
    let recent = process.since < patience.least;
    if let Some(placed) = &process.placed
        && (recent || busy == 0)
        && placed.iter().all(|&domain| process.cpus[domain as usize] > 0)
    {
        return State::Held(placed.clone());
    }
    if busy == 0 {
        return State::Free(match process.placed {
            Some(_) => Free::Lost,
            None => Free::Idle,
        });
    }
    let may = usable(process);
    match may.len() {
        0 => return State::Free(Free::NoDomain),
        1 => return State::Free(Free::OneDomain),
        _ => {}
    }
    if let Some(part) = part {
        let within: Vec<u32> = may.iter().copied().filter(|domain| part.contains(domain)).collect();
        if within.is_empty() {
            return State::Free(Free::Taken);
        }
        if process.preferred {
            return State::Held(within);
        }
        return match wide_enough(process, &within, busy) {
            // Its threads share what there is for them: that is the meaning of unfair partitioning.
            fit if fit.is_empty() => State::Held(within),
            fit => State::Movable(fit),
        };
    }
    match wide_enough(process, &may, busy) {
        fit if fit.is_empty() => State::Free(Free::Wide),
        fit if fit.len() < 2 => State::Free(Free::OneFits),
        fit => State::Movable(fit),
    }
}

/// Those of these domains in which a process has cpus for all of its busy threads.
fn wide_enough(process: &Process, domains: &[u32], busy: u32) -> Vec<u32> {
    let fits = |domain: &u32| busy <= process.cpus[*domain as usize].saturating_mul(CPU);
    domains.iter().copied().filter(fits).collect()
}

/// True if a process that gets a part of the domains does not have it yet.
fn unplaced_part(processes: &[Process], state: &[State]) -> bool {
    let differs = |(process, state): (&Process, &State)| match state {
        State::Held(domains) => process.placed.as_ref() != Some(domains),
        _ => false,
    };
    processes.iter().zip(state).any(differs)
}

/// Those that can be moved, over the load of all others.
fn board(domains: &[Domain], processes: &[Process], state: &[State]) -> Board {
    let mut taken = vec![Load::default(); domains.len()];
    let mut pieces = Vec::new();
    for (process, state) in processes.iter().zip(state) {
        match state {
            State::Movable(may) => pieces.push(Piece {
                item: Item {
                    bytes: process.bytes,
                    now: process.seen,
                },
                busy: rounded(process.busy),
                may: may.clone(),
                placed: process.placed.as_ref().and_then(|placed| match placed[..] {
                    // Its cpuset may have changed.
                    [one] if process.cpus[one as usize] > 0 => Some(one),
                    _ => None,
                }),
            }),
            State::Held(held) => spread(&mut taken, process, held),
            State::Free(_) => spread(&mut taken, process, &usable(process)),
        }
    }
    Board {
        domains: domains.to_vec(),
        taken,
        pieces,
    }
}

fn usable(process: &Process) -> Vec<u32> {
    (0..)
        .zip(&process.cpus)
        .filter(|(_, cpus)| **cpus > 0)
        .map(|(domain, _)| domain)
        .collect()
}

/// Adds a process to these domains, in equal parts.
fn spread(loads: &mut [Load], process: &Process, over: &[u32]) {
    let busy = rounded(process.busy);
    if busy == 0 || over.is_empty() {
        return;
    }
    for &domain in over {
        let load = &mut loads[domain as usize];
        load.bytes += process.bytes / over.len() as u64;
        load.busy += busy / over.len() as u32;
    }
}

/// The load of each domain; a process that has no place because that gains nothing counts where it was seen, if it was.
fn loads(domains: &[Domain], processes: &[Process], places: &[Place]) -> Vec<Load> {
    let mut loads = vec![Load::default(); domains.len()];
    for (process, place) in processes.iter().zip(places) {
        match (place, process.seen) {
            (Place::In(domains), _) => spread(&mut loads, process, domains),
            (Place::Free(Free::NoGain | Free::Lost | Free::NoParts), Some(seen)) => {
                spread(&mut loads, process, &[seen])
            }
            // Those that cannot be moved count as they do in the decision.
            (Place::Free(_), _) => spread(&mut loads, process, &usable(process)),
        }
    }
    loads
}
