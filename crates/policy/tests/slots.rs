//! The allocator of cache slots: the paper's examples.

use policy::slots::{Allocator, Caches, ColorSet, DataSet, Kind, Owner, Refused, SlotId, Status};

const KIB: u64 = 1024;

/// Ding11 section 3.2: two dual-core processors, each with a shared cache; colors of 64 KiB. The X5355's
/// caches have 64 of them.
fn two_dual_cores() -> Allocator {
    Allocator::new(Caches {
        colors: 64,
        color_bytes: 64 * KIB,
        page_bytes: 4096,
        cpus: vec![vec![0, 1], vec![2, 3]],
    })
    .unwrap()
}

fn data(bytes: u64, cpus: &[u32], slot: Option<SlotId>) -> DataSet<'_> {
    DataSet { bytes, cpus, slot }
}

fn count(allocator: &Allocator, cache: usize, status: Status) -> usize {
    (0..64)
        .filter(|&color| allocator.status(cache, color) == Some(status))
        .count()
}

#[test]
fn four_threads_on_two_dual_core_processors_get_4_colors_in_each_of_the_2_caches() {
    let mut allocator = two_dual_cores();
    let owner = allocator.join();
    let slot = allocator.slot(owner, 256 * KIB, Kind::Private).unwrap();
    let grant = allocator
        .allocate(owner, data(1 << 20, &[0, 1, 2, 3], Some(slot)), &[])
        .unwrap();
    assert_eq!(grant.colors.len(), 4);
    assert_eq!(grant.caches, [0, 1]);
    for cache in 0..2 {
        assert_eq!(count(&allocator, cache, Status::Private), 4);
        assert_eq!(count(&allocator, cache, Status::Unspecified), 60);
    }
    // If only threads of one processor use the data, the other cache is left alone.
    let slot = allocator.slot(owner, 256 * KIB, Kind::Private).unwrap();
    allocator.allocate(owner, data(1 << 20, &[3], Some(slot)), &[]).unwrap();
    assert_eq!(
        (
            count(&allocator, 0, Status::Private),
            count(&allocator, 1, Status::Private)
        ),
        (4, 8)
    );
}

#[test]
fn a_shared_slot_reuses_color_0_and_takes_3_more() {
    let mut allocator = two_dual_cores();
    let (first, second) = (allocator.join(), allocator.join());
    // Another application's, without a slot: one shared color in each cache, which is color 0.
    let one = allocator.allocate(first, data(1 << 20, &[0, 2], None), &[]).unwrap();
    assert_eq!(one.colors.iter().collect::<Vec<_>>(), [0]);
    let slot = allocator.slot(second, 256 * KIB, Kind::Shared).unwrap();
    let grant = allocator
        .allocate(second, data(1 << 20, &[0, 1, 2, 3], Some(slot)), &[])
        .unwrap();
    assert!(grant.colors.contains(0) && grant.colors.len() == 4);
    assert_eq!(
        (
            count(&allocator, 0, Status::Shared),
            count(&allocator, 1, Status::Shared)
        ),
        (4, 4)
    );
    // The next one needs no new color at all.
    let slot = allocator.slot(first, 256 * KIB, Kind::Shared).unwrap();
    let next = allocator
        .allocate(first, data(1 << 20, &[0, 1, 2, 3], Some(slot)), &[])
        .unwrap();
    assert_eq!(next.colors, grant.colors);
    // A color is shared as long as somebody shares it.
    allocator.leave(second).unwrap();
    assert_eq!(count(&allocator, 0, Status::Shared), 4);
    allocator.leave(first).unwrap();
    assert_eq!(count(&allocator, 0, Status::Unspecified), 64);
}

#[test]
fn private_slots_get_colors_that_do_not_follow_one_another_and_have_enough_frames_but_few() {
    let mut allocator = two_dual_cores();
    let owner = allocator.join();
    let slot = allocator.slot(owner, 256 * KIB, Kind::Private).unwrap();
    // 1 MiB in 4 colors: 64 frames of each. Colors 0, 3, 7, 9 have just enough, and so have 1, 2, 8, which touch them; the
    // others have plenty, or too few.
    let mut frames = [5000u64; 64];
    for (color, at_hand) in [
        (0, 64),
        (3, 65),
        (7, 66),
        (9, 67),
        (1, 68),
        (2, 69),
        (8, 70),
        (20, 63),
        (22, 0),
    ] {
        frames[color] = at_hand;
    }
    let grant = allocator
        .allocate(owner, data(1 << 20, &[0], Some(slot)), &frames)
        .unwrap();
    assert_eq!(grant.colors.iter().collect::<Vec<_>>(), [0, 3, 7, 9]);
}

#[test]
fn shared_slots_take_the_colors_with_most_frames() {
    let mut allocator = two_dual_cores();
    let owner = allocator.join();
    let slot = allocator.slot(owner, 128 * KIB, Kind::Shared).unwrap();
    let mut frames = [500u64; 64];
    (frames[10], frames[11], frames[13]) = (900, 800, 700);
    let grant = allocator
        .allocate(owner, data(1 << 20, &[0], Some(slot)), &frames)
        .unwrap();
    assert_eq!(grant.colors.iter().collect::<Vec<_>>(), [10, 13]);
}

#[test]
fn an_even_share_for_each_thread_always_fits() {
    // Figure 4: the available space is cut into as many private slots as there are threads.
    for threads in 1..=64 {
        let mut allocator = two_dual_cores();
        let owner = allocator.join();
        let space = allocator.available(&[0, 1]).unwrap();
        assert_eq!(space.bytes, 4096 * KIB);
        for _ in 0..threads {
            let slot = allocator.slot(owner, space.per_thread(threads), Kind::Private).unwrap();
            allocator.allocate(owner, data(1 << 20, &[0], Some(slot)), &[]).unwrap();
        }
    }
}

#[test]
fn data_sets_of_one_slot_use_the_same_colors_until_the_last_is_freed() {
    let mut allocator = two_dual_cores();
    let owner = allocator.join();
    let slot = allocator.slot(owner, 256 * KIB, Kind::Private).unwrap();
    let first = allocator.allocate(owner, data(1 << 20, &[0], Some(slot)), &[]).unwrap();
    let second = allocator.allocate(owner, data(9 << 20, &[1], Some(slot)), &[]).unwrap();
    assert_eq!(first.colors, second.colors);
    assert_eq!(count(&allocator, 0, Status::Private), 4);
    // On the other cache too, so that a data set on both can follow.
    let third = allocator.allocate(owner, data(1 << 20, &[2], Some(slot)), &[]).unwrap();
    let both = allocator
        .allocate(owner, data(1 << 20, &[1, 2], Some(slot)), &[])
        .unwrap();
    assert_eq!((&third.colors, &both.colors), (&first.colors, &first.colors));
    assert_eq!(allocator.free_slot(owner, slot), Err(Refused::InUse { sets: 4 }));
    for grant in [first, third, both] {
        allocator.free(owner, grant.set).unwrap();
    }
    assert_eq!(
        (
            count(&allocator, 0, Status::Private),
            count(&allocator, 1, Status::Private)
        ),
        (4, 0)
    );
    allocator.free(owner, second.set).unwrap();
    assert_eq!(count(&allocator, 0, Status::Private), 0);
    assert_eq!(allocator.free(owner, second.set), Err(Refused::UnknownSet));
    allocator.free_slot(owner, slot).unwrap();
    assert_eq!(allocator.free_slot(owner, slot), Err(Refused::UnknownSlot));
}

#[test]
fn over_commitment_is_refused_with_what_is_free_and_where() {
    let mut allocator = two_dual_cores();
    let owner = allocator.join();
    let hold = |allocator: &mut Allocator, owner: Owner, colors: u64, cpus: &[u32]| {
        let slot = allocator.slot(owner, colors * 64 * KIB, Kind::Private).unwrap();
        allocator.allocate(owner, data(1 << 20, cpus, Some(slot)), &[])
    };
    hold(&mut allocator, owner, 40, &[0]).unwrap();
    allocator.allocate(owner, data(1 << 20, &[2], None), &[]).unwrap();
    let refused = hold(&mut allocator, owner, 30, &[0, 2]).unwrap_err();
    let Refused::Full {
        asked: 30,
        free,
        together,
        ..
    } = &refused
    else {
        panic!("{refused:?}");
    };
    assert_eq!((free[0].unspecified, free[1].unspecified, free[1].shared), (24, 63, 1));
    assert!(*together <= 24);
    let text = refused.to_string();
    assert!(
        text.contains("cache 0 (cpus 0 1) has 24 unspecified and 0 shared"),
        "{text}"
    );
    let too_large = allocator.slot(owner, 65 * 64 * KIB, Kind::Shared).unwrap_err();
    assert!(matches!(
        too_large,
        Refused::TooLarge {
            colors: 65,
            most: 64,
            ..
        }
    ));
    // A refused request holds nothing.
    hold(&mut allocator, owner, 24, &[0]).unwrap();
}

#[test]
fn what_is_not_worth_caching_gets_as_few_colors_as_have_the_frames() {
    let mut allocator = two_dual_cores();
    let owner = allocator.join();
    // 256 pages; no color has this many frames, three have 100.
    let mut frames = vec![10u64; 64];
    (frames[5], frames[6], frames[40]) = (100, 90, 99);
    let grant = allocator.allocate(owner, data(1 << 20, &[0], None), &frames).unwrap();
    assert_eq!(grant.colors, [5, 6, 40].into_iter().collect::<ColorSet>());
    assert_eq!(grant.kind, Kind::Shared);
    let refused = allocator
        .allocate(owner, data(1 << 30, &[0], None), &frames)
        .unwrap_err();
    assert!(matches!(refused, Refused::Frames { .. }), "{refused:?}");
}

#[test]
fn what_one_application_has_is_nobody_elses() {
    let mut allocator = two_dual_cores();
    let (one, other) = (allocator.join(), allocator.join());
    let slot = allocator.slot(one, 256 * KIB, Kind::Private).unwrap();
    let grant = allocator.allocate(one, data(1 << 20, &[0], Some(slot)), &[]).unwrap();
    assert_eq!(allocator.free(other, grant.set), Err(Refused::UnknownSet));
    assert_eq!(allocator.free_slot(other, slot), Err(Refused::UnknownSlot));
    let used = allocator.allocate(other, data(1 << 20, &[0], Some(slot)), &[]);
    assert_eq!(used, Err(Refused::UnknownSlot));
    // A number of nothing is no panic either.
    let nothing = SlotId::from_number(u64::MAX);
    assert_eq!(allocator.free_slot(one, nothing), Err(Refused::UnknownSlot));
    assert_eq!(
        allocator.slot(Owner::from_number(77), 1, Kind::Shared),
        Err(Refused::UnknownOwner)
    );
    allocator.leave(one).unwrap();
    assert_eq!(allocator.leave(one), Err(Refused::UnknownOwner));
    assert_eq!(allocator.slot(one, 1, Kind::Shared), Err(Refused::UnknownOwner));
}

#[test]
fn cpus_that_are_not_there_and_caches_that_cannot_be() {
    let mut allocator = two_dual_cores();
    let owner = allocator.join();
    assert_eq!(
        allocator.allocate(owner, data(1, &[4], None), &[]),
        Err(Refused::UnknownCpu(4))
    );
    assert_eq!(
        allocator.allocate(owner, data(1, &[u32::MAX], None), &[]),
        Err(Refused::UnknownCpu(u32::MAX))
    );
    assert_eq!(allocator.allocate(owner, data(1, &[], None), &[]), Err(Refused::NoCpus));
    assert_eq!(allocator.slot(owner, 0, Kind::Shared), Err(Refused::NoBytes));
    let caches = |colors, color_bytes, cpus: &[&[u32]]| Caches {
        colors,
        color_bytes,
        page_bytes: 4096,
        cpus: cpus.iter().map(|cpus| cpus.to_vec()).collect(),
    };
    for wrong in [
        caches(0, 1, &[&[0]]),
        caches(65537, 1, &[&[0]]),
        caches(4, 0, &[&[0]]),
        caches(4, 1, &[]),
        caches(4, 1, &[&[0], &[]]),
        caches(4, 1, &[&[0, 1], &[1]]),
        caches(4, 1, &[&[65536]]),
    ] {
        assert!(Allocator::new(wrong.clone()).is_err(), "{wrong:?}");
    }
}
