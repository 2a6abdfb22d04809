//! Threads and the kernel use a range while its pages get other frames: nothing is lost, nobody
//! sees old data after new, no system call fails.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use live::{Engine, Others, PAGE_BYTES, Wish};

use crate::engine::memory::{ColorOwn, Memory, assert_colored, engine, running, set};

const MIB: usize = 1 << 20;

/// Colors the range again and again until all others are done, at least `times`; where ranges in
/// use cannot be colored that must be said.
fn recolor(engine: &mut Engine, memory: &Memory, times: usize, done: &AtomicBool) -> bool {
    let sets = [set(&[0, 1, 2, 3]), set(&[4, 5, 6, 7]), set(&[8, 9]), set(&[15])];
    let mut exchanged = 0;
    for (turn, chosen) in sets.iter().cycle().enumerate() {
        if turn >= times && done.load(Ordering::Relaxed) {
            break;
        }
        match engine.color_own(memory.pages(), &Wish::Set(chosen.clone()), Others::Running) {
            Ok(done) => {
                assert!(done.complete(), "{done:?}");
                exchanged += done.exchanged;
                assert_colored(memory.pages(), 4, chosen);
            }
            Err(error) => {
                assert!(!running(engine), "{error}");
                assert!(error.to_string().contains("others may touch"), "{error}");
                return false;
            }
        }
    }
    assert!(exchanged > 0);
    true
}

/// Sets a flag in the end, after a failure too, so that the threads that wait for it end.
struct Finally<'a>(&'a AtomicBool);

impl Drop for Finally<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A cheap sequence of numbers.
struct Sequence(u64);

impl Sequence {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn no_increment_of_two_threads_is_lost() {
    let Some(mut engine) = engine() else { return };
    const EACH: u64 = 20_000_000;
    let memory = Memory::alone(16 * MIB);
    memory.words().iter().for_each(|word| word.store(0, Ordering::Relaxed));
    let (over, left) = (AtomicBool::new(false), AtomicU64::new(2));
    std::thread::scope(|scope| {
        for thread in 0..2u64 {
            let (memory, over, left) = (&memory, &over, &left);
            scope.spawn(move || {
                let words = memory.words();
                let mut random = Sequence(thread * 7919 + 88172645463325252);
                for _ in 0..EACH {
                    // Words of the two threads lie side by side: no atomic increment is needed,
                    // and none would be lost but for the pages.
                    let at = random.next() as usize % (words.len() / 2) * 2 + thread as usize;
                    let word = &words[at];
                    word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                }
                if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                    over.store(true, Ordering::Relaxed);
                }
            });
        }
        recolor(&mut engine, &memory, 4, &over);
    });
    let sum: u64 = memory.words().iter().map(|word| word.load(Ordering::Relaxed)).sum();
    assert_eq!(sum, 2 * EACH);
}

#[test]
fn no_reader_sees_old_data_after_new() {
    let Some(mut engine) = engine() else { return };
    let memory = Memory::alone(2 * MIB);
    memory.words().iter().for_each(|word| word.store(0, Ordering::Relaxed));
    let over = AtomicBool::new(false);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (memory, over, stop) = (&memory, &over, &stop);
        // Each word of a page is a version that only rises; the second word follows the first.
        let writer = scope.spawn(move || {
            let words = memory.words();
            let mut version = 0;
            while !stop.load(Ordering::Relaxed) {
                version += 1;
                for page in words.chunks(PAGE_BYTES / 8) {
                    page[0].store(version, Ordering::Release);
                    page[511].store(version, Ordering::Release);
                }
            }
            version
        });
        let reader = scope.spawn(move || {
            let _over = Finally(over);
            let words = memory.words();
            let mut seen = vec![(0, 0); words.len() / 512];
            let mut looks = 0u64;
            while !stop.load(Ordering::Relaxed) {
                for (page, seen) in words.chunks(PAGE_BYTES / 8).zip(&mut seen) {
                    let second = page[511].load(Ordering::Acquire);
                    let first = page[0].load(Ordering::Acquire);
                    assert!(second <= first, "the second word is ahead of the first");
                    assert!(first >= seen.0 && second >= seen.1, "old data after new");
                    *seen = (first, second);
                    looks += 1;
                }
                if looks > 2_000_000 {
                    over.store(true, Ordering::Relaxed);
                }
            }
        });
        let stopping = Finally(stop);
        recolor(&mut engine, memory, 20, over);
        drop(stopping);
        writer.join().unwrap();
        reader.join().unwrap();
    });
}

#[test]
fn system_calls_into_pages_on_their_way_work() {
    let Some(mut engine) = engine() else { return };
    let memory = Memory::alone(4 * MIB);
    memory.words().iter().for_each(|word| word.store(0, Ordering::Relaxed));
    let mut file = tempfile::tempfile().unwrap();
    let pattern: Vec<u8> = (0..MIB).map(|at| (at * 7 + at / 4096) as u8).collect();
    file.write_all(&pattern).unwrap();
    let over = AtomicBool::new(false);
    let started = Barrier::new(3);
    std::thread::scope(|scope| {
        let (memory, over, started, pattern) = (&memory, &over, &started, &pattern);
        let from_file = scope.spawn(move || {
            started.wait();
            for round in 0..200 {
                // SAFETY: the first MiB belongs to this thread.
                let part = unsafe { std::slice::from_raw_parts_mut(memory.start as *mut u8, MIB) };
                file.seek(SeekFrom::Start(0)).unwrap();
                file.read_exact(part).unwrap();
                assert!(
                    part == &pattern[..],
                    "round {round}: what read(2) brought is not what is there"
                );
                file.seek(SeekFrom::Start(0)).unwrap();
                // write(2) reads the pages in the kernel.
                file.write_all(part).unwrap();
            }
            let mut back = Vec::new();
            file.seek(SeekFrom::Start(0)).unwrap();
            file.read_to_end(&mut back).unwrap();
            assert!(back == *pattern);
        });
        let through_a_pipe = scope.spawn(move || {
            started.wait();
            let (mut read, mut write) = std::io::pipe().unwrap();
            for round in 0..2000u64 {
                let at = memory.start + 2 * MIB + (round as usize * 40_000) % MIB;
                // SAFETY: the third and fourth MiB belong to this thread.
                let part = unsafe { std::slice::from_raw_parts_mut(at as *mut u8, 30_000) };
                write.write_all(&pattern[..30_000]).unwrap();
                read.read_exact(part).unwrap();
                assert!(part == &pattern[..30_000], "round {round}");
                part.fill(round as u8);
                write.write_all(part).unwrap();
                let mut back = vec![0; 30_000];
                read.read_exact(&mut back).unwrap();
                assert!(back.iter().all(|&byte| byte == round as u8));
            }
        });
        started.wait();
        let waiter = scope.spawn(move || {
            let _over = Finally(over);
            let worked = [from_file.join(), through_a_pipe.join()];
            worked.into_iter().for_each(|worked| worked.unwrap());
        });
        recolor(&mut engine, memory, 10, over);
        waiter.join().unwrap();
    });
}

#[test]
fn pages_first_touched_meanwhile_are_zeros_and_keep_what_is_written() {
    let Some(mut engine) = engine() else { return };
    if !running(&engine) {
        return;
    }
    for _ in 0..10 {
        let memory = Memory::alone(4 * MIB);
        std::thread::scope(|scope| {
            let memory = &memory;
            let toucher = scope.spawn(move || {
                for word in memory.words().iter().step_by(512).rev() {
                    assert_eq!(word.load(Ordering::Relaxed), 0);
                    word.store(5, Ordering::Relaxed);
                }
            });
            let done = engine
                .color_own(memory.pages(), &Wish::Set(set(&[1, 2])), Others::Running)
                .unwrap();
            assert!(done.complete(), "{done:?}");
            toucher.join().unwrap();
        });
        let right = |(at, word): (usize, &AtomicU64)| word.load(Ordering::Relaxed) == if at % 512 == 0 { 5 } else { 0 };
        assert!(memory.words().iter().enumerate().all(right));
        assert_colored(memory.pages(), 4, &set(&[1, 2]));
    }
}

#[test]
fn pages_that_a_device_holds_are_left_and_reported() {
    let Some(mut engine) = engine() else { return };
    if !running(&engine) {
        return;
    }
    let memory = Memory::alone(MIB);
    memory.number();
    // Pages given to a pipe stay with it until they are read.
    let (read, write) = std::io::pipe().unwrap();
    let at = memory.start + 8 * PAGE_BYTES;
    let vector = libc::iovec {
        iov_base: at as *mut _,
        iov_len: 4 * PAGE_BYTES,
    };
    // SAFETY: the pages are mapped, and nobody writes them while the pipe has them.
    let given = unsafe { libc::vmsplice(write.as_raw_fd(), &vector, 1, 0) };
    assert_eq!(given, 4 * PAGE_BYTES as isize);
    let done = engine
        .color_own(memory.pages(), &Wish::Set(set(&[9])), Others::Running)
        .unwrap();
    memory.assert_numbered();
    // The kernel decides if these count as pinned; they are moved as a whole or left.
    for left in &done.left {
        assert_eq!(left.why, live::Why::Pinned);
        assert!((at..at + 4 * PAGE_BYTES).contains(&left.address));
    }
    let mut back = vec![0u8; 4 * PAGE_BYTES];
    File::from(std::os::fd::OwnedFd::from(read))
        .read_exact(&mut back)
        .unwrap();
    let word = u64::from_ne_bytes(back[..8].try_into().unwrap());
    assert_eq!(word, 8 * 512 * 3 + 1);
}
