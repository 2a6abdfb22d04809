//! Replicated data shared by real processes, on whatever machine this is: a second copy on the same node is a replica, too.

use std::os::fd::{AsFd, AsRawFd};
use std::process::{Child, Command};
use std::sync::atomic::Ordering::SeqCst;

use replicas::{Error, Mode, SharedReplicas};
use sys::memory::PAGE;
use sys::shared_pages::{SharedPages, SharedWords};

const WORDS: usize = 1_500;
/// The words that processes agree by; see `sharer`.
const RETURNED: usize = 0;
const OVER: usize = 1;
const ATTACHED: usize = 2;

struct Shared {
    data: SharedReplicas,
    pages: SharedPages,
    words: SharedWords,
}

impl Shared {
    /// A master and two replicas on one node, where that may be asked for.
    fn new() -> Shared {
        let node = sys::nodes::nodes(&sys::Root::default()).map_or(0, |nodes| nodes[0].number);
        let pages = SharedPages::create("domicile-test", PAGE).unwrap();
        Shared {
            data: SharedReplicas::create_on(&[0; WORDS * 8], &[node; 3]).unwrap(),
            words: SharedWords::open(&pages, PAGE).unwrap(),
            pages,
        }
    }

    fn start(&self, what: &[&str]) -> Child {
        let descriptors = [self.data.descriptor(), self.pages.descriptor()];
        let [data, words] = descriptors.map(|one| one.as_raw_fd().to_string());
        let mut command = Command::new(env!("CARGO_BIN_EXE_replicas-sharer"));
        command
            .args([&std::process::id().to_string(), &data, &words])
            .args(what);
        command.spawn().unwrap()
    }

    fn wait_for(&self, attached: u32) {
        while self.words.word(ATTACHED).load(SeqCst) < attached {
            std::thread::yield_now();
        }
    }

    fn number(&self, at: usize) -> u64 {
        assert!(at < WORDS);
        // SAFETY: within the data, which is mapped.
        unsafe { self.data.start().cast::<u64>().add(at).read_volatile() }
    }

    fn end(&self, children: Vec<Child>) {
        self.words.word(OVER).store(1, SeqCst);
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
    }
}

/// A test that fails leaves nobody behind.
impl Drop for Shared {
    fn drop(&mut self) {
        self.words.word(OVER).store(1, SeqCst);
    }
}

#[test]
fn no_stale_read_and_no_write_lost_between_processes() {
    // A reader may see a part of a write, byte by byte: between 255 and 256 that is 0. So one byte counts.
    const WRITES: u64 = 127;
    const { assert!(2 * WRITES <= u8::MAX as u64) };
    let shared = Shared::new();
    let mut others: Vec<Child> = ["read", "read", "spread"].map(|what| shared.start(&[what])).into();
    let writes = WRITES.to_string();
    let writers: Vec<Child> = (0..2).map(|_| shared.start(&["write", &writes])).collect();
    shared.wait_for(5);
    for turn in 0..30u64 {
        // One more that reads, or makes and frees replicas, ends at any moment, also with the lock.
        let mut victim = shared.start(&[if turn % 2 == 0 { "read" } else { "spread" }]);
        if turn % 3 > 0 {
            shared.wait_for(6 + turn as u32);
        }
        std::thread::sleep(std::time::Duration::from_micros(turn * 211 % 3000));
        victim.kill().unwrap();
        // Nobody has waited for it yet: writers must not wait for it all the same.
        shared.data.collapse().unwrap();
        victim.wait().unwrap();
        let before = shared.words.word(ATTACHED).load(SeqCst);
        shared.words.word(ATTACHED).fetch_max(6 + turn as u32, SeqCst);
        assert!(before >= 5);
        others.retain_mut(|child| match child.try_wait().unwrap() {
            None => true,
            Some(status) => panic!("one who reads or spreads ended: {status}"),
        });
    }
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    shared.end(others);
    assert!(
        (0..WORDS).all(|at| shared.number(at) == 2 * WRITES),
        "{}",
        shared.number(0)
    );
    assert_eq!(u64::from(shared.words.word(RETURNED).load(SeqCst)), 2 * WRITES);
    assert_eq!(shared.data.state().unwrap().writes, 2 * WRITES);
}

#[test]
fn replicas_come_and_go_and_cost_what_is_said() {
    let shared = Shared::new();
    let state = shared.data.state().unwrap();
    if state.copies.len() == 1 {
        return harness::not_here(format_args!("no replica may be put on a node: {state}"));
    }
    assert_eq!(
        (state.mode, state.copies.len(), state.bytes),
        (Mode::CopyOnEachNode, 3, 12_000)
    );
    assert_eq!((state.memory(), state.extra()), (3 * 12_288, 2 * 12_288));
    let resident = || {
        let file = shared.data.as_fd().try_clone_to_owned().unwrap();
        std::os::unix::fs::MetadataExt::blocks(&std::fs::File::from(file).metadata().unwrap()) * 512
    };
    let all = resident();
    shared.data.write(8, &[9; 8]).unwrap();
    assert_eq!([shared.number(0), shared.number(1)], [0, u64::from_ne_bytes([9; 8])]);
    let state = shared.data.state().unwrap();
    assert_eq!(
        (state.mode, state.extra(), state.writes),
        (Mode::OneCopy, 0, 1),
        "{state}"
    );
    assert_eq!(all - resident(), 2 * 12_288, "a write frees the replicas");
    shared.data.replicate().unwrap();
    assert_eq!((resident(), shared.number(1)), (all, u64::from_ne_bytes([9; 8])));
    let beyond = shared.data.write(12_000, &[1]).unwrap_err();
    assert!(matches!(beyond, Error::Beyond { .. }), "{beyond}");
    shared.data.collapse().unwrap();
    assert_eq!(shared.data.state().unwrap().copies.len(), 1);
}

/// Its number stays, and what it had mapped goes.
#[test]
fn a_process_that_becomes_another_program_keeps_nobody_waiting() {
    let shared = Shared::new();
    let mut child = shared.start(&["exec"]);
    shared.wait_for(1);
    for number in 1..20u64 {
        shared.data.write(0, &number.to_ne_bytes()).unwrap();
        shared.data.replicate().unwrap();
    }
    assert_eq!(shared.number(0), 19);
    assert!(child.try_wait().unwrap().is_none(), "it is there all the time");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// It is not attached, so it must not be able to read a replica that nobody tells it to leave.
#[test]
fn a_child_of_fork_cannot_read_and_does_not_write() {
    let shared = Shared::new();
    for reads in [false, true] {
        // SAFETY: the child calls what takes no lock and no memory, and ends by `_exit`.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            if reads {
                shared.number(0);
            }
            let refused = matches!(shared.data.write(0, &[1]), Err(Error::Forked))
                && matches!(shared.data.state(), Err(Error::Forked));
            // SAFETY: as above.
            unsafe { libc::_exit(i32::from(!refused)) }
        }
        let mut status = 0;
        // SAFETY: the child is ours, and the status lives.
        assert_eq!(child, unsafe { libc::waitpid(child, &raw mut status, 0) });
        match reads {
            true => assert!(
                libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV,
                "{status}"
            ),
            false => assert_eq!(status, 0),
        }
    }
    shared.data.write(0, &[1]).unwrap();
}

#[test]
fn what_cannot_be_attached_to_is_refused() {
    let shared = Shared::new();
    let again = SharedReplicas::attach(shared.data.descriptor().try_clone_to_owned().unwrap());
    assert!(matches!(again, Err(Error::Occupied { .. })));
    for bytes in [PAGE, 16 * PAGE] {
        let other = SharedPages::create("domicile-test", bytes).unwrap();
        let refused = SharedReplicas::attach(other.descriptor().try_clone_to_owned().unwrap());
        assert!(matches!(refused, Err(Error::Foreign(_))));
    }
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    assert!(matches!(SharedReplicas::attach(file.into()), Err(Error::Foreign(_))));
    assert!(matches!(SharedReplicas::create(&[]), Err(Error::Empty)));
    shared.data.write(0, &[1]).unwrap();
    let descriptor = shared.data.descriptor().try_clone_to_owned().unwrap();
    let start = shared.data.start();
    drop(shared);
    let again = SharedReplicas::attach(descriptor).unwrap();
    assert_eq!(again.start(), start, "the same address, once it is free");
    // SAFETY: the data is mapped.
    assert_eq!(unsafe { again.start().as_ptr().read_volatile() }, 1);
}

#[test]
fn a_write_within_a_write_is_refused() {
    let shared = Shared::new();
    let data = &shared.data;
    data.update(|bytes| {
        for refused in [
            data.write(0, &[9]),
            data.update(|_| ()),
            data.collapse(),
            data.replicate(),
        ] {
            assert!(matches!(refused, Err(Error::Writing)), "{refused:?}");
        }
        data.state().unwrap();
        bytes[1] = 3;
    })
    .unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| data.update(|_| panic!("on purpose"))));
    assert!(panicked.is_err());
    data.write(0, &[7]).unwrap();
    // SAFETY: the data is mapped, and has that many bytes.
    assert_eq!(unsafe { data.start().cast::<[u8; 2]>().read_volatile() }, [7, 3]);
}
