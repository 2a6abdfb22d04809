//! Weighing before deciding: the five steps, page coloring and bin hopping are compared for arrays, and the best is taken.
//!
//! The five steps give their promise if the pages of each cpu fit in its cache (Bugnion96, section 5.2). If they do
//! not fit, colors in turn over pages that many cpus touch, or that loops sweep along other dimensions, may meet more often
//! than colors by address do, whose regularity keeps neighbouring planes apart. So the ways of coloring are
//! compared by the summaries: each loop is gone through as its cpus would ([`visits`]), in caches that hold
//! one block for each color, place in a page and way ([`replay`]), and the blocks that these would have to bring are counted.
//!
//! Arrays that loops use together are weighed together. The five steps stay unless a static policy brings less by more than a
//! [`MARGIN`], or page coloring exactly as much: if nothing is to be gained, pages are better placed like the pages that
//! no summary names. A choice in parts is counted as a whole, too: more blocks are never predicted than under the
//! best of the static policies by more than the margin.

mod pages;
mod replay;
mod sets;
mod visits;

use std::ops::Range;

use super::{Brought, Choice, Hints, Loop, Machine, Malformed, Placed, Segment, Weighed, hints, in_step, order};
use pages::Pages;
use visits::Visits;

/// A static policy must beat the five steps by more than this many percent: predictions are not exact.
const MARGIN: u64 = 5;

/// Places of all cpus' caches together that are gone through at most: a bound on memory.
const PLACES: u64 = 1 << 24;

/// Preferred colors for the pages of all arrays that the loops use: those of [`hints`] where the loops gain by
/// them, else those that a static policy would give. `ways` are those of the cache that has the colors.
///
/// The same loops give the same hints. The time for weighing is bounded, however large the program is.
pub fn weighed(loops: &[Loop], machine: &Machine, ways: u32) -> Result<Hints, Malformed> {
    let mut made = hints(loops, machine)?;
    let pages = Pages::of(&made.segments);
    if let Some(visits) = Visits::of_loops(loops, &pages, machine) {
        decide(&mut made, &pages, &visits, ways);
    }
    Ok(made)
}

/// The same for segments that are known already, as [`order`] takes them. Arrays that are used together are supposed to be
/// gone through together, by each cpu its own pages in ascending order.
pub fn weighed_order(
    segments: &[Segment],
    together: &[Vec<u32>],
    machine: &Machine,
    ways: u32,
) -> Result<Hints, Malformed> {
    let mut made = order(segments, together, machine)?;
    let pages = Pages::of(&made.segments);
    if let Some(visits) = Visits::of_segments(segments, together, &pages, machine) {
        decide(&mut made, &pages, &visits, ways);
    }
    Ok(made)
}

/// Blocks that caches are predicted to bring, as [`Brought::blocks`] counts them, if each page of the loops' arrays has the
/// color that `color` says. `None`: there is too much to go through.
pub fn predicted(
    loops: &[Loop],
    machine: &Machine,
    ways: u32,
    color: impl Fn(u64) -> u32,
) -> Result<Option<u64>, Malformed> {
    let made = hints(loops, machine)?;
    let pages = Pages::of(&made.segments);
    let visits = Visits::of_loops(loops, &pages, machine);
    let colors: Vec<u32> = pages.all().map(|(page, _)| color(page) % machine.colors).collect();
    Ok(visits.map(|visits| replay::costs(&visits, &colors, machine.colors, ways).iter().sum()))
}

/// The color of each page by one choice for all, by number of the page.
fn coloring(choice: Choice, made: &Hints, pages: &Pages, visits: &Visits) -> Vec<u32> {
    let colors = made.machine.colors;
    let numbered = |page: u64| pages.number(page).map(|number| number as usize);
    let mut coloring = vec![0; pages.len()];
    match choice {
        Choice::ByAddress => {
            for (page, number) in pages.all() {
                coloring[number as usize] = (page % u64::from(colors)) as u32;
            }
        }
        Choice::ByTouch => {
            let mut turns = (0..colors).cycle();
            let mut seen = vec![false; pages.len()];
            let mut is_new = |page: u32| !std::mem::replace(&mut seen[page as usize], true);
            let mut take = |page: u32| coloring[page as usize] = turns.next().unwrap_or(0);
            for parts in &visits.loops {
                let visited = |(_, part): &(u32, Range<usize>)| visits.all[part.clone()].iter().map(|visit| visit.page);
                let mut threads: Vec<_> = parts.iter().map(visited).collect();
                in_step(&mut threads, &mut is_new, &mut take);
            }
            // Pages that no loop touches come last.
            in_step(&mut [(0..pages.len() as u32).fuse()], is_new, take);
        }
        Choice::Directed => {
            for hint in &made.pages {
                if let Some(number) = numbered(hint.page) {
                    coloring[number] = hint.color;
                }
            }
        }
    }
    coloring
}

/// Chooses for each set of arrays, and gives the hints their colors.
fn decide(made: &mut Hints, pages: &Pages, visits: &Visits, ways: u32) {
    let colors = made.machine.colors;
    let places = [visits.cpus, colors, visits.blocks, ways].map(u64::from);
    if places
        .iter()
        .try_fold(1, |all: u64, &each| all.checked_mul(each))
        .is_none_or(|all| all > PLACES)
    {
        return;
    }
    let colorings = Choice::ALL.map(|choice| coloring(choice, made, pages, visits));
    let costs = Choice::ALL.map(|choice| replay::costs(visits, &colorings[choice as usize], colors, ways));
    let sum = |loops: &[usize]| Choice::ALL.map(|by| loops.iter().map(|&at| costs[by as usize][at]).sum::<u64>());
    let sets = sets::of(visits, pages, &made.segments);
    let everything: Vec<usize> = (0..visits.loops.len()).collect();
    let for_all = best(sum(&everything));
    let mut chosen: Vec<Choice> = sets.loops.iter().map(|loops| best(sum(loops))).collect();
    let choice_of = |chosen: &[Choice], array: u32| match sets.of_array(array) {
        Some(set) => chosen[set],
        None => for_all,
    };
    let mixed = |chosen: &[Choice]| {
        let mut mixed = vec![0; pages.len()];
        for segment in &made.segments {
            let from = &colorings[choice_of(chosen, segment.array) as usize];
            let first = pages.number(segment.pages.start).unwrap_or(0) as usize;
            let all = first..first + (segment.pages.end - segment.pages.start) as usize;
            mixed[all.clone()].copy_from_slice(&from[all]);
        }
        mixed
    };
    // Sets share caches: the best for each may not be the best for all.
    if chosen.iter().any(|&choice| choice != for_all) {
        let together: u64 = replay::costs(visits, &mixed(&chosen), colors, ways).iter().sum();
        if together > sum(&everything)[for_all as usize] {
            chosen.fill(for_all);
        }
    }
    let mixed = mixed(&chosen);
    for hint in &mut made.pages {
        if let Some(number) = pages.number(hint.page) {
            hint.color = mixed[number as usize];
        }
    }
    made.weighed = sets
        .loops
        .iter()
        .zip(&sets.arrays)
        .zip(&chosen)
        .map(|((loops, arrays), &choice)| {
            let of_set = |segment: &&Placed| arrays.binary_search(&segment.array).is_ok();
            let pages = |segment: &Placed| segment.pages.end - segment.pages.start;
            Weighed {
                pages: made.segments.iter().filter(of_set).map(pages).sum(),
                arrays: arrays.clone(),
                choice,
                brought: Choice::ALL
                    .map(|by| Brought {
                        by,
                        blocks: sum(loops)[by as usize],
                    })
                    .into(),
            }
        })
        .collect();
}

/// The five steps, unless a static policy is clearly better, or page coloring exactly as good.
fn best(costs: [u64; 3]) -> Choice {
    let [by_address, by_touch, directed] = costs;
    let fixed = by_address.min(by_touch);
    let clearly = u128::from(fixed) * 100 < u128::from(directed) * u128::from(100 - MARGIN);
    match by_touch < by_address {
        false if clearly || by_address == directed => Choice::ByAddress,
        true if clearly => Choice::ByTouch,
        _ => Choice::Directed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_five_steps_stay_unless_another_way_is_clearly_better_or_as_good() {
        assert_eq!(best([0, 0, 0]), Choice::ByAddress);
        assert_eq!(best([100, 100, 100]), Choice::ByAddress);
        assert_eq!(best([100, 90, 100]), Choice::ByTouch);
        assert_eq!(best([100, 96, 100]), Choice::Directed);
        assert_eq!(best([100, 100, 105]), Choice::Directed);
        assert_eq!(best([100, 100, 106]), Choice::ByAddress);
        assert_eq!(best([100, 99, 106]), Choice::ByTouch);
        assert_eq!(best([100, 100, 99]), Choice::Directed);
        assert_eq!(best([u64::MAX / 2, u64::MAX, u64::MAX]), Choice::ByAddress);
    }
}
