//! Replicated data under real threads, on whatever machine this is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::scope;

use replicas::{Error, Mode, Reader, Replicated};

/// Several pages and a part of one.
const WORDS: usize = 2_000;

/// The number that all words of a region have; panics where they differ, now or later in the region.
fn read(reader: &mut Reader<u64>) -> u64 {
    let region = reader.enter();
    let number = region[0];
    assert!(region.iter().all(|&word| word == number), "parts of two writes");
    std::thread::yield_now();
    assert!(
        region.iter().rev().all(|&word| word == number),
        "it changed in a region"
    );
    number
}

#[test]
fn contents_are_those_that_were_written_last() {
    let data = Replicated::new(&[1u32, 2, 3]).unwrap();
    let mut reader = data.reader();
    assert_eq!((data.len(), &*reader.enter()), (3, &[1, 2, 3][..]));
    data.publish(&[4, 5, 6]).unwrap();
    data.write(1, &[9]).unwrap();
    data.update(|words| words[2] += words[0]).unwrap();
    assert_eq!(*reader.enter(), [4, 9, 10]);
    for spread in [Replicated::collapse, Replicated::replicate, Replicated::replicate] {
        spread(&data).unwrap();
        assert_eq!(*reader.enter(), [4, 9, 10]);
    }
    drop(data);
    assert_eq!(*reader.enter(), [4, 9, 10], "copies stay as long as there are readers");
}

#[test]
fn what_is_refused_changes_nothing() {
    assert!(matches!(Replicated::<u8>::new(&[]), Err(Error::Empty)));
    let data = Replicated::new(&[1u8, 2, 3]).unwrap();
    let length = data.publish(&[1]).unwrap_err();
    assert!(matches!(length, Error::Length { given: 1, length: 3 }), "{length}");
    for (first, elements) in [(2, &[7, 7][..]), (4, &[]), (usize::MAX, &[7])] {
        let beyond = data.write(first, elements).unwrap_err();
        assert!(matches!(beyond, Error::Beyond { length: 3, .. }), "{beyond}");
    }
    let mut reader = data.reader();
    let region = reader.enter();
    let inside = data.publish(&[4, 5, 6]).unwrap_err();
    assert!(matches!(inside, Error::Inside) && inside.nothing_changed(), "{inside}");
    assert!(matches!(data.collapse(), Err(Error::Inside)));
    assert_eq!(*region, [1, 2, 3]);
    drop(region);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| data.update(|_| panic!("on purpose"))));
    assert!(panicked.is_err());
    assert_eq!(*reader.enter(), [1, 2, 3]);
    data.write(3, &[]).unwrap();
    data.publish(&[4, 5, 6]).unwrap();
    assert_eq!((*reader.enter()).to_vec(), [4, 5, 6]);
}

#[test]
fn the_state_says_what_there_is_and_what_it_costs() {
    let data = Replicated::new(&[7u64; WORDS]).unwrap();
    let state = data.state();
    assert_eq!((state.bytes, state.copies[0].bytes), (16_000, 16_384));
    assert_eq!(state.memory(), 16_384 * state.copies.len() as u64);
    assert_eq!(state.mode == Mode::OneCopy, state.copies.len() == 1, "{state}");
    assert_eq!(state.why_one.is_some(), state.copies.len() == 1, "{state}");
    data.collapse().unwrap();
    let collapsed = data.state();
    assert_eq!(
        (collapsed.mode, collapsed.memory(), collapsed.extra()),
        (Mode::OneCopy, 16_384, 0)
    );
    data.publish(&[8; WORDS]).unwrap();
    assert_eq!((data.state().writes, data.state().copies.len()), (1, 1));
    data.replicate().unwrap();
    assert_eq!(data.state().copies.len(), state.copies.len());
}

/// Writers, readers that come and go, and copies that come and go, all at once.
#[test]
fn no_stale_read_no_torn_read_and_no_write_lost() {
    const WRITES: u64 = 300;
    const WRITERS: u64 = 2;
    let data = Replicated::new(&[0u64; WORDS]).unwrap();
    let (returned, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let read_on = || {
        let (mut last, mut seen) = (0, 0u64);
        while !done.load(Relaxed) {
            let mut reader = data.reader();
            for _ in 0..20 {
                let known = returned.load(Relaxed);
                let number = read(&mut reader);
                assert!(number >= known.max(last), "{number} after {known} and {last}");
                seen += u64::from(number > last);
                last = number;
            }
        }
        seen
    };
    scope(|scope| {
        let readers: Vec<_> = (0..3).map(|_| scope.spawn(read_on)).collect();
        let spreader = scope.spawn(|| {
            while !done.load(Relaxed) {
                data.collapse().unwrap();
                data.replicate().unwrap();
            }
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..WRITES {
                        let mut number = 0;
                        data.update(|words| {
                            number = words[0] + 1;
                            words.fill(number);
                        })
                        .unwrap();
                        returned.fetch_max(number, Relaxed);
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Relaxed);
        spreader.join().unwrap();
        let seen: Vec<u64> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        assert!(
            seen.iter().any(|&seen| seen > 1),
            "nobody read while there was writing: {seen:?}"
        );
    });
    assert_eq!(read(&mut data.reader()), WRITES * WRITERS);
    assert_eq!(data.state().writes, WRITES * WRITERS);
}

/// As a thread in C may that is cancelled, or returns too early.
#[test]
fn a_thread_that_ended_inside_a_region_keeps_nobody_waiting() {
    let data = Replicated::new(&[1u8; 10]).unwrap();
    scope(|scope| {
        scope.spawn(|| {
            let mut reader = data.reader();
            // SAFETY: inside the region there are ten bytes.
            assert_eq!(unsafe { reader.enter_unguarded().read() }, 1);
            assert!(reader.is_inside());
            std::mem::forget(reader);
        });
    });
    data.publish(&[2; 10]).unwrap();
    assert_eq!(data.reader().enter()[9], 2);
}

#[test]
fn a_region_whose_guard_was_forgotten_ends_with_the_next() {
    let data = Replicated::new(&[1u8]).unwrap();
    let mut reader = data.reader();
    std::mem::forget(reader.enter());
    assert!(matches!(data.publish(&[2]), Err(Error::Inside)));
    assert_eq!(reader.enter()[0], 1);
    data.publish(&[2]).unwrap();
    assert_eq!(reader.enter()[0], 2);
    reader.leave();
    assert!(!reader.is_inside());
}

#[test]
fn a_child_of_fork_reads_what_there_was_and_does_not_write() {
    let data = Replicated::new(&[5u64; WORDS]).unwrap();
    let mut reader = data.reader();
    // SAFETY: the child calls what takes no lock and no memory, and ends by `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let same = reader.enter().iter().all(|&word| word == 5);
        let refused = matches!(data.publish(&[6; WORDS]), Err(Error::Forked));
        // SAFETY: as above.
        unsafe { libc::_exit(i32::from(!same) + 2 * i32::from(!refused)) }
    }
    data.publish(&[7; WORDS]).unwrap();
    let mut status = 0;
    // SAFETY: the child is ours, and the status lives.
    assert_eq!(child, unsafe { libc::waitpid(child, &raw mut status, 0) });
    assert_eq!(status, 0);
    assert_eq!(read(&mut reader), 7);
}

#[test]
fn a_write_within_a_write_is_refused_and_the_state_is_that_before() {
    let data = Replicated::new(&[1u64, 2]).unwrap();
    data.update(|words| {
        for refused in [
            data.write(0, &[9]),
            data.update(|_| ()),
            data.collapse(),
            data.replicate(),
        ] {
            let refused = refused.unwrap_err();
            assert!(
                matches!(refused, Error::Writing) && refused.nothing_changed(),
                "{refused}"
            );
        }
        assert_eq!(data.state().writes, 0);
        words[1] = 3;
    })
    .unwrap();
    assert_eq!((&*data.reader().enter(), data.state().writes), (&[1, 3][..], 1));
    // Neither is it after a change that came to no end.
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| data.update(|_| panic!("on purpose"))));
    assert!(panicked.is_err());
    data.write(0, &[7]).unwrap();
    assert_eq!(*data.reader().enter(), [7, 3]);
}

#[test]
fn a_child_of_fork_waits_for_no_thread_that_it_does_not_have() {
    const CHILDREN: usize = 150;
    let data = Replicated::new(&[5u64; 8]).unwrap();
    let done = AtomicBool::new(false);
    scope(|scope| {
        // Threads that hold now this lock, now that one, most of the time.
        scope.spawn(|| {
            while !done.load(Relaxed) {
                let readers: Vec<_> = (0..64).map(|_| data.reader()).collect();
                drop(readers);
            }
        });
        scope.spawn(|| {
            while !done.load(Relaxed) {
                data.state();
                data.write(0, &[5]).unwrap();
            }
        });
        for _ in 0..CHILDREN {
            let mut reader = data.reader();
            reader.enter();
            // SAFETY: the child does what a child of fork may: it reads, and makes and drops readers. It ends by `_exit`, or
            // by the alarm where it waits.
            let child = unsafe { libc::fork() };
            assert!(child >= 0);
            if child == 0 {
                // SAFETY: as above.
                unsafe { libc::alarm(60) };
                let same = reader.enter()[1] == 5 && data.reader().enter()[1] == 5;
                drop(reader);
                let told = data.state().bytes == 64;
                // SAFETY: as above.
                unsafe { libc::_exit(i32::from(!same || !told)) }
            }
            let mut status = 0;
            // SAFETY: the child is ours, and the status lives.
            assert_eq!(child, unsafe { libc::waitpid(child, &raw mut status, 0) });
            if status != 0 {
                done.store(true, Relaxed);
            }
            assert_eq!(status, 0, "a child waited until the alarm, or read something else");
        }
        done.store(true, Relaxed);
    });
}

/// A writer that waits for a region has the lock of writers: nobody inside that region may wait for the lock.
#[test]
fn nobody_inside_a_region_waits_for_the_writer_that_waits_for_it() {
    let data = Replicated::new(&[1u32; 100]).unwrap();
    let mut reader = data.reader();
    let region = reader.enter();
    std::thread::scope(|threads| {
        let writer = threads.spawn(|| data.write(0, &[2]));
        // From here on the writer waits for the region.
        while data.keep()[0] != 2 {
            std::thread::yield_now();
        }
        assert!(matches!(data.write(0, &[3]), Err(Error::Inside)));
        assert!(matches!(data.collapse(), Err(Error::Inside)));
        assert!(matches!(data.replicate(), Err(Error::Inside)));
        assert!(!data.state().copies.is_empty());
        assert!(!writer.is_finished());
        assert_eq!(region[0], 1);
        drop(region);
        writer.join().unwrap().unwrap();
    });
    assert_eq!(data.reader().enter()[0], 2);
}
