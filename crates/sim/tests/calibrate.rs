//! When it gains that a thread follows its data, measured on simulated machines.
#![forbid(unsafe_code)]

use machine::Machine;
use policy::regions::conditions::{Bounds, Known, Verdict, judge};
use sim::calibrate::{Memlat, Walk, calibrate, following, point};

/// Two caches of 128 KiB, one for each of two cpus; a hit costs 4 ns, memory 100, a move 2 us.
fn machine(more: &str) -> Machine {
    let text = format!(
        "name = \"two-caches\"\nclock_mhz = 1000\npage_bytes = 4096\ncpus = 2\n\
         [[cache]]\nname = \"L2\"\nlevel = 1\nkind = \"unified\"\nbytes = 131072\nways = 16\nline_bytes = 64\n\
         cpus_per_instance = 1\nindex = \"physical\"\nhit_ns = 4.0\n[memory]\nlocal_ns = 100.0\n\
         [regions]\nswitch_ns = 2000.0\n{more}"
    );
    machine::from_toml(&text, "two-caches.toml").expect("the machine is valid")
}

/// Every case that the conditions let through gains, or loses nothing, except for short stays at the edges of the
/// sizes: over sizes from half a cache to two caches and a half, stays from 16 reads to 65536, and both orders.
#[test]
fn what_the_conditions_let_through_does_not_lose() {
    let machine = machine("");
    let gains = calibrate(&machine).expect("it runs").expect("there are two caches");
    let bounds = Bounds {
        stay_least_ns: gains.stay_least_ns,
        stay_most_ns: gains.stay_most_ns,
        one_cache: gains.one_cache,
        all_caches: gains.all_caches,
    };
    let mut passed = 0;
    for walk in [Walk::Cyclic, Walk::Random] {
        for sixteenths in [8, 12, 15, 16, 17, 18, 20, 24, 28, 31, 32, 33, 36, 40] {
            let bytes = 131_072 * sixteenths / 16 / 2;
            for stay in [16, 32, 64, 128, 256, 1024, 4096, 65_536] {
                let memlat = Memlat {
                    walk,
                    bytes,
                    stay,
                    recording: 0,
                };
                let point = point(&machine, &memlat).expect("it runs").expect("two caches");
                let known = Known {
                    regions: 2,
                    stay_ns: Some(point.confined_ns as u64),
                    watched_ns: 0,
                    working_set: bytes * 2,
                    found: bytes * 2,
                    cache_bytes: 131_072,
                    caches: 2,
                };
                // Bounds are of the middle: a size that hardly gains needs longer stays than those that gain most.
                let corner = !(20..=28).contains(&sixteenths) && point.confined_ns < 8.0 * bounds.stay_least_ns as f64;
                if judge(&known, &bounds) == Verdict::Pays && !corner {
                    passed += 1;
                    assert!(
                        point.gain() >= 0.97,
                        "{walk:?}, {bytes} bytes, {stay} reads: {point:?} by {bounds:?}"
                    );
                }
            }
        }
    }
    assert!(passed > 40, "{passed} by {bounds:?}");
}

/// Bounds lie where they must: sizes at one cache and at both, and the shortest stay at which the saving outweighs a
/// move. A hit takes 4 + 3 ns, a miss 100 + 3, each with an instruction or three.
#[test]
fn bounds_follow_from_the_machine() {
    let gains = calibrate(&machine("")).expect("it runs").expect("there are two caches");
    assert!((950..=1125).contains(&gains.one_cache), "{gains:?}");
    assert!((900..=1100).contains(&gains.all_caches), "{gains:?}");
    // At random a third of the reads misses: each saves 32 ns, and 2000 ns take 62 of them, at 39 ns each.
    assert!((2000..4500).contains(&gains.stay_least_ns), "{gains:?}");
    // Filling three quarters of a cache takes 1536 misses of 96 ns.
    assert!((7_000_000..15_000_000).contains(&gains.stay_most_ns), "{gains:?}");
}

/// A move that takes longer needs longer stays.
#[test]
fn dearer_moves_need_longer_stays() {
    let cheap = calibrate(&machine("")).expect("it runs").expect("there are two caches");
    let mut machine = machine("");
    machine.regions.as_mut().expect("it has them").switch_ns = 20_000.0;
    let dear = calibrate(&machine).expect("it runs").expect("there are two caches");
    assert!(dear.stay_least_ns > cheap.stay_least_ns * 5, "{dear:?} {cheap:?}");
}

#[test]
fn one_cache_has_no_bounds() {
    let mut machine = machine("");
    machine.caches[0].cpus_per_instance = 2;
    assert_eq!(calibrate(&machine).expect("it runs"), None);
    let memlat = Memlat {
        walk: Walk::Random,
        bytes: 65_536,
        stay: 64,
        recording: 0,
    };
    assert_eq!(point(&machine, &memlat).expect("it runs"), None);
}

/// The presets' bounds are what a calibration finds.
#[test]
fn presets_have_the_bounds_that_a_calibration_finds() {
    let all = ["clovertown-x5365", "westmere-x5660"];
    for name in &all[..harness::repetitions(1, 2)] {
        let machine = machine::load(name).expect("a preset");
        let kept = machine.regions.and_then(|regions| regions.gains);
        assert_eq!(calibrate(&machine).expect("it runs"), kept, "{name}");
    }
}

/// If a machine's description has no bounds, they are measured before a run. For large caches smaller ones are used:
/// their bounds are nearly those of the large ones. Bounds in the description are taken as they are.
#[test]
fn bounds_are_measured_before_a_run() {
    let mut machine = machine("");
    let measured = following(&machine).expect("it runs");
    let kept = calibrate(&machine).expect("it runs").expect("there are two caches");
    assert!(measured.just_measured);
    assert_eq!(measured.switch_ns, Some(2000));
    let bounds = measured.bounds.expect("there are two caches");
    assert_eq!(
        (bounds.one_cache, bounds.stay_least_ns),
        (kept.one_cache, kept.stay_least_ns)
    );
    machine.caches[0].bytes = 16 << 20;
    let large = following(&machine).expect("it runs").bounds.expect("two caches");
    assert!(large.one_cache.abs_diff(bounds.one_cache) <= 64, "{large:?} {bounds:?}");
    assert!(
        large.stay_least_ns.abs_diff(bounds.stay_least_ns) * 3 < bounds.stay_least_ns,
        "{large:?} {bounds:?}"
    );
    // As much larger as the cache is.
    assert!(
        (100..160).contains(&(large.stay_most_ns / bounds.stay_most_ns)),
        "{large:?} {bounds:?}"
    );
    let mine = machine::Gains {
        stay_least_ns: 1,
        stay_most_ns: 2,
        one_cache: 3,
        all_caches: 4,
    };
    machine.regions.as_mut().expect("it has them").gains = Some(mine);
    let described = following(&machine).expect("it runs");
    assert!(!described.just_measured);
    assert_eq!(described.bounds.expect("they are there").one_cache, 3);
}
