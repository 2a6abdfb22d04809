//! The cpus on which threads begin: in order, each group under its own cache, or spread over all caches.

use results::SharingGroup;

/// The caches that threads are placed under: `count` of them, each for `cpus` consecutive cpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    pub count: u32,
    pub cpus: u32,
}

/// The simulator's default: each thread on the next cpu.
pub fn in_order(threads: u32, caches: Caches) -> Vec<u32> {
    (0..threads)
        .map(|thread| thread % (caches.count * caches.cpus))
        .collect()
}

/// Each thread under the next cache.
pub fn spread(threads: u32, caches: Caches) -> Vec<u32> {
    let cpu = |thread: u32| thread % caches.count * caches.cpus + thread / caches.count % caches.cpus;
    (0..threads).map(cpu).collect()
}

/// Each group, the largest first, under the cache with most room left, the first of equals; stores that in the groups.
pub fn grouped(threads: u32, groups: &mut [SharingGroup], caches: Caches) -> Vec<u32> {
    let mut placed = in_order(threads, caches);
    let mut taken = vec![0u32; caches.count as usize];
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|place| (std::cmp::Reverse(groups[*place].threads.len()), *place));
    for place in order {
        let group = &mut groups[place];
        let cache = (0..caches.count)
            .min_by_key(|cache| (taken[*cache as usize], *cache))
            .unwrap_or(0);
        group.cache = cache;
        group.cpus.clear();
        for &thread in &group.threads {
            let taken = &mut taken[cache as usize];
            let cpu = cache * caches.cpus + *taken % caches.cpus;
            *taken += 1;
            group.cpus.push(cpu);
            placed[thread as usize] = cpu;
        }
    }
    placed
}
