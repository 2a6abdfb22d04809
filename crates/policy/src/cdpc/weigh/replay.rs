//! The predicted cost of a coloring: the visits of all cpus in caches of their own, block by block.
//!
//! Each cache has, for each color and each block of a page, as many places as it has ways; the block used longest ago
//! goes. A block that another cpu has written since is brought again under any coloring. The loops run twice, and the
//! second time counts.

use super::visits::Visits;

const NOBODY: u32 = u32::MAX;

/// Blocks brought in each loop if each page has its color of `color`: those of all cpus, and as many again as if each cpu
/// brought as many as the one that brings most, since the others wait for it.
pub(super) fn costs(visits: &Visits, color: &[u32], colors: u32, ways: u32) -> Vec<u64> {
    let (blocks, ways) = (visits.blocks as usize, ways.max(1) as usize);
    let sets = colors as usize * blocks;
    // For each cpu and place: the page, and the loop in which it was brought.
    let mut held = vec![(NOBODY, 0u32); visits.cpus as usize * sets * ways];
    // For each block the loop in which it was written last, and by which cpu.
    let mut written = vec![(0u32, 0u32); color.len() * blocks];
    let mut costs = vec![0; visits.loops.len()];
    let mut now = 1u32;
    for _round in 0..2 {
        for (parts, cost) in visits.loops.iter().zip(&mut costs) {
            let (mut all, mut most) = (0, 0);
            for (cpu, part) in parts {
                let own = &mut held[*cpu as usize * sets * ways..][..sets * ways];
                let mut brought = 0;
                for visit in &visits.all[part.clone()] {
                    let page = visit.page as usize;
                    let mut left = visit.blocks;
                    while left != 0 {
                        let block = left.trailing_zeros() as usize;
                        left &= left - 1;
                        let set = (color[page] as usize * blocks + block) * ways;
                        let places = &mut own[set..set + ways];
                        let written = &mut written[page * blocks + block];
                        let fresh = |since: u32| written.0 <= since || written.1 == *cpu;
                        match places {
                            [(held, since)] => {
                                if *held != visit.page || !fresh(*since) {
                                    brought += 1;
                                    (*held, *since) = (visit.page, now);
                                }
                            }
                            _ => {
                                let at = places.iter().position(|held| held.0 == visit.page);
                                let since = at.map(|at| places[at].1).filter(|&since| fresh(since));
                                brought += u64::from(since.is_none());
                                places[..=at.unwrap_or(ways - 1)].rotate_right(1);
                                places[0] = (visit.page, since.unwrap_or(now));
                            }
                        }
                        if visit.write {
                            *written = (now, *cpu);
                        }
                    }
                }
                all += brought;
                most = brought.max(most);
            }
            *cost = all + most * parts.len() as u64;
            now += 1;
        }
    }
    costs
}
