use super::*;
use crate::memory::Size;

/// With the features that a test needs, which the kernel has since some version; `None` where it may not be opened or lacks them, which is said.
fn open(wait_for_events: bool, since: (u32, u32), has: impl Fn(Features) -> bool) -> Option<Faults> {
    match Faults::open(wait_for_events) {
        Ok(faults) if has(faults.features()) => return Some(faults),
        Ok(faults) => skips::not_in_this_kernel(since, format_args!("userfaultfd has {:?}", faults.features())),
        Err(error) => skips::not_allowed(format_args!("userfaultfd: {error}")),
    }
    None
}

fn areas(pages: usize) -> (Area, Area) {
    let area = || Area::map(pages * PAGE, Size::Small).unwrap();
    (area(), area())
}

#[test]
fn what_may_not_be_opened_says_why() {
    for scope in [Scope::Kernel, Scope::UserOnly] {
        match Faults::open_for(scope, true) {
            Ok(faults) => assert_eq!(faults.scope(), scope),
            Err(error) => assert!(matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS))),
        }
    }
}

#[test]
fn pages_keep_their_content_on_the_way_out_and_in() {
    let Some(faults) = open(false, (6, 8), |features| features.moves()) else {
        return;
    };
    let (mut theirs, mut area) = areas(8);
    (0..8).for_each(|page| theirs.set_word(page, page, 100 + page as u64));
    faults.register(area.span()).unwrap();
    let all = Progress {
        bytes: 8 * PAGE,
        stop: None,
    };
    // SAFETY: here and below: both areas are the test's own, and nobody else touches them.
    assert_eq!(unsafe { faults.take(theirs.span(), &mut area, 0) }, all);
    assert!((0..8).all(|page| area.word(page, page) == 100 + page as u64));
    faults.register(theirs.span()).unwrap();
    // SAFETY: as above.
    assert_eq!(unsafe { faults.put(&mut area, 0, theirs.span()) }, all);
    let nothing = |stop| Progress {
        bytes: 0,
        stop: Some(stop),
    };
    assert_eq!(faults.shift(&mut theirs, 0, &mut area, 0, 1).bytes, PAGE);
    assert_eq!(faults.shift(&mut theirs, 0, &mut area, 1, 1), nothing(Stop::Hole));
    assert_eq!(faults.shift(&mut area, 0, &mut theirs, 0, 1).bytes, PAGE);
    faults.unregister(area.span()).unwrap();
    area.set_word(0, 0, 5);
    // SAFETY: as above.
    let put = unsafe { faults.put(&mut area, 0, theirs.part(0, 1)) };
    assert_eq!(put, nothing(Stop::Occupied));
    faults.unregister(theirs.span()).unwrap();
    assert!((0..8).all(|page| theirs.word(page, page) == 100 + page as u64));
    assert_eq!(faults.event().unwrap(), None);
}

#[test]
fn absent_pages_are_filled_with_copies_and_zeros() {
    let Some(faults) = open(false, (4, 3), |_| true) else {
        return;
    };
    let (theirs, area) = areas(2);
    area.set_word(0, 1, 3);
    faults.register(theirs.span()).unwrap();
    // SAFETY: here and below: both areas are the test's own, and nobody else touches them.
    assert_eq!(unsafe { faults.copy(&area, 0, theirs.part(1, 1)) }.stop, None);
    // SAFETY: as above.
    assert_eq!(unsafe { faults.zero(theirs.part(0, 1)) }.stop, None);
    faults.unregister(theirs.span()).unwrap();
    assert_eq!((theirs.word(1, 1), theirs.word(0, 1)), (3, 0));
}

#[test]
fn who_empties_pages_waits_until_it_is_heard() {
    let Some(faults) = open(true, (4, 14), |features| features.events()) else {
        return;
    };
    let (theirs, _) = areas(4);
    theirs.set_word(2, 0, 1);
    faults.register(theirs.span()).unwrap();
    let part = theirs.part(1, 2);
    std::thread::scope(|scope| {
        // SAFETY: the area is the test's own, and its content is to go.
        let other = scope.spawn(|| unsafe { crate::memory::discard(part) });
        let event = loop {
            if let Some(event) = faults.event().unwrap() {
                break event;
            }
            std::thread::yield_now();
        };
        assert_eq!(event, Event::Emptied(part));
        other.join().unwrap().unwrap();
    });
    faults.unregister(theirs.span()).unwrap();
    assert_eq!(theirs.word(2, 0), 0);
}
