//! The kinds of memory in a range, and the check that every page of it comes to have a color of the
//! set.

use std::os::fd::AsRawFd;

use live::{Error, Others, PAGE_BYTES, Pages, Wish};
use sys::mappings;

use crate::engine::memory::{ColorOwn, Memory, assert_colored, config, engine, open, protect, set};

const MIB: usize = 1 << 20;

#[test]
fn untouched_pages_are_filled_with_zeros_in_place() {
    let Some(mut engine) = engine() else { return };
    let memory = Memory::alone(4 * MIB);
    let chosen = set(&[3, 4, 9]);
    let done = engine
        .color_own(memory.pages(), &Wish::Set(chosen.clone()), Others::Absent)
        .unwrap();
    assert!(done.complete() && done.pages == 1024, "{done:?}");
    assert_eq!((done.filled, done.kept, done.exchanged), (1024, 0, 0));
    memory.assert_zero();
    assert_colored(memory.pages(), 4, &chosen);
}

#[test]
fn touched_pages_keep_their_content() {
    let Some(mut engine) = engine() else { return };
    let memory = Memory::alone(4 * MIB);
    memory.number();
    for chosen in [set(&[0]), set(&[5, 6]), set(&[15, 1, 2, 7])] {
        let done = engine
            .color_own(memory.pages(), &Wish::Set(chosen.clone()), Others::Absent)
            .unwrap();
        assert!(done.complete() && done.exchanged + done.kept == 1024, "{done:?}");
        memory.assert_numbered();
        assert_colored(memory.pages(), 4, &chosen);
    }
}

#[test]
fn a_range_half_touched() {
    let Some(mut engine) = engine() else { return };
    let memory = Memory::alone(2 * MIB);
    for page in (0..512).filter(|page| page % 7 < 3) {
        memory.words()[page * 512].store(page as u64, std::sync::atomic::Ordering::Relaxed);
    }
    let chosen = set(&[2, 11]);
    let done = engine
        .color_own(memory.pages(), &Wish::Set(chosen.clone()), Others::Absent)
        .unwrap();
    assert!(done.complete(), "{done:?}");
    let untouched = (0..512).filter(|page| page % 7 >= 3).count();
    assert_eq!((done.filled, done.kept + done.exchanged), (untouched, 512 - untouched));
    for page in 0..512 {
        let word = memory.words()[page * 512].load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(word, if page % 7 < 3 { page as u64 } else { 0 });
    }
    assert_colored(memory.pages(), 4, &chosen);
}

#[test]
fn hints_color_the_pages_they_name_and_no_other() {
    let Some(mut engine) = engine() else { return };
    let memory = Memory::alone(MIB);
    memory.number();
    let before = crate::engine::memory::frames(memory.pages());
    let hints: Vec<(usize, u16)> = (0..256).step_by(3).map(|page| (page, (page % 16) as u16)).collect();
    let done = engine
        .color_own(memory.pages(), &Wish::Hints(hints.clone()), Others::Absent)
        .unwrap();
    assert!(done.complete() && done.pages == hints.len(), "{done:?}");
    memory.assert_numbered();
    if let (Some(before), Some(after)) = (before, crate::engine::memory::frames(memory.pages())) {
        for page in 0..256 {
            match hints.iter().find(|hint| hint.0 == page) {
                Some(hint) => assert_eq!(after[page] % 16, u64::from(hint.1)),
                None => assert_eq!(after[page], before[page]),
            }
        }
    }
}

#[test]
fn pages_that_are_right_stay_and_nothing_is_done_twice() {
    let Some(mut engine) = engine() else { return };
    let memory = Memory::alone(MIB);
    memory.number();
    let wish = Wish::Set(set(&[1, 2]));
    engine.color_own(memory.pages(), &wish, Others::Absent).unwrap();
    let before = crate::engine::memory::frames(memory.pages());
    let done = engine.color_own(memory.pages(), &wish, Others::Absent).unwrap();
    if before.is_some() {
        assert_eq!((done.kept, done.exchanged), (256, 0));
        assert_eq!(before, crate::engine::memory::frames(memory.pages()));
        let census = engine.census(memory.pages(), &set(&[1, 2])).unwrap();
        assert_eq!((census.right, census.wrong, census.unknown), (256, 0, 0));
        assert_eq!((census.by_color[1] + census.by_color[2], census.pages), (256, 256));
    } else {
        let census = engine.census(memory.pages(), &set(&[1, 2])).unwrap();
        assert_eq!((census.right, census.unknown), (0, 256));
    }
}

#[test]
fn frames_that_were_moved_are_found_and_only_they_are_repaired() {
    let Some(mut engine) = engine() else { return };
    let memory = Memory::alone(MIB);
    memory.number();
    let chosen = set(&[6]);
    engine
        .color_own(memory.pages(), &Wish::Set(chosen.clone()), Others::Absent)
        .unwrap();
    // This does the same as a move by the kernel, as far as can be seen from here.
    let part = memory.pages();
    let part = Pages {
        start: part.start + 10 * PAGE_BYTES,
        count: 20,
    };
    engine.color_own(part, &Wish::Set(set(&[7])), Others::Absent).unwrap();
    match engine.repair_own(memory.pages(), &chosen, Others::Absent) {
        Ok(repaired) => {
            assert_eq!(
                (repaired.wrong, repaired.done.exchanged, repaired.done.kept),
                (20, 20, 236)
            );
            assert_colored(memory.pages(), 4, &chosen);
        }
        Err(error) => assert!(error.to_string().contains("CAP_SYS_ADMIN"), "{error}"),
    }
    memory.assert_numbered();
}

#[test]
fn huge_pages_are_divided() {
    let Some(mut engine) = engine() else { return };
    let memory = Memory::new(8 * MIB);
    let start = memory.start.next_multiple_of(2 * MIB);
    sys::memory::huge(memory.span()).unwrap();
    memory.number();
    let range = Pages { start, count: 1024 };
    let chosen = set(&[8, 9, 10]);
    let done = engine
        .color_own(range, &Wish::Set(chosen.clone()), Others::Absent)
        .unwrap();
    assert!(done.complete(), "{done:?}");
    memory.assert_numbered();
    assert_colored(range, 4, &chosen);
}

#[test]
fn huge_pages_full_of_zeros_are_divided() {
    let Some(mut engine) = engine() else { return };
    let memory = Memory::new(6 * MIB);
    let start = memory.start.next_multiple_of(2 * MIB);
    sys::memory::huge(memory.span()).unwrap();
    sys::memory::populate(memory.span()).unwrap();
    let range = Pages { start, count: 512 };
    let chosen = set(&[8, 9, 10]);
    let done = engine
        .color_own(range, &Wish::Set(chosen.clone()), Others::Absent)
        .unwrap();
    assert!(done.complete(), "{done:?}");
    memory.assert_zero();
    assert_colored(range, 4, &chosen);
}

#[test]
fn no_mapping_is_added() {
    let mut config = config(4);
    config.reserve_bytes = 0;
    let Some(mut engine) = open(config) else { return };
    let memory = Memory::alone(8 * MIB);
    let untouched = Memory::alone(8 * MIB);
    memory.number();
    // Other tests map memory at the same time: those that lie in ours are counted, and all of them
    // in a process of its own (tests/alone).
    let count = |memory: &Memory| mappings::within(memory.span()).unwrap().len();
    assert_eq!((count(&memory), count(&untouched)), (1, 1));
    for chosen in [set(&[1]), set(&[2, 3]), set(&[4])] {
        engine
            .color_own(memory.pages(), &Wish::Set(chosen.clone()), Others::Absent)
            .unwrap();
        engine
            .color_own(untouched.pages(), &Wish::Set(chosen), Others::Absent)
            .unwrap();
        assert_eq!((count(&memory), count(&untouched)), (1, 1));
    }
    memory.assert_numbered();
}

#[test]
fn overlapping_ranges_have_the_colors_of_the_last() {
    let Some(mut engine) = engine() else { return };
    let memory = Memory::alone(4 * MIB);
    memory.number();
    let part = |from: usize, count: usize| Pages {
        start: memory.start + from * PAGE_BYTES,
        count,
    };
    engine
        .color_own(part(0, 600), &Wish::Set(set(&[1])), Others::Absent)
        .unwrap();
    engine
        .color_own(part(400, 624), &Wish::Set(set(&[2])), Others::Absent)
        .unwrap();
    memory.assert_numbered();
    assert_colored(part(0, 400), 4, &set(&[1]));
    assert_colored(part(400, 624), 4, &set(&[2]));
}

#[test]
fn locked_ranges_are_locked_again() {
    let mut config = config(2);
    config.lock = live::Lock::Free;
    let Some(mut engine) = open(config) else { return };
    let memory = Memory::alone(MIB);
    memory.number();
    for color in [0, 1, 2] {
        let done = engine
            .color_own(memory.pages(), &Wish::Set(set(&[color])), Others::Absent)
            .unwrap();
        assert!(done.complete());
        let locked = mappings::details(memory.span())
            .unwrap()
            .iter()
            .all(|details| details.has("lo"));
        assert_eq!(locked, done.locked);
    }
    engine.release(memory.pages()).unwrap();
    assert!(!mappings::details(memory.span()).unwrap()[0].has("lo"));
    memory.assert_numbered();
}

#[test]
fn what_the_program_locked_stays_locked() {
    let Some(mut engine) = engine() else { return };
    let memory = Memory::alone(MIB);
    memory.number();
    sys::memory::lock(memory.span()).unwrap();
    let done = engine
        .color_own(memory.pages(), &Wish::Set(set(&[3])), Others::Absent)
        .unwrap();
    assert!(done.complete(), "{done:?}");
    assert!(mappings::details(memory.span()).unwrap()[0].has("lo"));
    memory.assert_numbered();
    assert_colored(memory.pages(), 4, &set(&[3]));
}

#[test]
fn private_pages_of_a_file_are_filled_anew_or_refused() {
    let Some(mut engine) = engine() else { return };
    let file = tempfile::tempfile().unwrap();
    file.set_len(MIB as u64).unwrap();
    let memory = Memory::mapped(MIB, libc::MAP_PRIVATE, file.as_raw_fd());
    memory.number();
    let chosen = set(&[12, 13]);
    match engine.color_own(memory.pages(), &Wish::Set(chosen.clone()), Others::Absent) {
        // They are refilled, which another thread of this cpu may disturb.
        Ok(done) if !done.complete() => {
            assert!(
                done.left.iter().all(|left| left.why == live::Why::Miscolored),
                "{done:?}"
            );
        }
        Ok(_) => assert_colored(memory.pages(), 4, &chosen),
        Err(error) => assert!(error.to_string().contains("CAP_SYS_ADMIN"), "{error}"),
    }
    memory.assert_numbered();
}

#[test]
fn what_cannot_be_colored_is_refused_with_its_address_and_untouched() {
    let Some(mut engine) = engine() else { return };
    let wish = Wish::Set(set(&[1]));
    let refused = |engine: &mut live::Engine, pages: Pages, address: usize, about: &str| {
        for others in [Others::Absent, Others::Running] {
            let error = engine.color_own(pages, &wish, others).unwrap_err();
            assert!(error.to_string().contains(about), "{error}");
            let Error::Unfit { address: at, .. } = error else {
                panic!("{error}")
            };
            assert_eq!(at, address);
        }
    };
    let guarded = Memory::new(64 * PAGE_BYTES);
    guarded.number();
    let middle = guarded.start + 20 * PAGE_BYTES;
    protect(middle, PAGE_BYTES, libc::PROT_NONE);
    refused(&mut engine, guarded.pages(), middle, "guard");
    protect(middle, PAGE_BYTES, libc::PROT_READ);
    refused(&mut engine, guarded.pages(), middle, "written");
    guarded.assert_numbered();
    let shared = Memory::mapped(MIB, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1);
    shared.number();
    refused(&mut engine, shared.pages(), shared.start, "shared");
    shared.assert_numbered();
    let unmapped = Pages {
        start: PAGE_BYTES,
        count: 3,
    };
    refused(&mut engine, unmapped, PAGE_BYTES, "nothing is mapped");
}

#[test]
fn the_thread_that_does_it_leaves_its_own_stack_alone() {
    let Some(mut engine) = engine() else { return };
    let here = 7u64;
    let start = &raw const here as usize / PAGE_BYTES * PAGE_BYTES - 4 * PAGE_BYTES;
    let pages = Pages { start, count: 5 };
    let done = engine.color_own(pages, &Wish::Set(set(&[1])), Others::Absent).unwrap();
    assert!(done.left.iter().all(|left| left.why == live::Why::Own), "{done:?}");
    // A page of the stack that was never touched may get a frame of the color by chance.
    assert_eq!(done.left.len() + done.kept + done.filled, 5, "{done:?}");
    assert_eq!(std::hint::black_box(here), 7);
}

#[test]
fn a_range_of_another_userfaultfd_is_refused() {
    let Some(mut engine) = engine() else { return };
    let other = match sys::faults::Faults::open(false) {
        Ok(other) => other,
        Err(error) => return harness::not_allowed(format_args!("userfaultfd: {error}")),
    };
    let memory = Memory::alone(MIB);
    memory.number();
    other.register(memory.span()).unwrap();
    if engine.means().placing == Some(live::Placing::Move) {
        let error = engine
            .color_own(memory.pages(), &Wish::Set(set(&[1])), Others::Absent)
            .unwrap_err();
        assert!(error.to_string().contains("another userfaultfd"), "{error}");
    }
    memory.assert_numbered();
}
