//! Chooses the data sets to protect and to confine: from the misses that each would have alone in a part of the cache,
//! to [`Plan`]s worth trying.
//!
//! Colors go to the structures that save most misses with them: the lookahead algorithm of utility-based cache partitioning
//! (Qureshi and Patt, MICRO 2006, section 3.4, algorithm 1), over data structures in the place of programs. It looks beyond
//! steps of one color, so that a structure that is reused only as a whole is seen. A structure that saves enough is
//! *protected*: a private slot as large as the knee of its curve. A structure that brings many lines into the cache and has no
//! use for them there is *confined*: shared slots, the smallest that do (Ding11, section 3.1: strong and weak locality).

use super::{Caches, Kind, Plan, PlannedData, PlannedSlot, What};

/// A part of all misses below which nothing is worth a slot.
const WORTH: f64 = 0.01;
/// The loss of a curve by a smaller slot that is still allowed: this part of the slot's saving.
const KNEE: f64 = 0.01;
/// A structure is weak if a small slot costs it no more than this part of its lookups.
const WEAK: f64 = 0.05;
/// A roomy slot is larger by one part in this many.
const ROOM: u32 = 8;
/// Weak data gets no more than this part of the cache.
const SMALL: u32 = 4;
/// Structures that colors are dealt to.
const MOST: usize = 64;

/// The measurements of a data structure, over all shared caches.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Its name for people, and in a plan.
    pub name: String,
    pub what: What,
    pub bytes: u64,
    /// Times that it was looked up in the caches, and missed there, as things are.
    pub accesses: u64,
    pub misses: u64,
    /// First uses of a line, which no slot saves.
    pub cold: u64,
    /// Misses with 0, 1, 2 ... colors for itself.
    pub alone: Vec<u64>,
}

/// The treatment of a data structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A private slot.
    Protect,
    /// A shared slot, or none.
    Confine,
}

/// A data structure in a proposal.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Its place among those measured.
    pub at: usize,
    pub role: Role,
    /// Colors in each cache.
    pub colors: u32,
    /// Misses in that slot, as its curve says.
    pub misses: u64,
    pub why: String,
}

/// A plan worth trying.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    pub plan: Plan,
    pub parts: Vec<Part>,
    /// Misses that it saves at most, as the curves say; negative if it costs some.
    pub saves: i64,
}

/// Why there is nothing to propose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nothing {
    /// No structure with a name was missed often.
    Quiet,
    /// Nearly all misses are first uses.
    Cold,
    /// Reuse comes too late for any part of the cache, or nothing evicts the reused lines.
    NoReuse,
}

/// Plans worth trying, the most thorough first. `misses`: of all data, as things are.
pub fn propose(caches: &Caches, misses: u64, measured: &[Measured]) -> Result<Vec<Proposal>, Nothing> {
    let worth = (WORTH * misses as f64).max(1.0) as u64;
    let mut candidates: Vec<usize> = (0..measured.len())
        .filter(|&at| measured[at].misses >= worth && measured[at].alone.len() > 1)
        .collect();
    candidates.sort_by_key(|&at| std::cmp::Reverse(measured[at].misses));
    candidates.truncate(MOST);
    if candidates.is_empty() {
        return Err(Nothing::Quiet);
    }
    let reused: u64 = candidates
        .iter()
        .map(|&at| measured[at].misses.saturating_sub(measured[at].cold))
        .sum();
    if reused < worth {
        return Err(Nothing::Cold);
    }
    let protected = protect(caches, worth, measured, &candidates);
    let confined: Vec<Part> = candidates
        .iter()
        .filter(|&&at| !protected.iter().any(|part| part.at == at))
        .filter_map(|&at| confine(caches, misses, measured, at))
        .collect();
    if protected.is_empty() {
        // Confining helps only the structures that are left, and none of them can use more.
        return Err(Nothing::NoReuse);
    }
    let both = |protected: &[Part]| protected.iter().chain(&confined).cloned().collect::<Vec<_>>();
    let mut choices = vec![both(&roomy(caches, measured, &protected)), both(&protected)];
    choices.dedup();
    if !confined.is_empty() {
        choices.push(confined);
        choices.push(protected);
    }
    let proposals = choices.into_iter().map(|parts| Proposal {
        plan: plan(caches, measured, &parts),
        saves: saves(caches, measured, &parts),
        parts,
    });
    Ok(proposals.collect())
}

/// The saving of a partition, by the curves. Data without a part of its own is taken to have all that is left to itself, so
/// this is the most that can be hoped for.
fn saves(caches: &Caches, measured: &[Measured], parts: &[Part]) -> i64 {
    let private = parts.iter().filter(|part| part.role == Role::Protect);
    let left = caches.colors.saturating_sub(private.map(|part| part.colors).sum());
    let after = |place: usize, of: &Measured| match parts.iter().find(|part| part.at == place) {
        Some(part) => part.misses,
        None if of.alone.is_empty() => of.misses,
        None => at(&of.alone, left),
    };
    let saved = |(place, of): (usize, &Measured)| of.misses as i64 - after(place, of) as i64;
    measured.iter().enumerate().map(saved).sum()
}

/// Chooses the structures that get a private slot, and its size: the lookahead of utility-based partitioning.
fn protect(caches: &Caches, worth: u64, measured: &[Measured], candidates: &[usize]) -> Vec<Part> {
    let mut left = room(caches);
    let mut given = vec![0u32; candidates.len()];
    // Without a slot of its own, data has its present share.
    let misses = |place: usize, colors: u32| match colors {
        0 => measured[candidates[place]].misses,
        colors => at(&measured[candidates[place]].alone, colors),
    };
    while left > 0 {
        let mut best: Option<(f64, usize, u32)> = None;
        for (place, &given) in given.iter().enumerate() {
            for more in 1..=left {
                let saved = misses(place, given).saturating_sub(misses(place, given + more));
                let utility = saved as f64 / f64::from(more);
                if utility > 0.0 && best.is_none_or(|(most, ..)| utility > most) {
                    best = Some((utility, place, more));
                }
            }
        }
        let Some((_, place, more)) = best else { break };
        given[place] += more;
        left -= more;
    }
    let mut parts = Vec::new();
    for (place, &colors) in given.iter().enumerate() {
        let of = &measured[candidates[place]];
        let with = misses(place, colors);
        let saved = of.misses.saturating_sub(with);
        if colors == 0 || saved < worth {
            continue;
        }
        let enough = with + (KNEE * saved as f64) as u64;
        let colors = (1..=colors)
            .find(|&less| misses(place, less) <= enough)
            .unwrap_or(colors);
        parts.push(Part {
            at: candidates[place],
            role: Role::Protect,
            colors,
            misses: misses(place, colors),
            why: format!(
                "{}: {} misses as things are; {} suffice for {}, of which {} are first uses",
                of.name,
                of.misses,
                size(caches, colors),
                misses(place, colors),
                of.cold
            ),
        });
    }
    parts
}

/// The same slots with some room to spare, as long as there is any: data in no slot has its pages anywhere, private
/// colors too, and evicts data that fits exactly.
fn roomy(caches: &Caches, measured: &[Measured], parts: &[Part]) -> Vec<Part> {
    let mut left = room(caches) - parts.iter().map(|part| part.colors).sum::<u32>().min(room(caches));
    let mut parts = parts.to_vec();
    for part in &mut parts {
        let more = part.colors.div_ceil(ROOM).min(left);
        left -= more;
        part.colors += more;
        part.misses = at(&measured[part.at].alone, part.colors);
    }
    parts
}

/// The most colors that private slots may have together: unprotected data needs some room too.
fn room(caches: &Caches) -> u32 {
    caches.colors - (caches.colors / 8).max(1)
}

/// The part of the cache for a structure that has little use for it; `None` if it needs more.
fn confine(caches: &Caches, all: u64, measured: &[Measured], place: usize) -> Option<Part> {
    let of = &measured[place];
    let allowed = of.misses + (WEAK * of.accesses as f64) as u64;
    let most = (caches.colors / SMALL).max(1);
    let colors = (1..=most).find(|&colors| at(&of.alone, colors) <= allowed)?;
    let with = at(&of.alone, colors);
    Some(Part {
        at: place,
        role: Role::Confine,
        colors,
        misses: with,
        why: format!(
            "{}: brings {:.0}% of all lines into the cache ({} misses), and {} in {}, so it has little use for more",
            of.name,
            100.0 * of.misses as f64 / all.max(1) as f64,
            of.misses,
            match with {
                with if with <= of.misses => "no more of them".to_string(),
                with => format!("{} more", with - of.misses),
            },
            size(caches, colors)
        ),
    })
}

fn at(curve: &[u64], colors: u32) -> u64 {
    let place = (colors as usize).min(curve.len() - 1);
    curve[place]
}

fn size(caches: &Caches, colors: u32) -> String {
    let bytes = u64::from(colors) * caches.color_bytes;
    match bytes {
        bytes if bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes => format!("{} KiB", bytes.div_ceil(1 << 10)),
    }
}

fn plan(caches: &Caches, measured: &[Measured], parts: &[Part]) -> Plan {
    let mut plan = Plan::default();
    for part in parts {
        let bytes = u64::from(part.colors) * caches.color_bytes;
        let of = &measured[part.at];
        let slot = match part.role {
            Role::Protect => {
                plan.slots.push(PlannedSlot {
                    name: name(&plan, of),
                    bytes,
                    kind: Kind::Private,
                    why: Some(part.why.clone()),
                });
                Some(plan.slots.len() - 1)
            }
            Role::Confine if part.colors == 1 => None,
            Role::Confine => {
                let known = plan.slots.iter().position(|slot| slot.kind == Kind::Shared);
                let slot = known.unwrap_or_else(|| {
                    plan.slots.push(PlannedSlot {
                        name: "shared".to_string(),
                        bytes,
                        kind: Kind::Shared,
                        why: Some("for data that has little use for the cache".to_string()),
                    });
                    plan.slots.len() - 1
                });
                plan.slots[slot].bytes = plan.slots[slot].bytes.max(bytes);
                Some(slot)
            }
        };
        plan.data.push(PlannedData {
            what: of.what.clone(),
            slot,
            cpus: Vec::new(),
            why: (part.role == Role::Confine).then(|| part.why.clone()),
        });
    }
    plan
}

/// A name for a structure's slot that the plan does not have yet.
fn name(plan: &Plan, of: &Measured) -> String {
    let words = match &of.what {
        What::Symbol { symbol, .. } => symbol.name.clone(),
        What::Site { site, .. } => site.chain.last().cloned().unwrap_or_else(|| site.to_string()),
    };
    let plain: String = words.chars().filter(|c| !c.is_control()).take(40).collect();
    let plain = if plain.is_empty() { "data".to_string() } else { plain };
    let taken = |name: &str| name == "none" || name == "shared" || plan.slots.iter().any(|slot| slot.name == name);
    let numbered = (2..).map(|number| format!("{plain} {number}"));
    std::iter::once(plain.clone())
        .chain(numbered)
        .find(|name| !taken(name))
        .unwrap_or(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::site::Symbol;

    fn caches() -> Caches {
        Caches {
            colors: 16,
            color_bytes: 64 << 10,
            page_bytes: 4096,
            cpus: vec![vec![0, 1]],
        }
    }

    fn measured(name: &str, misses: u64, cold: u64, alone: impl Fn(u32) -> u64) -> Measured {
        Measured {
            name: name.to_string(),
            what: What::Symbol {
                symbol: Symbol::parse(name),
                module: None,
            },
            bytes: 1 << 20,
            accesses: alone(0),
            misses,
            cold,
            alone: (0..=16).map(alone).collect(),
        }
    }

    /// Reused as a whole: nothing is saved below six colors.
    fn vector() -> Measured {
        measured("p", 60_000, 1_000, |colors| if colors < 6 { 100_000 } else { 1_000 })
    }

    /// Each line is used once.
    fn stream(name: &str) -> Measured {
        measured(name, 50_000, 50_000, |_| 50_000)
    }

    #[test]
    fn a_vector_is_protected_and_streams_are_confined() {
        let all = [stream("a"), vector(), stream("colidx")];
        let proposals = propose(&caches(), 160_000, &all).unwrap();
        let roles: Vec<_> = proposals[0]
            .parts
            .iter()
            .map(|part| (part.at, part.role, part.colors))
            .collect();
        let expected = |colors| [(1, Role::Protect, colors), (0, Role::Confine, 1), (2, Role::Confine, 1)];
        assert_eq!(roles, expected(7), "six, and one to spare");
        let roles = proposals[1].parts.iter().map(|part| (part.at, part.role, part.colors));
        assert_eq!(roles.collect::<Vec<_>>(), expected(6));
        let plan = &proposals[1].plan;
        assert_eq!(plan.slots.len(), 1);
        assert_eq!(
            (plan.slots[0].name.as_str(), plan.slots[0].bytes, plan.slots[0].kind),
            ("p", 6 * (64 << 10), Kind::Private)
        );
        assert_eq!(
            plan.data.iter().map(|data| data.slot).collect::<Vec<_>>(),
            [Some(0), None, None]
        );
        // A plan that is written is read back the same.
        let read = Plan::read(&plan.write(), "proposal.toml").unwrap();
        let slots = |plan: &Plan| {
            plan.slots
                .iter()
                .map(|s| (s.name.clone(), s.bytes, s.kind))
                .collect::<Vec<_>>()
        };
        let data = |plan: &Plan| plan.data.iter().map(|d| (d.what.clone(), d.slot)).collect::<Vec<_>>();
        assert_eq!((slots(&read), data(&read)), (slots(plan), data(plan)));
        // 60000 - 1000; to protect it alone hopes for as much, and to confine the streams leaves it all 16 colors.
        assert_eq!(proposals.iter().map(|one| one.saves).collect::<Vec<_>>(), [59_000; 4]);
        // The other choices: to confine only, to protect only.
        assert!(proposals[2].parts.iter().all(|part| part.role == Role::Confine));
        assert!(proposals[3].parts.iter().all(|part| part.role == Role::Protect));
    }

    /// The cost of a small part to a structure is subtracted: 10000 of the scan beside the vector.
    #[test]
    fn a_partition_that_costs_as_much_as_it_saves_is_known() {
        let scan = measured("scan", 20_000, 0, |colors| if colors < 12 { 30_000 } else { 20_000 });
        let vector = measured("p", 12_000, 1_000, |colors| if colors < 6 { 100_000 } else { 1_000 });
        let proposals = propose(&caches(), 32_000, &[scan, vector]).unwrap();
        let best = proposals.iter().map(|one| one.saves).max().unwrap();
        assert_eq!(best, 11_000 - 10_000);
    }

    /// The published example of the weakness of a greedy step of one color: a structure whose curve falls only at the
    /// end saves more for each color than one that falls slowly.
    #[test]
    fn the_lookahead_sees_beyond_a_plateau() {
        let slow = measured("slow", 60_000, 0, |colors| 60_000 - 1_000 * u64::from(colors));
        let late = measured("late", 60_000, 0, |colors| if colors < 10 { 60_000 } else { 0 });
        let proposals = propose(&caches(), 120_000, &[slow, late]).unwrap();
        let late = proposals[0].parts.iter().find(|part| part.at == 1).unwrap();
        assert_eq!((late.role, late.colors), (Role::Protect, 10));
        // Two colors of the sixteen are left for others, four for the slow one.
        let slow = proposals[0].parts.iter().find(|part| part.at == 0).unwrap();
        assert_eq!((slow.role, slow.colors), (Role::Protect, 4));
    }

    #[test]
    fn slots_never_take_more_than_there_is() {
        let all: Vec<_> = (1..=9)
            .map(|n| {
                measured(&format!("x{n}"), 50_000, 0, move |colors| {
                    if u64::from(colors) < n { 60_000 } else { 0 }
                })
            })
            .collect();
        let proposals = propose(&caches(), 450_000, &all).unwrap();
        let private: u64 = proposals[0].plan.slots.iter().map(|slot| slot.bytes / (64 << 10)).sum();
        assert!(private <= 14, "{private}");
    }

    #[test]
    fn nothing_is_proposed_where_nothing_is_gained() {
        assert_eq!(propose(&caches(), 0, &[]), Err(Nothing::Quiet));
        assert_eq!(propose(&caches(), 100_000, &[stream("a")]), Err(Nothing::Cold));
        // A loop over more than the cache holds.
        let wide = measured("wide", 90_000, 10_000, |_| 90_000);
        assert_eq!(propose(&caches(), 100_000, &[wide]), Err(Nothing::NoReuse));
        // It fits and is in the cache already.
        let at_home = measured("home", 2_000, 500, |colors| if colors < 6 { 100_000 } else { 2_000 });
        assert_eq!(
            propose(&caches(), 100_000, &[at_home, stream("a")]),
            Err(Nothing::NoReuse)
        );
    }
}
