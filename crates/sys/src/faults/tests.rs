use super::*;
use crate::memory::Size;

/// With the features that a test needs, which the kernel has since some version; `None` if it may not be opened or
/// lacks them, which is reported.
fn open(wait_for_events: bool, since: (u32, u32), has: impl Fn(Features) -> bool) -> Option<Faults> {
    match Faults::open(wait_for_events) {
        Ok(faults) if has(faults.features()) => return Some(faults),
        Ok(faults) => harness::not_in_this_kernel(since, format_args!("userfaultfd has {:?}", faults.features())),
        Err(error) => harness::not_allowed(format_args!("userfaultfd: {error}")),
    }
    None
}

/// Each other test that asked for events would get a fork's event, and the fork would wait for that
/// test.
static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn one() -> std::sync::MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
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
    assert!(faults.event().unwrap().is_none());
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
    let _one = one();
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
        assert!(matches!(event, Event::Emptied(span) if span == part), "{event:?}");
        other.join().unwrap().unwrap();
    });
    faults.unregister(theirs.span()).unwrap();
    assert_eq!(theirs.word(2, 0), 0);
}

#[test]
fn a_span_is_held_where_all_of_it_is_one_registered_mapping() {
    let _one = one();
    let Some(faults) = open(true, (6, 8), Features::moves) else {
        return;
    };
    let (theirs, void) = (areas(8).0, Void::map(8).unwrap());
    theirs.set_word(1, 0, 1);
    faults.register(theirs.part(0, 6)).unwrap();
    for (page, count, held) in [
        (0, 6, true),
        (1, 1, true),
        (2, 4, true),
        (0, 8, false),
        (6, 2, false),
        (5, 2, false),
    ] {
        assert_eq!(
            faults.holds(theirs.part(page, count), &void),
            Ok(held),
            "{count} pages from {page} on"
        );
    }
    let other = Faults::open(true).unwrap();
    assert_eq!(other.holds(theirs.part(0, 6), &void), Ok(false), "another's");
    // While a change is unread, `holds` gives no answer.
    std::thread::scope(|scope| {
        let part = theirs.part(2, 1);
        // SAFETY: the test's own area.
        let emptying = scope.spawn(move || unsafe { crate::memory::discard(part) });
        while faults.holds(theirs.part(0, 6), &void) != Err(Stop::Again) {
            std::thread::yield_now();
        }
        while faults.holds(theirs.part(0, 6), &void) != Ok(true) {
            let _ = faults.event().unwrap();
        }
        emptying.join().unwrap().unwrap();
    });
    faults.unregister(theirs.part(0, 6)).unwrap();
    assert_eq!(faults.holds(theirs.part(0, 6), &void), Ok(false));
    assert_eq!((theirs.word(1, 0), theirs.word(0, 0)), (1, 0));
}

/// The child is made by a bare system call, which no handler sees.
#[test]
fn what_is_absent_in_a_child_is_copied_there() {
    let _one = one();
    let Some(faults) = open(true, (6, 8), Features::moves) else {
        return;
    };
    if !faults.hears_forks() {
        harness::not_allowed("userfaultfd does not report forks");
        return;
    }
    let (theirs, mut area) = areas(4);
    // SAFETY: the area is the test's own.
    let kept = unsafe { libc::madvise(theirs.start() as *mut _, theirs.bytes(), libc::MADV_KEEPONFORK) };
    assert_eq!(kept, 0);
    (0..4).for_each(|page| theirs.set_word(page, page, 100 + page as u64));
    faults.register(theirs.span()).unwrap();
    faults.register(area.span()).unwrap();
    // SAFETY: they are put back below, and into the child.
    assert_eq!(unsafe { faults.take(theirs.part(1, 2), &mut area, 1) }.stop, None);
    let whole = std::thread::scope(|scope| {
        let theirs = &theirs;
        let forks = scope.spawn(move || {
            // SAFETY: the child reads memory and ends.
            let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } as libc::pid_t;
            if child == 0 {
                let whole = (0..4).all(|page| theirs.word(page, page) == 100 + page as u64);
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(i32::from(whole)) };
            }
            let mut status = 0;
            // SAFETY: waits for our own child.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 1
        });
        let child = loop {
            match faults.event().unwrap() {
                Some(Event::Forked(child)) => break child,
                _ => std::thread::yield_now(),
            }
        };
        // SAFETY: what was taken out there.
        assert_eq!(unsafe { child.copy(&area, 1, theirs.part(1, 2)) }.stop, None);
        drop(child);
        forks.join().unwrap()
    });
    // SAFETY: as above.
    while unsafe { faults.put(&mut area, 1, theirs.part(1, 2)) }.stop == Some(Stop::Again) {}
    faults.unregister(theirs.span()).unwrap();
    faults.unregister(area.span()).unwrap();
    assert!(whole, "the child missed content");
    assert!((0..4).all(|page| theirs.word(page, page) == 100 + page as u64));
}

const PAGES: usize = 8;

/// A kernel that moves three pages, counts none and says that the fourth place is filled; `then` answers the second
/// request.
fn forgetful<'a>(
    faults: &'a Faults,
    then: impl Fn(&mut Transfer) -> io::Result<()> + 'a,
) -> impl FnMut(&mut Transfer) -> io::Result<()> + 'a {
    let mut requests = 0;
    move |transfer| {
        requests += 1;
        if requests > 1 {
            return then(transfer);
        }
        assert_eq!(transfer.bytes, (PAGES * PAGE) as u64);
        transfer.bytes = 3 * PAGE as u64;
        really(faults, transfer).unwrap();
        transfer.done = -i64::from(libc::EEXIST);
        Err(io::Error::from_raw_os_error(libc::EEXIST))
    }
}

fn really(faults: &Faults, transfer: &mut Transfer) -> io::Result<()> {
    // SAFETY: the structure is what UFFDIO_MOVE wants; both sides are the test's own.
    unsafe { faults.ask(opcode::read_write::<Transfer>(GROUP, 0x05), transfer) }
}

fn refuses(number: i32) -> impl Fn(&mut Transfer) -> io::Result<()> {
    move |transfer| {
        transfer.done = -i64::from(number);
        Err(io::Error::from_raw_os_error(number))
    }
}

/// Pages with a number each, and an area for them; both are registered.
fn numbered(faults: &Faults) -> (Area, Area) {
    let (full, empty) = areas(PAGES);
    (0..PAGES).for_each(|page| full.set_word(page, page, 100 + page as u64));
    faults.register(full.span()).unwrap();
    faults.register(empty.span()).unwrap();
    (full, empty)
}

fn are_in(faults: &Faults, area: &Area, pages: usize) -> bool {
    faults.unregister(area.span()).unwrap();
    (0..pages).all(|page| area.word(page, page) == 100 + page as u64)
}

#[test]
fn what_the_kernel_moved_and_did_not_count_is_counted() {
    let Some(faults) = open(false, (6, 8), Features::moves) else {
        return;
    };
    for ours in [Ours::Takes, Ours::Gives] {
        let (from, to) = numbered(&faults);
        let all = faults.move_by(
            to.span(),
            from.start(),
            ours,
            forgetful(&faults, |transfer| really(&faults, transfer)),
        );
        let expected = Progress {
            bytes: PAGES * PAGE,
            stop: None,
        };
        assert_eq!(all, expected, "{ours:?}");
        assert!(are_in(&faults, &to, PAGES), "{ours:?}");

        let (from, to) = numbered(&faults);
        let some = faults.move_by(to.span(), from.start(), ours, forgetful(&faults, refuses(libc::EAGAIN)));
        let expected = Progress {
            bytes: 3 * PAGE,
            stop: Some(Stop::Again),
        };
        assert_eq!(some, expected, "{ours:?}");
        assert!(are_in(&faults, &to, 3), "{ours:?}");
    }
}

#[test]
fn where_a_place_is_really_filled_nothing_is_counted() {
    let Some(faults) = open(false, (6, 8), Features::moves) else {
        return;
    };
    let (mut from, to) = numbered(&faults);
    faults.unregister(to.span()).unwrap();
    to.set_word(3, 0, 1);
    faults.register(to.span()).unwrap();
    // SAFETY: both areas are the test's own, and nobody else touches them.
    let put = unsafe { faults.put(&mut from, 0, to.span()) };
    let expected = Progress {
        bytes: 3 * PAGE,
        stop: Some(Stop::Occupied),
    };
    assert_eq!(put, expected);
}

/// The kernel wakes nobody for a page that it does not count.
#[test]
fn who_waits_for_an_uncounted_page_is_woken() {
    let Some(faults) = open(false, (6, 8), Features::moves) else {
        return;
    };
    let (from, to) = numbered(&faults);
    std::thread::scope(|scope| {
        let (say, said) = std::sync::mpsc::channel();
        let theirs = &to;
        scope.spawn(move || say.send(theirs.word(1, 1)));
        // The event of a waiter: it waits from then on.
        let mut polled = [rustix::event::PollFd::new(&faults, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut polled, None).unwrap();
        let mut first = true;
        let moved = faults.move_by(to.span(), from.start(), Ours::Gives, |transfer| {
            if !std::mem::take(&mut first) {
                return refuses(libc::EBUSY)(transfer);
            }
            // UFFDIO_MOVE_MODE_DONTWAKE
            (transfer.bytes, transfer.mode) = (3 * PAGE as u64, 1);
            really(&faults, transfer).unwrap();
            refuses(libc::EEXIST)(transfer)
        });
        let woken = said.recv_timeout(std::time::Duration::from_secs(60));
        // Threads that still wait go on now.
        faults.unregister(to.span()).unwrap();
        assert_eq!((moved.bytes, moved.stop), (3 * PAGE, Some(Stop::Busy)));
        assert_eq!(woken, Ok(101));
    });
}
