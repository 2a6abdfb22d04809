//! The number of requests a second that the allocator of cache slots decides on one core.
//!
//! `slots_speed [SECONDS]` prints one JSON object: requests a second of processor time, for each mix of them. A request is a data set that
//! asks for its colors; that it gives them back again is part of it. Some slots and data sets are always there, so
//! that the choice is one.

use std::time::Duration;

use policy::slots::{Allocator, Caches, DataSet, Kind, Owner, SetId, SlotId};

const COLOR_BYTES: u64 = 64 << 10;

/// A mix of requests, on a machine of `caches` caches of `colors` colors.
struct Mix {
    name: &'static str,
    caches: u32,
    colors: u32,
    kind: Option<Kind>,
    /// Colors of a slot.
    slot: u64,
    /// True if the frames at hand are given to the allocator.
    with_frames: bool,
}

fn main() {
    let seconds = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(1.0);
    let mix = |name, caches, colors, kind, slot, with_frames| Mix {
        name,
        caches,
        colors,
        kind,
        slot,
        with_frames,
    };
    let mixes = [
        mix("private, X5355, frames known", 4, 64, Some(Kind::Private), 4, true),
        mix("private, X5355", 4, 64, Some(Kind::Private), 4, false),
        mix("shared, X5355, frames known", 4, 64, Some(Kind::Shared), 4, true),
        mix("not cached, X5355, frames known", 4, 64, None, 1, true),
        mix("private, 16 colors, frames known", 2, 16, Some(Kind::Private), 2, true),
        mix(
            "private, 1024 colors, frames known",
            8,
            1024,
            Some(Kind::Private),
            16,
            true,
        ),
    ];
    let results: Vec<String> = mixes
        .iter()
        .map(|mix| format!("\"{}\": {:.0}", mix.name, rate(mix, Duration::from_secs_f64(seconds))))
        .collect();
    println!("{{{}}}", results.join(", "));
}

fn rate(mix: &Mix, time: Duration) -> f64 {
    let mut allocator = Allocator::new(Caches {
        colors: mix.colors,
        color_bytes: COLOR_BYTES,
        page_bytes: 4096,
        cpus: (0..mix.caches).map(|cache| vec![cache * 2, cache * 2 + 1]).collect(),
    })
    .expect("caches that are");
    let owner = allocator.join();
    let frames: Vec<u64> = match mix.with_frames {
        // Many alike and some not, in no order.
        true => (0..mix.colors).map(|color| 8192 + u64::from(color * 37 % 61)).collect(),
        false => Vec::new(),
    };
    let slot = |allocator: &mut Allocator| {
        mix.kind
            .and_then(|kind| allocator.slot(owner, mix.slot * COLOR_BYTES, kind).ok())
    };
    // An eighth of the cache is taken for good, and an eighth comes and goes.
    let many = u64::from(mix.colors) / 8 / mix.slot;
    for _ in 0..many {
        let slot = slot(&mut allocator);
        request(&mut allocator, owner, slot, 0, &frames);
    }
    let slots: Vec<Option<SlotId>> = (0..many).map(|_| slot(&mut allocator)).collect();
    let mut held: Vec<Option<SetId>> = vec![None; slots.len()];
    let began = processor_time();
    let mut requests = 0u64;
    loop {
        let used = processor_time() - began;
        if used >= time {
            return requests as f64 / used.as_secs_f64();
        }
        for _ in 0..4096 {
            let at = requests as usize % slots.len();
            if let Some(set) = held[at].take() {
                allocator.free(owner, set).expect("what was granted can be freed");
            }
            held[at] = request(
                &mut allocator,
                owner,
                slots[at],
                requests as u32 % mix.caches * 2,
                &frames,
            );
            requests += 1;
        }
    }
}

/// This thread's processor time, which does not depend on the machine's other work.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel that counts");
    let ran = text.split(' ').next().and_then(|ran| ran.parse().ok());
    Duration::from_nanos(ran.expect("nanoseconds come first"))
}

fn request(allocator: &mut Allocator, owner: Owner, slot: Option<SlotId>, cpu: u32, frames: &[u64]) -> Option<SetId> {
    let data = DataSet {
        bytes: 1 << 20,
        // Two threads that share a cache.
        cpus: &[cpu, cpu + 1],
        slot,
    };
    Some(allocator.allocate(owner, data, frames).expect("there is room").set)
}
