//! Frames that the kernel goes on reading after a system call has returned: those that `vmsplice` put into a pipe, or
//! `send(MSG_ZEROCOPY)` into a socket. Their pages get other frames meanwhile, and the receiver must find the data
//! sent, not later data in the old frames.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use live::{Engine, Others, PAGE_BYTES, Why, Wish};

use crate::engine::memory::{ColorOwn, Memory, engine, running, set};

const MIB: usize = 1 << 20;

/// The data that the receiver must never see.
const SECRET: u64 = 0x5ec_7e75_ec7e_75ec;

/// Takes the old frames of `sent` out, and gives frames of their colors to other memory, twice over.
fn reuse_frames(engine: &mut Engine, sent: &Memory) {
    let others = [Memory::alone(2 * MIB), Memory::alone(2 * MIB), Memory::alone(4 * MIB)];
    for memory in &others {
        memory
            .words()
            .iter()
            .for_each(|word| word.store(SECRET, Ordering::Relaxed));
    }
    let mut color = |memory: &Memory, chosen: &[u32]| {
        let done = engine.color_own(memory.pages(), &Wish::Set(set(chosen)), Others::Running);
        done.unwrap()
    };
    let low: Vec<u32> = (0..8).collect();
    let high: Vec<u32> = (8..16).collect();
    color(sent, &low);
    let moved = color(sent, &high);
    assert!(moved.exchanged > 0, "{moved:?}");
    for memory in &others {
        for chosen in [&low, &high, &low] {
            color(memory, chosen);
        }
        assert!(memory.words().iter().all(|word| word.load(Ordering::Relaxed) == SECRET));
    }
    sent.assert_numbered();
}

/// Returns the first wrong number, unless these bytes are the numbers of [`Memory::number`] from the start on.
fn first_wrong(bytes: &[u8]) -> Option<(usize, u64)> {
    let words = bytes
        .chunks_exact(8)
        .map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
    words.enumerate().find(|&(at, word)| word != at as u64 * 3 + 1)
}

fn assert_sent(bytes: &[u8], by: &str) {
    let wrong = first_wrong(bytes);
    assert!(
        wrong.is_none(),
        "{by}: of {} bytes, word {:x?} is not what was sent",
        bytes.len(),
        wrong.unwrap()
    );
}

/// A pipe for so many pages.
fn pipe(pages: usize) -> (OwnedFd, OwnedFd) {
    let (read, write) = std::io::pipe().unwrap();
    // SAFETY: asks for room in our own pipe.
    let room = unsafe { libc::fcntl(write.as_raw_fd(), libc::F_SETPIPE_SZ, (pages * PAGE_BYTES) as i32) };
    assert!(
        room >= (pages * PAGE_BYTES) as i32,
        "{}",
        std::io::Error::last_os_error()
    );
    (read.into(), write.into())
}

fn splice_memory(write: &OwnedFd, memory: &Memory) {
    let range = libc::iovec {
        iov_base: memory.start as *mut _,
        iov_len: memory.bytes,
    };
    // SAFETY: the test's own memory, which stays mapped until the pipe was read.
    let done = unsafe { libc::vmsplice(write.as_raw_fd(), &range, 1, 0) };
    assert_eq!(done, memory.bytes as isize, "{}", std::io::Error::last_os_error());
}

fn drain(read: OwnedFd, bytes: usize) -> Vec<u8> {
    let mut got = vec![0; bytes];
    std::fs::File::from(read).read_exact(&mut got).unwrap();
    got
}

#[test]
fn what_was_spliced_into_a_pipe_arrives_as_it_was() {
    let Some(mut engine) = engine() else { return };
    if !running(&engine) {
        return;
    }
    let sent = Memory::alone(MIB);
    sent.number();
    let (read, write) = pipe(MIB / PAGE_BYTES);
    splice_memory(&write, &sent);
    reuse_frames(&mut engine, &sent);
    assert_sent(&drain(read, MIB), "vmsplice");
}

#[test]
fn what_was_spliced_and_teed_on_arrives_as_it_was() {
    let Some(mut engine) = engine() else { return };
    if !running(&engine) {
        return;
    }
    let sent = Memory::alone(MIB);
    sent.number();
    let ((read, write), (copy, copy_end), (last, last_end)) = (pipe(256), pipe(256), pipe(256));
    splice_memory(&write, &sent);
    // SAFETY: both calls only move references from pipe to pipe.
    let teed = unsafe { libc::tee(read.as_raw_fd(), copy_end.as_raw_fd(), MIB, 0) };
    let none = std::ptr::null_mut();
    // SAFETY: as above.
    let moved = unsafe { libc::splice(read.as_raw_fd(), none, last_end.as_raw_fd(), none, MIB, 0) };
    assert_eq!((teed, moved), (MIB as isize, MIB as isize));
    reuse_frames(&mut engine, &sent);
    assert_sent(&drain(copy, MIB), "tee");
    assert_sent(&drain(last, MIB), "splice");
}

/// Sets a number of a socket.
fn set_option(socket: &TcpStream, level: i32, option: i32, value: i32) {
    let bytes = size_of::<i32>() as u32;
    // SAFETY: our own socket, and a number that lives.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), bytes) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn what_was_sent_without_a_copy_arrives_as_it_was() {
    let Some(mut engine) = engine() else { return };
    if !running(&engine) {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    // The data that the receiver has no room for waits in the frames themselves.
    set_option(&receiver, libc::SOL_SOCKET, libc::SO_RCVBUF, 64 << 10);
    set_option(&sender, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, 16 * MIB as i32);
    set_option(&sender, libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1);
    let sent = Memory::alone(2 * MIB);
    sent.number();
    sender.set_nonblocking(true).unwrap();
    let mut queued = 0;
    while queued < sent.bytes {
        let at = (sent.start + queued) as *const libc::c_void;
        // SAFETY: the test's own memory, which stays mapped until all was received.
        let more = unsafe { libc::send(sender.as_raw_fd(), at, sent.bytes - queued, libc::MSG_ZEROCOPY) };
        if more <= 0 {
            break;
        }
        queued += more as usize;
    }
    assert!(queued > MIB, "{queued} bytes: {}", std::io::Error::last_os_error());
    reuse_frames(&mut engine, &sent);
    // With room for all of it the rest comes at once.
    set_option(&receiver, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 16 * MIB as i32);
    let mut got = vec![0; queued];
    receiver.read_exact(&mut got).unwrap();
    assert_sent(&got, "MSG_ZEROCOPY");
}

/// Pages that a device may write to at any time stay where they are, and the outcome reports it.
fn assert_pinned(engine: &mut Engine, memory: &Memory) {
    let done = engine
        .color_own(memory.pages(), &Wish::Set(set(&[3])), Others::Running)
        .unwrap();
    assert_eq!(
        (done.exchanged, done.left.len() + done.kept),
        (0, memory.bytes / PAGE_BYTES),
        "{done:?}"
    );
    assert!(done.left.iter().all(|left| left.why == Why::Pinned), "{done:?}");
    memory.assert_numbered();
}

/// A descriptor that a system call returned.
fn descriptor(number: i64) -> Option<OwnedFd> {
    // SAFETY: the kernel has just given it to the caller.
    (number >= 0).then(|| unsafe { OwnedFd::from_raw_fd(number as i32) })
}

#[test]
fn fixed_buffers_of_io_uring_stay_where_they_are() {
    let Some(mut engine) = engine() else { return };
    if !running(&engine) {
        return;
    }
    const REGISTER_BUFFERS: u32 = 0;
    // `struct io_uring_params`
    let mut params = [0u64; 15];
    // SAFETY: the structure has room for what the kernel writes.
    let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 4, params.as_mut_ptr()) };
    let Some(ring) = descriptor(ring) else {
        return harness::not_here(format!("io_uring: {}", std::io::Error::last_os_error()));
    };
    let memory = Memory::alone(MIB / 4);
    memory.number();
    let range = libc::iovec {
        iov_base: memory.start as *mut _,
        iov_len: memory.bytes,
    };
    // SAFETY: the test's own memory, which outlives the ring.
    let registered = unsafe {
        libc::syscall(
            libc::SYS_io_uring_register,
            ring.as_raw_fd(),
            REGISTER_BUFFERS,
            &range,
            1,
        )
    };
    assert_eq!(registered, 0, "{}", std::io::Error::last_os_error());
    assert_pinned(&mut engine, &memory);
    drop(ring);
}

#[test]
fn the_memory_of_an_express_data_path_stays_where_it_is() {
    let Some(mut engine) = engine() else { return };
    if !running(&engine) {
        return;
    }
    const SOL_XDP: i32 = 283;
    const XDP_UMEM_REG: i32 = 4;
    /// `struct xdp_umem_reg`
    #[repr(C)]
    struct Umem {
        address: u64,
        bytes: u64,
        chunk: u32,
        headroom: u32,
        flags: u32,
        metadata: u32,
    }
    // SAFETY: takes numbers alone.
    let socket = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW, 0) };
    let Some(socket) = descriptor(socket.into()) else {
        return harness::not_here(format!("AF_XDP: {}", std::io::Error::last_os_error()));
    };
    let memory = Memory::alone(MIB / 4);
    memory.number();
    let umem = Umem {
        address: memory.start as u64,
        bytes: memory.bytes as u64,
        chunk: PAGE_BYTES as u32,
        headroom: 0,
        flags: 0,
        metadata: 0,
    };
    let bytes = size_of::<Umem>() as u32;
    // SAFETY: the test's own memory, which outlives the socket.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            SOL_XDP,
            XDP_UMEM_REG,
            (&raw const umem).cast(),
            bytes,
        )
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    assert_pinned(&mut engine, &memory);
    drop(socket);
}

/// Calls `process_vm_readv` or `process_vm_writev` on one word of this process; returns its result.
fn transfer(word: &mut u64, at: usize, write: bool) -> isize {
    let vector = |at: usize| libc::iovec {
        iov_base: at as *mut _,
        iov_len: size_of::<u64>(),
    };
    let (local, remote) = (vector(word as *mut u64 as usize), vector(at));
    // SAFETY: a word of the caller's, and one of the test's own memory, which others use by atomics alone.
    unsafe {
        match write {
            true => libc::process_vm_writev(libc::getpid(), &local, 1, &remote, 1, 0),
            false => libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0),
        }
    }
}

#[test]
fn what_other_processes_calls_read_and_write_meanwhile_is_the_programs_own() {
    let Some(mut engine) = engine() else { return };
    if !running(&engine) {
        return;
    }
    let memory = Memory::alone(MIB);
    memory.number();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let words = memory.words();
            let (mut round, mut wrong) = (0u64, Vec::new());
            while !over.load(Ordering::Relaxed) || round < 1000 {
                round += 1;
                let at = (round as usize * 7919) % words.len();
                let place = memory.start + at * 8;
                let mut word = round << 32;
                // One call writes the word, the other reads it; then the old word is put back.
                let written = transfer(&mut word, place, true);
                let seen = words[at].load(Ordering::Relaxed);
                words[at].store(at as u64 * 3 + 1, Ordering::Relaxed);
                let read = transfer(&mut word, place, false);
                if (written, read, seen, word) != (8, 8, round << 32, at as u64 * 3 + 1) {
                    wrong.push((at, written, read, seen, word));
                }
            }
            wrong
        });
        let sets = [set(&[0, 1]), set(&[2, 3]), set(&[4])];
        let mut exchanged = 0;
        for chosen in sets.iter().cycle().take(60) {
            let done = engine.color_own(memory.pages(), &Wish::Set(chosen.clone()), Others::Running);
            exchanged += done.unwrap().exchanged;
        }
        over.store(true, Ordering::Relaxed);
        assert_eq!(worker.join().unwrap(), []);
        assert!(exchanged > 1000, "{exchanged}");
    });
    memory.assert_numbered();
}
