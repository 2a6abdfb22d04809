//! Processes paired with cache domains: cases worked out by hand, and properties of every decision.
#![forbid(unsafe_code)]

use policy::regions::pairing::{CPU, Domain, Free, Patience, Place, Plan, Process, STEP, Why, decide, rounded};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;
const PATIENCE: Patience = Patience { least: 3 };

/// Two caches of 512 KiB, each of one cpu.
fn two() -> Vec<Domain> {
    let domain = Domain {
        cpus: 1,
        bytes: Some(MIB / 2),
    };
    vec![domain; 2]
}

fn process(bytes: u64) -> Process {
    Process {
        bytes,
        busy: CPU,
        cpus: vec![1, 1],
        seen: None,
        placed: None,
        since: 10,
        preferred: false,
        fixed: false,
    }
}

fn at(bytes: u64, domain: u32) -> Process {
    Process {
        placed: Some(vec![domain]),
        ..process(bytes)
    }
}

fn domains(plan: &Plan) -> Vec<Option<u32>> {
    let one = |place: &Place| match place {
        Place::In(domains) => Some(domains[0]),
        Place::Free(_) => None,
    };
    plan.places.iter().map(one).collect()
}

/// Two large working sets and two small ones: one of each at each cache, wherever they begin.
#[test]
fn a_large_one_goes_beside_a_small_one() {
    let (large, small) = (MIB, MIB / 64);
    for seen in 0..16u32 {
        let sizes = [large, large, small, small];
        let processes: Vec<Process> = (0..4)
            .map(|index| Process {
                seen: Some(seen >> index & 1),
                ..process(sizes[index])
            })
            .collect();
        let plan = decide(&two(), &processes, PATIENCE);
        let given = domains(&plan);
        assert!(given.iter().all(Option::is_some), "{plan:?}");
        assert!(given[0] != given[1] && given[2] != given[3], "{plan:?}");
        assert_eq!(
            (plan.why, plan.fullest_before, plan.fullest_after),
            (Why::Fullest, 2 * large, large + small)
        );
    }
    let wrong = [at(large, 0), at(large, 0), at(small, 1), at(small, 1)];
    let given = domains(&decide(&two(), &wrong, PATIENCE));
    assert!(given[0] != given[1] && given[2] != given[3]);
    let right = [at(large, 0), at(large, 1), at(small, 0), at(small, 1)];
    let plan = decide(&two(), &right, PATIENCE);
    assert_eq!(
        (plan.why, domains(&plan)),
        (Why::Nothing, vec![Some(0), Some(1), Some(0), Some(1)])
    );
}

#[test]
fn what_gains_less_than_an_eighth_stays() {
    let placed = [at(80 * MIB, 0), at(79 * MIB, 1), at(10 * MIB, 0), at(2 * MIB, 1)];
    let plan = decide(&two(), &placed, PATIENCE);
    assert_eq!((plan.why, plan.fullest_before), (Why::Nothing, 90 * MIB));
    // The kernel gives each of two processes a cpu of its own; a place gains nothing.
    let plan = decide(&two(), &[process(MIB), process(MIB)], PATIENCE);
    assert_eq!(plan.places, [Place::Free(Free::NoGain), Place::Free(Free::NoGain)]);
    // All of them fit into one cache.
    let small: Vec<Process> = [4, 4, 1, 1].map(|part| process(part * MIB / 64)).to_vec();
    assert_eq!(decide(&two(), &small, PATIENCE).why, Why::Nothing);
}

#[test]
fn a_place_is_given_up_where_it_gains_nothing_any_more() {
    let plan = decide(&two(), &[at(MIB, 0), at(MIB, 1)], PATIENCE);
    assert_eq!((plan.why, domains(&plan)), (Why::Released, vec![None, None]));
}

#[test]
fn who_has_moved_lately_stays_and_counts() {
    let recent = |bytes, domain| Process {
        since: 2,
        ..at(bytes, domain)
    };
    let processes = [recent(MIB, 0), at(MIB, 0), at(MIB / 64, 1), at(MIB / 64, 1)];
    assert_eq!(domains(&decide(&two(), &processes, PATIENCE))[..2], [Some(0), Some(1)]);
    let processes = [recent(MIB, 0), recent(MIB, 0), recent(MIB / 64, 1), recent(MIB / 64, 1)];
    assert_eq!(decide(&two(), &processes, PATIENCE).why, Why::Nothing);
}

#[test]
fn busy_threads_come_before_working_sets() {
    // One is alone on its cpu, three share the other one; working sets would be balanced.
    let processes = [at(30 * MIB, 0), at(10 * MIB, 1), at(10 * MIB, 1), at(10 * MIB, 1)];
    let plan = decide(&two(), &processes, PATIENCE);
    let given = domains(&plan);
    assert_eq!(plan.why, Why::Cpus);
    assert_eq!(given.iter().filter(|given| **given == Some(0)).count(), 2, "{plan:?}");
    // A cpu is idle, and two wait for the other one.
    let plan = decide(&two(), &[at(MIB, 0), at(1, 0)], PATIENCE);
    assert_eq!(
        (plan.why, plan.after[0].busy, plan.after[1].busy),
        (Why::Cpus, CPU, CPU)
    );
}

#[test]
fn who_cannot_be_moved_says_why() {
    let idle = Process {
        busy: STEP / 2 - 1,
        ..process(MIB)
    };
    let wide = Process {
        busy: 2 * CPU,
        ..process(MIB)
    };
    let bound = Process {
        cpus: vec![1, 0],
        ..process(MIB)
    };
    let fixed = Process {
        fixed: true,
        ..process(MIB)
    };
    let plan = decide(&two(), &[idle.clone(), wide, bound, fixed], PATIENCE);
    let reasons = [Free::Idle, Free::Wide, Free::OneDomain, Free::Fixed];
    assert_eq!(plan.places, reasons.map(Place::Free));
    // One that rests keeps the place that it has.
    let resting = Process {
        placed: Some(vec![1]),
        ..idle
    };
    assert_eq!(domains(&decide(&two(), &[resting], PATIENCE)), [Some(1)]);
}

#[test]
fn who_gives_up_a_place_says_the_true_reason() {
    let free = |process: Process| decide(&two(), &[process], PATIENCE).places[0].clone();
    let idle = |cpus: [u32; 2]| Process {
        busy: 0,
        cpus: cpus.to_vec(),
        ..at(MIB, 0)
    };
    assert_eq!(free(idle([0, 1])), Place::Free(Free::Lost));
    let nowhere = Process {
        cpus: vec![0, 0],
        ..process(MIB)
    };
    assert_eq!(free(nowhere), Place::Free(Free::NoDomain));
    let one_fits = Process {
        busy: 2 * CPU,
        cpus: vec![1, 2],
        ..process(MIB)
    };
    assert_eq!(free(one_fits), Place::Free(Free::OneFits));
    // Others of a partition, when the preferred one has ended.
    let shared = Process {
        placed: Some(vec![0, 1]),
        ..process(MIB)
    };
    assert_eq!(free(shared), Place::Free(Free::NoParts));
    // A preferred program takes the only cache of three that another one may use, as the cpuset of that leaves it.
    let three = vec![two()[0]; 3];
    let wide = |bytes, cpus: [u32; 3], preferred| Process {
        cpus: cpus.to_vec(),
        preferred,
        ..process(bytes)
    };
    let processes = [
        wide(MIB, [1, 1, 1], true),
        wide(MIB, [1, 1, 0], false),
        wide(MIB, [1, 1, 1], false),
    ];
    assert_eq!(decide(&three, &processes, PATIENCE).places[1], Place::Free(Free::Taken));
}

#[test]
fn a_preferred_one_gets_domains_of_its_own() {
    let four = vec![
        Domain {
            cpus: 2,
            bytes: Some(8 * MIB),
        };
        4
    ];
    let wide = |bytes, preferred| Process {
        cpus: vec![2; 4],
        preferred,
        ..process(bytes)
    };
    let processes = [wide(12 * MIB, true), wide(MIB, false), wide(MIB, false)];
    let plan = decide(&four, &processes, PATIENCE);
    assert_eq!((plan.why, &plan.places[0]), (Why::Preferred, &Place::In(vec![0, 1])));
    assert!(
        domains(&plan)[1..]
            .iter()
            .all(|given| given.is_some_and(|domain| domain >= 2)),
        "{plan:?}"
    );
    // Its threads need cpus, too, and something is left for the others.
    let busy = Process {
        busy: 8 * CPU,
        ..wide(MIB, true)
    };
    let plan = decide(&four, &[busy, wide(MIB, false)], PATIENCE);
    assert_eq!(plan.places, [Place::In(vec![0, 1, 2]), Place::In(vec![3])]);
    // Decided once, it stays so.
    let placed: Vec<Process> = processes
        .iter()
        .zip(decide(&four, &processes, PATIENCE).places)
        .map(|(process, place)| Process {
            placed: match place {
                Place::In(domains) => Some(domains),
                Place::Free(_) => None,
            },
            ..process.clone()
        })
        .collect();
    assert_eq!(decide(&four, &placed, PATIENCE).why, Why::Nothing);
    // Alone it needs no partition.
    assert_eq!(decide(&four, &[wide(12 * MIB, true)], PATIENCE).why, Why::Nothing);
}

/// Four caches of 8 MiB, each of two cpus.
fn four() -> Vec<Domain> {
    let domain = Domain {
        cpus: 2,
        bytes: Some(8 * MIB),
    };
    vec![domain; 4]
}

/// A preferred process, and two others.
fn preferred(bytes: u64, busy: u32) -> Vec<Process> {
    let one = |bytes, busy, preferred| Process {
        busy,
        cpus: vec![2; 4],
        preferred,
        ..process(bytes)
    };
    vec![one(bytes, busy, true), one(MIB, CPU, false), one(MIB, CPU, false)]
}

/// Decides interval by interval, and takes the places. `change` updates the processes for each interval. Returns the
/// intervals in which the first process got other domains.
fn moves(processes: &mut [Process], intervals: u32, mut change: impl FnMut(u32, &mut [Process])) -> Vec<u32> {
    let mut moved = Vec::new();
    for interval in 0..intervals {
        change(interval, processes);
        let plan = decide(&four(), processes, PATIENCE);
        for (at, (process, place)) in processes.iter_mut().zip(plan.places).enumerate() {
            let place = match place {
                Place::In(domains) => Some(domains),
                Place::Free(_) => None,
            };
            process.since += 1;
            if place != process.placed {
                (process.placed, process.since) = (place, 0);
                moved.extend((at == 0).then_some(interval));
            }
        }
    }
    moved
}

#[test]
fn a_preferred_one_keeps_its_domains_for_less_than_an_eighth() {
    // Its working set, or its busy threads, are now a bit more than one cache has, now less.
    let mut processes = preferred(8 * MIB, CPU);
    let moved = moves(&mut processes, 60, |interval, processes| {
        processes[0].bytes = 8 * MIB - MIB / 2 + u64::from(interval % 2) * MIB;
    });
    assert_eq!(moved, [0]);
    processes[0].bytes = 9 * MIB + MIB / 2;
    assert_eq!(moves(&mut processes, 20, |_, _| {}), [0]);
    assert_eq!(processes[0].placed, Some(vec![0, 1]));
    processes[0].bytes = 7 * MIB + MIB / 2;
    assert_eq!(moves(&mut processes, 20, |_, _| {}), [0; 0]);
    processes[0].bytes = 7 * MIB;
    assert_eq!(moves(&mut processes, 20, |_, _| {}), [0]);
    assert_eq!(processes[0].placed, Some(vec![0]));
    let mut processes = preferred(MIB, 2 * CPU);
    let moved = moves(&mut processes, 60, |interval, processes| {
        processes[0].busy = 2 * CPU + interval % 2 * STEP;
    });
    // Threads that wait for a cpu get one as soon as it may move; it does not go back.
    assert_eq!(moved, [0, 5]);
}

#[test]
fn a_preferred_one_keeps_its_domains_for_a_while() {
    let mut processes = preferred(MIB, CPU);
    let moved = moves(&mut processes, 60, |interval, processes| {
        processes[0].bytes = if interval % 2 == 0 { MIB } else { 20 * MIB };
    });
    let apart = moved.windows(2).all(|pair| pair[1] - pair[0] > PATIENCE.least);
    assert!(moved.len() > 2 && apart, "{moved:?}");
}

#[test]
fn a_preferred_one_keeps_its_domains_while_the_others_are_idle() {
    let mut processes = preferred(12 * MIB, CPU);
    let moved = moves(&mut processes, 80, |interval, processes| {
        let busy = if interval / 10 % 2 == 0 { CPU } else { 0 };
        processes[1..].iter_mut().for_each(|process| process.busy = busy);
    });
    assert_eq!((moved, &processes[0].placed), (vec![0], &Some(vec![0, 1])));
    // Then it may use the whole machine if it needs more than it has.
    processes[1..].iter_mut().for_each(|process| process.busy = 0);
    processes[0].bytes = 30 * MIB;
    moves(&mut processes, 20, |_, _| {});
    assert_eq!(processes[0].placed, None);
    // The same if it has all domains but one.
    let idle = Process { busy: 0, ..at(MIB, 1) };
    let wide = Process {
        busy: 2 * CPU,
        preferred: true,
        ..at(MIB, 0)
    };
    let given = |wide: Process| decide(&two(), &[wide, idle.clone()], PATIENCE).places[0].clone();
    assert_eq!(given(wide.clone()), Place::Free(Free::Wide));
    let narrow = Process { busy: CPU, ..wide };
    assert_eq!(given(Process { bytes: 1, ..narrow }), Place::In(vec![0]));
    // It may if it is alone.
    let mut processes = preferred(12 * MIB, CPU);
    moves(&mut processes, 20, |_, _| {});
    moves(&mut processes[..1], 20, |_, _| {});
    assert_eq!(processes[0].placed, None);
}

#[test]
fn a_preferred_one_does_not_follow_one_that_wanders() {
    let mut processes = preferred(MIB, CPU);
    processes[1].fixed = true;
    let moved = moves(&mut processes, 80, |interval, processes| {
        processes[1].seen = Some(interval / 10 % 2);
    });
    assert_eq!(moved, [0]);
    // It leaves to one that cannot leave itself.
    let at = processes[0].placed.clone().unwrap()[0];
    processes[1].cpus = (0..4).map(|domain| if domain == at { 2 } else { 0 }).collect();
    processes[1].seen = Some(at);
    assert_eq!(moves(&mut processes, 20, |_, _| {}), [0]);
    assert_ne!(processes[0].placed, Some(vec![at]));
}

fn scene() -> impl Strategy<Value = (Vec<Domain>, Vec<Process>)> {
    let domain = (1..5u32, prop::option::of(1..64u64)).prop_map(|(cpus, mib)| Domain {
        cpus,
        bytes: mib.map(|mib| mib * MIB),
    });
    prop::collection::vec(domain, 1..5).prop_flat_map(|domains| {
        let cpus: Vec<_> = domains.iter().map(|domain| 0..=domain.cpus).collect();
        let count = domains.len() as u32;
        let one = (
            (0..100 * MIB, 0..3 * CPU, cpus),
            (prop::option::of(0..count), prop::option::of(0..count)),
            (0..6u32, prop::bool::weighted(0.1), prop::bool::weighted(0.1)),
        );
        let one = one.prop_map(|((bytes, busy, cpus), (seen, placed), (since, preferred, fixed))| {
            let may = |domain: &u32| cpus[*domain as usize] > 0;
            Process {
                bytes,
                busy,
                seen: seen.filter(may),
                placed: placed.filter(may).filter(|_| !fixed).map(|domain| vec![domain]),
                cpus,
                since,
                preferred,
                fixed,
            }
        });
        (Just(domains), prop::collection::vec(one, 0..10))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(harness::cases(512)))]

    #[test]
    fn every_decision_respects_allowed_cpus_and_overloads_no_domain_needlessly((domains, processes) in scene()) {
        let plan = decide(&domains, &processes, PATIENCE);
        prop_assert_eq!(plan.places.len(), processes.len());
        prop_assert_eq!(&decide(&domains, &processes, PATIENCE), &plan);
        for (process, place) in processes.iter().zip(&plan.places) {
            if let Place::In(given) = place {
                prop_assert!(!given.is_empty() && !process.fixed);
                prop_assert!(given.iter().all(|&domain| process.cpus[domain as usize] > 0));
            }
            if process.placed.is_some() && process.since < PATIENCE.least && !process.fixed {
                prop_assert_eq!(place, &Place::In(process.placed.clone().unwrap()));
            }
        }
        // Those that go wherever the kernel takes them have cpus without us.
        let free = plan.places.contains(&Place::Free(Free::NoGain));
        if free || processes.iter().any(|process| process.preferred) {
            return Ok(());
        }
        // No process that could move waits at a crowded domain while another one has cpus for all of its threads.
        let capacity = |domain: usize| domains[domain].cpus * CPU;
        for (process, place) in processes.iter().zip(&plan.places) {
            let Place::In(given) = place else { continue };
            let busy = rounded(process.busy);
            if busy == 0 || (process.placed.is_some() && process.since < PATIENCE.least) {
                continue;
            }
            let here = given[0] as usize;
            if busy > process.cpus[here] * CPU || plan.after[here].busy < capacity(here) + STEP {
                continue;
            }
            for there in 0..domains.len() {
                let goes = there != here && busy <= process.cpus[there] * CPU;
                prop_assert!(!goes || plan.after[there].busy + busy > capacity(there), "{:?}", plan);
            }
        }
    }
}
