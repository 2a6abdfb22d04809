//! Policy `summary-homes` in a real process: pages of arrays that a program describes are on the nodes that the policy of the simulator
//! names. The program is this one, once more, under the run-time; it describes its loops as `libdomicile` hands them on.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::ptr::null_mut;

use live::PAGE_BYTES;
use live::protocol::{ENVIRONMENT, Homed, HomesReport, Instructions, Report, State, VERSION, read_slate};
use live::summaries::{domicile_inner, domicile_loop, domicile_summary};
use live::summary_homes::seats;
use policy::World;
use policy::cdpc::{Access, Communication, Direction, Loop, Machine, Schedule, Summary, homes};
use policy::slots::Plan;
use sys::{Root, move_pages};

use super::{SAYS, run_time, with_cpus};

const INSIDE: &str = "DOMICILE_TEST_HOMES";
/// Pages of each array, and of the table that all threads read.
const PAGES: usize = 100;
const TABLE: usize = 24;
/// Not whole pages: some lie between the parts of two threads.
const ROW: usize = 5000;
const THREADS: u32 = 4;

#[repr(C, align(4096))]
struct Static(std::cell::UnsafeCell<[u8; PAGES * PAGE_BYTES]>);

// SAFETY: one thread of one test writes to it, in a process of its own.
unsafe impl Sync for Static {}

/// Described before `main`, and touched by one thread.
static BEFORE: Static = Static(std::cell::UnsafeCell::new([0; PAGES * PAGE_BYTES]));

/// An array, where each thread has a part of the rows, or all have all.
#[derive(Clone, Copy)]
struct Array {
    start: usize,
    pages: usize,
    shared: bool,
}

impl Array {
    fn bytes(self) -> usize {
        self.pages * PAGE_BYTES
    }

    /// Iterations, bytes from one to the next, and bytes of each.
    fn dealt(self) -> (u64, i64, u64) {
        match self.shared {
            true => (THREADS.into(), 0, self.bytes() as u64),
            // The last one ends beyond the array.
            false => (self.bytes().div_ceil(ROW) as u64, ROW as i64, ROW as u64),
        }
    }

    /// As the program says it.
    fn describe(self, place: &std::ffi::CStr) {
        // SAFETY: a search for a name that ends in a zero.
        let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"domicile_run_parallel_loop".as_ptr()) };
        assert!(!function.is_null(), "the run-time is not there");
        // SAFETY: the run-time defines the function of this name so.
        let hear =
            unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn(*const domicile_loop)>(function) };
        let (iterations, unit, span) = self.dealt();
        let name: *const c_char = c"array".as_ptr();
        let summary = domicile_summary {
            name,
            start: std::ptr::with_exposed_provenance(self.start),
            bytes: self.bytes() as u64,
            offset: 0,
            unit,
            span,
            inner: [domicile_inner::default(); 3],
            distance: 0,
            communication: 0,
            access: 3,
        };
        let described = domicile_loop {
            version: live::summaries::VERSION,
            count: 1,
            place: place.as_ptr(),
            iterations,
            chunk: 0,
            schedule: 0,
            reverse: 0,
            threads: THREADS,
            reserved: 0,
            summaries: &raw const summary,
        };
        // SAFETY: one summary of an array of ours, and texts that end in zeros.
        unsafe { hear(&raw const described) };
    }

    /// As the simulator has it.
    fn known(self, place: &str) -> Loop {
        let (iterations, unit, span) = self.dealt();
        Loop {
            place: place.to_string(),
            threads: THREADS,
            iterations,
            schedule: Schedule::Even,
            direction: Direction::Forward,
            summaries: vec![Summary {
                name: "array".to_string(),
                start: self.start as u64,
                bytes: self.bytes() as u64,
                offset: 0,
                unit,
                span,
                inner: Vec::new(),
                communication: Communication::None,
                access: Access::ReadWrite,
            }],
        }
    }

    fn touch(self) {
        for page in 0..self.pages {
            let byte = std::ptr::with_exposed_provenance_mut::<u8>(self.start + page * PAGE_BYTES);
            // SAFETY: within memory of ours that nobody else uses.
            unsafe { byte.write_volatile(page as u8) };
        }
    }

    /// The node of each page, as the kernel says, and that it still holds what was written.
    fn nodes(self) -> Vec<u32> {
        let pages: Vec<usize> = (0..self.pages).map(|page| self.start + page * PAGE_BYTES).collect();
        for (page, &address) in pages.iter().enumerate() {
            // SAFETY: as in `touch`.
            let byte = unsafe { std::ptr::with_exposed_provenance::<u8>(address).read_volatile() };
            assert_eq!(byte, page as u8);
        }
        let nodes = move_pages::nodes_of(None, &pages).unwrap();
        nodes.into_iter().map(Result::unwrap).collect()
    }
}

fn before() -> Array {
    Array {
        start: BEFORE.0.get().expose_provenance(),
        pages: PAGES,
        shared: false,
    }
}

fn mapped(pages: usize, shared: bool) -> Array {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let how = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, at addresses that the kernel chooses; it is there until the process ends.
    let start = unsafe { libc::mmap(null_mut(), pages * PAGE_BYTES, rights, how, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED);
    Array {
        start: start.expose_provenance(),
        pages,
        shared,
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

/// As a constructor that a compiler wrote.
extern "C" fn at_start() {
    if std::env::var_os(INSIDE).is_some() {
        before().describe(c"before main");
    }
}

/// What the child does; in the parent this test is nothing.
#[test]
fn inside() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    // One thread fills all arrays: under first touch they would be on its node.
    let (late, there, table) = (mapped(PAGES, false), mapped(PAGES, false), mapped(TABLE, true));
    there.touch();
    late.describe(c"late");
    there.describe(c"there");
    table.describe(c"table");
    for array in [before(), late, table] {
        array.touch();
    }
    for (name, array) in [
        ("before main", before()),
        ("late", late),
        ("there", there),
        ("table", table),
    ] {
        let nodes: Vec<String> = array.nodes().iter().map(u32::to_string).collect();
        println!("{SAYS}{name}:{}:{}", array.start, nodes.join(" "));
    }
}

/// What the child said of each array, and the run-time of its work.
fn run() -> (BTreeMap<String, (Array, Vec<u32>)>, Report) {
    let program = std::env::current_exe().unwrap().canonicalize().unwrap();
    let file = program.metadata().unwrap();
    let folder = tempfile();
    let slate = folder.join("reports");
    std::fs::create_dir(&slate).unwrap();
    let nodes = sys::nodes::nodes(&Root::default()).unwrap();
    let instructions = Instructions {
        version: VERSION,
        program: program.clone(),
        program_file: (file.dev(), file.ino()),
        preload_before: None,
        children: false,
        slate: slate.clone(),
        colors: None,
        plan: Plan::default(),
        modules: Vec::new(),
        targets: Vec::new(),
        passed: Vec::new(),
        directed: None,
        homed: Some(Homed {
            policy: "summary-homes".parse().unwrap(),
            seats: seats(&nodes, &sys::affinity::allowed(None).unwrap()),
        }),
    };
    let path = folder.join("instructions");
    instructions.write(&path).unwrap();
    let mut child = Command::new(program)
        .args(["--exact", "homes::inside", "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .env("LD_PRELOAD", run_time())
        .env(ENVIRONMENT, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BTreeMap::new();
    let mut from = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while from.read_line(&mut line).unwrap() > 0 {
        if let Some((_, words)) = line.trim_end().split_once(SAYS) {
            let parts: Vec<&str> = words.split(':').collect();
            let nodes: Vec<u32> = parts[2].split(' ').map(|node| node.parse().unwrap()).collect();
            let array = Array {
                start: parts[1].parse().unwrap(),
                pages: nodes.len(),
                shared: parts[0] == "table",
            };
            said.insert(parts[0].to_string(), (array, nodes));
        }
        line.clear();
    }
    from.read_to_string(&mut line).unwrap();
    assert!(child.wait().unwrap().success());
    let report = std::fs::read_dir(&slate).unwrap().next().unwrap().unwrap().path();
    let report = read_slate(&report).unwrap().unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    (said, report)
}

fn tempfile() -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("domicile-homes-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    folder
}

/// The kernel's own balancing is no matter here: it leaves pages alone whose node is wished for.
#[test]
fn pages_are_on_the_nodes_that_the_policy_of_the_simulator_names() {
    let nodes = with_cpus();
    let (said, report) = run();
    let names: Vec<&str> = said.keys().map(String::as_str).collect();
    assert_eq!(names, ["before main", "late", "table", "there"]);
    let report = of_homes(&report);
    assert_eq!(
        (report.loops, report.arrays, report.threads, report.refused),
        (4, 4, 4, 0)
    );
    assert_eq!(report.left_out, [], "{report:?}");
    let all = (3 * PAGES + TABLE) as u64;
    assert_eq!(
        (report.pages, report.start.pages, report.later.pages),
        (all, 100, all - 100)
    );
    // The memory that the test mapped is there to the end.
    assert_eq!(report.at_home, all, "{report:?}");
    if nodes.len() < 2 {
        return harness::not_here("the machine has one memory node: pages have no other to be on");
    }
    if nodes.len() < THREADS as usize || nodes.iter().any(|node| node.cpus.len() != 1) {
        return harness::not_here("the machine has not four nodes of a cpu each, as the guest has");
    }
    // As the simulator has nodes, and hands on what the summaries of a trace say.
    let count = nodes.len() as u32;
    let world = World {
        page_bytes: PAGE_BYTES as u64,
        colors: 1,
        cpus: count,
        nodes: count,
        cpu_nodes: count,
        free_frames: vec![u64::MAX; nodes.len()],
        now_ns: 0,
        caches: None,
        domains: None,
        runnable: Vec::new(),
    };
    let machine = Machine {
        page_bytes: world.page_bytes,
        colors: 1,
        cpus: world.cpus,
        fit: false,
    };
    let loops: Vec<Loop> = said.iter().map(|(name, (array, _))| array.known(name)).collect();
    let decided = homes(&loops, &machine, |cpu| world.node_of(cpu)).unwrap();
    let node_of = |page: u64| decided.iter().find(|home| home.pages.contains(&page)).unwrap().node;
    for (name, (array, now)) in &said {
        let first = (array.start / PAGE_BYTES) as u64;
        let expected: Vec<u32> = (first..).take(array.pages).map(node_of).collect();
        assert_eq!(now, &expected, "{name}");
        // Each node has its part, whatever the policy says.
        for node in 0..THREADS {
            let pages = now.iter().filter(|at| **at == node).count();
            assert!(
                (array.pages / 4 - 2..=array.pages / 4 + 2).contains(&pages),
                "{name}: {now:?}"
            );
        }
    }
    // Of what one thread had filled, the parts of three nodes moved.
    assert!(report.later.moved >= PAGES as u64 / 2, "{report:?}");
}

fn of_homes(report: &Report) -> &HomesReport {
    assert_eq!(report.state, State::Ended, "{report:?}");
    report.homes.as_ref().unwrap()
}
