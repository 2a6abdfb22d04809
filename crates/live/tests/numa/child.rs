//! The process that is watched: this test program once more, which obeys commands on its standard input.
//!
//! Each word is answered by a line that begins with [`SAYS`]; output of the test harness is skipped.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use sys::move_pages::{move_to, nodes_of};

pub const PAGE: usize = 4096;
const INSIDE: &str = "DOMICILE_TEST_NUMA";
const SAYS: &str = "numa: ";

/// A process under way.
pub struct Program {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Program {
    pub fn start() -> Program {
        Program::start_by(Command::new(std::env::current_exe().unwrap()))
    }

    pub fn start_by(mut command: Command) -> Program {
        let mut process = command
            .args(["--exact", "child::inside", "--nocapture", "--test-threads=1"])
            .env(INSIDE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = process.stdin.take().unwrap();
        let from = BufReader::new(process.stdout.take().unwrap());
        Program { process, to, from }
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Says a word and waits for the answer.
    pub fn say(&mut self, word: &str) -> String {
        writeln!(self.to, "{word}").unwrap();
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "no answer to {word:?}");
            // The harness may have begun the line.
            if let Some((_, answer)) = line.trim_end().split_once(SAYS) {
                assert!(!answer.starts_with("cannot"), "{word}: {answer}");
                return answer.to_string();
            }
        }
    }

    /// Maps so many pages and touches them on a cpu; the address.
    pub fn map(&mut self, cpu: u32, pages: usize) -> usize {
        self.say(&format!("map {cpu} {pages}")).parse().unwrap()
    }

    /// From now on uses all that is mapped, on a cpu.
    pub fn use_on(&mut self, cpu: u32) {
        self.say(&format!("use {cpu}"));
    }

    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Memory of the child, by address and pages.
type Mapped = Arc<Mutex<Vec<(usize, usize)>>>;

/// The child's part; in the parent this test does nothing.
#[test]
fn inside() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let mapped = Mapped::default();
    let mut workers: Vec<Arc<AtomicBool>> = Vec::new();
    let mut churned: Option<Arc<AtomicU64>> = None;
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let mut words = line.split(' ');
        let word = words.next().unwrap();
        let numbers: Vec<usize> = words.map(|word| word.parse().unwrap()).collect();
        let answer = match (word, numbers.as_slice()) {
            ("map", &[cpu, pages]) => map(&mapped, cpu, pages).to_string(),
            ("use", &[cpu]) => {
                workers
                    .drain(..)
                    .for_each(|worker| worker.store(false, Ordering::Relaxed));
                workers.push(work(&mapped, cpu));
                "uses".to_string()
            }
            ("read", &[cpu]) => {
                read(&mapped, cpu);
                "reads".to_string()
            }
            ("also", &[cpu]) => {
                workers.push(work(&mapped, cpu));
                "uses".to_string()
            }
            ("only", &[cpu]) => {
                let last = mapped.lock().unwrap().pop().into_iter().collect();
                workers.push(work(&Arc::new(Mutex::new(last)), cpu));
                "uses the last".to_string()
            }
            ("spin", &[cpu]) => {
                workers.push(work(&Mapped::default(), cpu));
                "spins".to_string()
            }
            ("churn", &[cpu]) => {
                let turns = Arc::new(AtomicU64::new(0));
                churned = Some(turns.clone());
                churn(cpu, turns);
                "churns".to_string()
            }
            ("churned", &[]) => {
                let turns = churned.as_ref().map_or(0, |turns| turns.load(Ordering::Relaxed));
                turns.to_string()
            }
            ("stride", &[pages]) => stride(pages),
            ("bind", &[node]) => bind(&mapped, node),
            ("fill", &[node, spare]) => fill(node, spare),
            ("unmap", &[pages]) => unmap(&mapped, pages),
            ("fork", &[]) => fork(),
            _ => format!("cannot {line}"),
        };
        println!("{SAYS}{answer}");
        std::io::stdout().flush().unwrap();
    }
}

/// Has a thread run on one cpu; 0 is the calling one.
pub fn pin(thread: u32, cpu: u32) {
    let cpu = cpu as usize;
    // SAFETY: a set of cpus is numbers, all of which may be zero; the call reads it and says where a thread may run.
    let pinned = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(thread as libc::pid_t, size_of_val(&set), &raw const set)
    };
    assert_eq!(pinned, 0, "cpu {cpu}");
}

fn map(mapped: &Mapped, cpu: usize, pages: usize) -> usize {
    pin(0, cpu as u32);
    let (all, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: new memory, wherever the kernel has room, and small pages in it: each has a node of its own. A page on either
    // side that nobody may touch keeps it a mapping by itself.
    let start = unsafe {
        let around = libc::mmap(std::ptr::null_mut(), (pages + 2) * PAGE, libc::PROT_NONE, kind, -1, 0);
        assert_ne!(around, libc::MAP_FAILED);
        let start = around.byte_add(PAGE);
        assert_eq!(libc::mprotect(start, pages * PAGE, all), 0);
        libc::madvise(start, pages * PAGE, libc::MADV_NOHUGEPAGE);
        start as usize
    };
    (0..pages).for_each(|page| write(start + page * PAGE));
    mapped.lock().unwrap().push((start, pages));
    start
}

fn write(address: usize) {
    let word = address as *mut u64;
    // SAFETY: an aligned word of memory that was mapped here; only one thread at a time writes, under the lock.
    unsafe { word.write_volatile(word.read_volatile().wrapping_add(1)) };
}

/// Writes to each page again and again.
fn work(mapped: &Mapped, cpu: usize) -> Arc<AtomicBool> {
    let goes_on = Arc::new(AtomicBool::new(true));
    let (mapped, on) = (mapped.clone(), goes_on.clone());
    let (started, starts) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        pin(0, cpu as u32);
        started.send(()).unwrap();
        while on.load(Ordering::Relaxed) {
            let mapped = mapped.lock().unwrap();
            for &(start, pages) in mapped.iter() {
                (0..pages).for_each(|page| write(start + page * PAGE));
            }
            drop(mapped);
            // Others may have the lock.
            std::thread::yield_now();
        }
    });
    starts.recv().unwrap();
    goes_on
}

/// Reads a word of each page again and again, and writes none.
fn read(mapped: &Mapped, cpu: usize) {
    let mapped = mapped.lock().unwrap().clone();
    std::thread::spawn(move || {
        pin(0, cpu as u32);
        loop {
            for page in mapped
                .iter()
                .flat_map(|&(start, pages)| (0..pages).map(move |page| start + page * PAGE))
            {
                // SAFETY: an aligned word of memory that was mapped here and stays.
                unsafe { (page as *const u64).read_volatile() };
            }
            std::thread::yield_now();
        }
    });
}

/// Maps, writes, forks, checks the written data, and unmaps, again and again; each turn is counted.
fn churn(cpu: usize, turns: Arc<AtomicU64>) {
    const PAGES: usize = 64;
    std::thread::spawn(move || {
        pin(0, cpu as u32);
        loop {
            let area = sys::memory::Area::map(PAGES * PAGE, sys::memory::Size::Small).unwrap();
            let turn = turns.load(Ordering::Relaxed);
            (0..PAGES).for_each(|page| area.set_word(page, 0, turn + page as u64));
            // SAFETY: the child ends at once.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: as above.
                unsafe { libc::_exit(0) };
            }
            // SAFETY: the child is ours.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            if (0..PAGES).any(|page| area.word(page, 0) != turn + page as u64) {
                // Something was lost.
                std::process::abort();
            }
            turns.store(turn + 1, Ordering::Relaxed);
        }
    });
}

/// Writes to so many pages again and again, in a thread that runs wherever the kernel takes it.
fn stride(pages: usize) -> String {
    // The kernel does not invalidate so many translations one by one: it flushes all of the
    // process.
    const FLUSHED: usize = 64;
    let small = |pages: usize| sys::memory::Area::map(pages * PAGE, sys::memory::Size::Small).unwrap();
    std::thread::spawn(move || {
        let area = small(pages);
        for turn in 0.. {
            (0..pages).for_each(|page| area.set_word(page, 0, turn));
            // The kernel sees a page touched again only if its translation was dropped in between. An emulated TLB is so large
            // that it keeps all of them.
            let gone = small(FLUSHED);
            (0..FLUSHED).for_each(|page| gone.set_word(page, 0, turn));
        }
    });
    "strides".to_string()
}

/// Takes all memory that a node has for pages that are moved there, but for the spare pages, and does not use it. `MemFree` does not tell
/// how much that is: a cpu may keep an eighth of its node for itself, and gives it back in its own time. So pages are moved there until one
/// is refused; a process that is bound to a full node would be killed.
fn fill(node: usize, spare: usize) -> String {
    const BATCH: usize = 256;
    let mut held = Vec::new();
    let mut full = false;
    while !full {
        // SAFETY: new memory, wherever the kernel has room.
        let start = unsafe {
            let (all, kind) = (
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            );
            let start = libc::mmap(std::ptr::null_mut(), BATCH * PAGE, all, kind, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            libc::madvise(start, BATCH * PAGE, libc::MADV_NOHUGEPAGE);
            start as usize
        };
        let pages: Vec<usize> = (0..BATCH).map(|page| start + page * PAGE).collect();
        pages.iter().for_each(|page| write(*page));
        // If a call is refused as a whole, its first pages may have moved.
        full = move_to(None, &pages, &[node as u32; BATCH]).is_err();
        for (page, on) in pages.iter().zip(nodes_of(None, &pages).unwrap()) {
            if on == Ok(node as u32) {
                held.push(*page);
            } else {
                full = true;
                give_back(*page);
            }
        }
    }
    held.drain(held.len().saturating_sub(spare)..).for_each(give_back);
    format!("{} pages", held.len())
}

fn give_back(page: usize) {
    // SAFETY: the page is one of `fill`, which has no reference to it.
    assert_eq!(unsafe { libc::munmap(page as *mut libc::c_void, PAGE) }, 0);
}

fn bind(mapped: &Mapped, node: usize) -> String {
    let (start, pages) = mapped.lock().unwrap()[0];
    bind_memory(start, pages, node)
}

fn bind_memory(start: usize, pages: usize, node: usize) -> String {
    const BIND: libc::c_int = 2;
    let mask = [1u64 << node];
    // SAFETY: says something of memory that was mapped here and changes nothing in it; the mask lives and has 64 bits.
    let bound = unsafe { libc::syscall(libc::SYS_mbind, start, pages * PAGE, BIND, mask.as_ptr(), 64, 0) };
    match bound {
        0 => "bound".to_string(),
        _ => format!("cannot bind: {}", std::io::Error::last_os_error()),
    }
}

/// The last pages of the first mapping go.
fn unmap(mapped: &Mapped, pages: usize) -> String {
    let mut mapped = mapped.lock().unwrap();
    let (start, all) = mapped[0];
    mapped[0].1 = all - pages;
    // SAFETY: memory that was mapped here and that nobody touches any more: what is used is looked up under the lock.
    let unmapped = unsafe { libc::munmap((start + (all - pages) * PAGE) as *mut _, pages * PAGE) };
    assert_eq!(unmapped, 0);
    "unmapped".to_string()
}

/// A copy of this process that has all its pages, too, and does nothing.
fn fork() -> String {
    // SAFETY: the child calls nothing but what is async-signal-safe.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above; it ends with its parent's input, which is this process's too, or by the alarm.
        unsafe {
            libc::alarm(120);
            loop {
                libc::pause();
            }
        }
    }
    child.to_string()
}
