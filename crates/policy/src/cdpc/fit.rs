//! After step 5: no cpu whose pages fit in the cache has two of one color.
//!
//! Colors in turn promise that for pages that are in a row (Bugnion96, section 5.2: "this strategy will eliminate all
//! conflict misses if the data accessed by a single processor fits"). But a row cannot have everyone's pages together:
//! the pages that all cpus share lie next to the pages of some, and a ring of neighbours is cut somewhere. If a cpu
//! that fits therefore has two pages of one color, pages exchange their colors until it has not. As many pages have
//! each color as before; if nothing is wrong, nothing is exchanged.
//!
//! The promise. Pages are edges between the cpus that touch them and fit, colors are to differ at each cpu: it is the
//! coloring of a graph's edges. If the graph is bipartite, there is always one with as many colors as the fullest cpu
//! has pages (Koenig 1916), and one whose colors are used evenly (de Werra 1971); the exchanges along alternating paths
//! that prove this find it here. So it is found wherever each page is touched by at most two of the cpus that fit, and
//! no odd ring of cpus shares pages: parts in a row with shifts, or around an even ring. Otherwise it may be
//! impossible:
//! - three cpus of which every two share two pages have four pages each, and need six colors. Deciding whether fewer
//!   suffice is NP-complete in general (Holyer 1981);
//! - a page that all cpus touch must be alone in its color, if all cpus fit; colors are used evenly only if it is not.
//!   Evenness comes first here, as with the paper's turns.
//!
//! Then as many pages as possible are fixed in a bounded number of trials. The others stay in conflict, and their cpus
//! are reported as crowded. `tests/hints.rs` counts how often that is: of 112 made-up programs with small arrays whose
//! pages many cpus share, the five steps leave 71 in conflict and this 10; of 109 that read a table too, 77 and 55.

use super::coloring::{Bound, Coloring, each, places};
use super::hints::{Hint, Machine, Placed};

/// The result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fitted {
    /// Pages that have another color than their turn gave.
    pub(super) exchanged: usize,
    /// Cpus whose pages would fit, yet have colors in common.
    pub(super) crowded: u128,
}

/// Exchanges pages in the row until cpus that fit have each color at most once. `pages` are those of `segments`, in the
/// same order, with their colors in turn; all are touched by some cpu. If the machine is not to be fitted, only reports the cpus
/// that have colors twice.
pub(super) fn fit(pages: &mut [Hint], segments: &[Placed], machine: &Machine) -> Fitted {
    let colors = machine.colors;
    let fits = fitting(segments, colors);
    let bound = bound(pages, segments, fits);
    let before = conflicts(&bound, colors);
    if before.pages == 0 || !machine.fit {
        return Fitted {
            exchanged: 0,
            crowded: before.cpus,
        };
    }
    let mut coloring = Coloring::new(&bound, colors, pages.len());
    coloring.keep();
    coloring.place();
    coloring.balance();
    let chosen = coloring.finished();
    let after: Vec<Bound> = bound
        .iter()
        .zip(&chosen)
        .map(|(page, &color)| Bound { color, ..*page })
        .collect();
    let left = conflicts(&after, colors);
    // Exchanges that gain nothing are not worth leaving the order of the path.
    match left.pages < before.pages {
        true => Fitted {
            exchanged: exchange(pages, &after, colors),
            crowded: left.cpus,
        },
        false => Fitted {
            exchanged: 0,
            crowded: before.cpus,
        },
    }
}

/// Cpus that touch no more pages than there are colors.
fn fitting(segments: &[Placed], colors: u32) -> u128 {
    let mut number = [0u64; 128];
    for segment in segments {
        each(segment.cpus, |cpu| {
            number[cpu] += segment.pages.end - segment.pages.start
        });
    }
    let fits = (0..128).filter(|&cpu| (1..=u64::from(colors)).contains(&number[cpu]));
    fits.map(|cpu| 1 << cpu).sum()
}

/// At most as many as there are cpus and colors, however many pages there are.
fn bound(pages: &[Hint], segments: &[Placed], fits: u128) -> Vec<Bound> {
    let fit = segments.iter().filter(|segment| segment.cpus & fits != 0);
    let bound = fit.flat_map(|segment| {
        let first = segment.position as usize;
        let length = (segment.pages.end - segment.pages.start) as usize;
        (first..first + length).map(|at| Bound {
            at,
            cpus: segment.cpus & fits,
            color: pages[at].color,
        })
    });
    bound.collect()
}

/// The conflicts in the colors of pages.
struct Conflicts {
    /// Pages whose color one of their cpus has already.
    pages: usize,
    /// Cpus that have two pages of one color.
    cpus: u128,
}

fn conflicts(bound: &[Bound], colors: u32) -> Conflicts {
    let mut seen = vec![0u128; if bound.is_empty() { 0 } else { colors as usize }];
    let mut conflicts = Conflicts { pages: 0, cpus: 0 };
    for page in bound {
        let seen = &mut seen[page.color as usize];
        conflicts.pages += usize::from(*seen & page.cpus != 0);
        conflicts.cpus |= *seen & page.cpus;
        *seen |= page.cpus;
    }
    conflicts
}

/// Gives the pages of cpus that fit their colors, and their former colors to others. A page of the color of its place
/// stays there; the others change places, those of each color in their order. Returns how many do.
fn exchange(pages: &mut [Hint], bound: &[Bound], colors: u32) -> usize {
    let mut chosen: Vec<Option<u32>> = vec![None; pages.len()];
    let mut left: Vec<usize> = places(pages.len(), colors);
    for page in bound {
        chosen[page.at] = Some(page.color);
        left[page.color as usize] -= 1;
    }
    // The color of the others does not matter: they keep theirs as long as there is one left.
    let mut homeless = Vec::new();
    for (at, page) in pages
        .iter()
        .enumerate()
        .filter(|(at, _)| chosen[*at].is_none())
        .collect::<Vec<_>>()
    {
        match &mut left[page.color as usize] {
            0 => homeless.push(at),
            left => {
                *left -= 1;
                chosen[at] = Some(page.color);
            }
        }
    }
    let spare = (0u32..)
        .zip(&left)
        .flat_map(|(color, &left)| std::iter::repeat_n(color, left));
    for (at, color) in homeless.into_iter().zip(spare) {
        chosen[at] = Some(color);
    }
    let moved: Vec<usize> = (0..pages.len())
        .filter(|&at| chosen[at] != Some(pages[at].color))
        .collect();
    // By color, the places that become free and the pages that want them.
    let mut places: Vec<(u32, usize)> = moved.iter().map(|&at| (pages[at].color, at)).collect();
    let mut comers: Vec<(Option<u32>, u64)> = moved.iter().map(|&at| (chosen[at], pages[at].page)).collect();
    places.sort_by_key(|&(color, _)| color);
    comers.sort_by_key(|&(color, _)| color);
    for ((_, at), (_, page)) in places.into_iter().zip(comers) {
        pages[at].page = page;
    }
    moved.len()
}
