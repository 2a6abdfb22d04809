//! Pages that follow their users on a machine with several nodes, and processes paired with its caches ([`four_caches`]): on a
//! real machine, or in a guest.
//!
//! The kernel reports the nodes of pages in two ways, `move_pages(2)` and `/proc/PID/numa_maps`. The pages that a
//! process touches are known from the test itself, which has the process do so, or from the kernel's sources of
//! information.

mod child;
mod four_caches;
mod group;
mod limits;
/// The processor that QEMU emulates has protection keys, even if this one has none.
#[path = "../following.rs"]
mod protection_keys;

use std::collections::HashMap;
use std::io::{BufReader, BufWriter};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use child::{PAGE, Program};
use live::homes::sources::{Choice, Lost, Scale, Source, Touched};
use live::homes::{Config, Here, Host, Layout, Log, Whom, prepare, replay};
use results::LiveHomes;
use sys::memory::Span;
use sys::{Root, move_pages, numa_maps};

const PAGES: usize = 400;
const INTERVAL: Duration = Duration::from_millis(200);

/// One test at a time: cpus are few, and there is one DAMON.
static ALONE: Mutex<()> = Mutex::new(());

/// Two nodes with cpus, and a cpu of each.
struct Machine {
    nodes: [u32; 2],
    cpus: [u32; 2],
    _still: Still,
    _alone: MutexGuard<'static, ()>,
}

/// The kernel's own balancing, which would move the same pages, is off until this is dropped.
struct Still(Option<String>);

const BALANCING: &str = "/proc/sys/kernel/numa_balancing";

impl Still {
    fn new() -> std::io::Result<Still> {
        match std::fs::read_to_string(BALANCING) {
            Ok(before) if before.trim() != "0" => {
                std::fs::write(BALANCING, "0")?;
                Ok(Still(Some(before)))
            }
            _ => Ok(Still(None)),
        }
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = std::fs::write(BALANCING, before);
        }
    }
}

impl Machine {
    fn new() -> Option<Machine> {
        let alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let nodes = sys::nodes::nodes(&Root::default()).unwrap_or_default();
        let with_cpus: Vec<_> = nodes
            .iter()
            .filter(|node| !node.cpus.is_empty() && node.memory_bytes.is_some_and(|bytes| bytes > 0))
            .collect();
        let [first, second, ..] = with_cpus.as_slice() else {
            harness::not_here("the machine has one memory node");
            return None;
        };
        let still = match Still::new() {
            Ok(still) => still,
            Err(error) => {
                harness::not_allowed(format_args!(
                    "the kernel's own balancing cannot be switched off: {error}"
                ));
                return None;
            }
        };
        Some(Machine {
            nodes: [first.number, second.number],
            cpus: [first.cpus[0], second.cpus[0]],
            _still: still,
            _alone: alone,
        })
    }
}

/// Says that a process touches some memory all the time.
struct Told(HashMap<u32, Vec<Span>>);

impl Source for Told {
    fn name(&self) -> &'static str {
        "told"
    }
    fn counts(&self) -> String {
        "the test's word".to_string()
    }
    fn scale(&self) -> Scale {
        Scale::Looks(10)
    }
    fn begin(&mut self, _process: u32) -> Result<(), Lost> {
        Ok(())
    }
    fn look(&mut self, process: u32) -> Result<Vec<Touched>, Lost> {
        let spans = self.0.get(&process).ok_or(Lost::Gone)?;
        let touched = |&span: &Span| Touched {
            span,
            counts: 10,
            by: None,
            write: None,
        };
        Ok(spans.iter().map(touched).collect())
    }
    fn end(&mut self, _process: u32) {}
}

fn config() -> Config {
    Config {
        interval: INTERVAL,
        ..Config::new("migrate".parse().unwrap())
    }
}

/// A host whose source reports touches of the pages of a program at an address.
fn told(program: &Program, start: usize, pages: usize) -> Host<Here> {
    let spans = [(program.id(), vec![Span::new(start, pages * PAGE)])].into();
    let choice = Choice {
        source: Box::new(Told(spans)),
        others: Vec::new(),
    };
    let layout = Layout::read(&Root::default(), false).unwrap();
    let whom = Whom::Processes(vec![program.id()]);
    Host::new(Here::default(), layout, choice, config(), whom, Log::new(None)).unwrap()
}

/// Pages of a program on a node, as `move_pages` says.
fn on_node(program: &Program, start: usize, pages: usize, node: u32) -> usize {
    let addresses: Vec<usize> = (0..pages).map(|page| start + page * PAGE).collect();
    let nodes = move_pages::nodes_of(Some(program.id()), &addresses).unwrap();
    nodes.into_iter().filter(|at| *at == Ok(node)).count()
}

/// The same as `numa_maps` says, of the mapping that begins there.
fn mapped_on_node(program: &Program, start: usize, node: u32) -> u64 {
    let maps = numa_maps::of(&Root::default(), program.id()).unwrap();
    let mapping = maps.iter().find(|mapping| mapping.start == start).unwrap();
    mapping
        .pages
        .iter()
        .filter(|(at, _)| *at == node)
        .map(|(_, pages)| pages)
        .sum()
}

/// Runs intervals, so many at most, until the condition holds.
fn until(mut host: Host<Here>, most: usize, mut wanted: impl FnMut() -> bool) -> Host<Here> {
    for _ in 0..most {
        let goes_on = host.interval(&mut || false).unwrap();
        if wanted() {
            return host;
        }
        assert!(goes_on, "nobody is left: {:#?}", host.report());
    }
    panic!("not so after {most} intervals: {:#?}", host.report());
}

fn failed(report: &LiveHomes, part: &str) -> u64 {
    let of = report.moves.failed.iter().filter(|failed| failed.why.contains(part));
    of.map(|failed| failed.pages).sum()
}

#[test]
fn pages_follow_a_program_to_another_node_and_back() {
    let Some(machine) = Machine::new() else { return };
    let mut program = Program::start();
    let start = program.map(machine.cpus[0], PAGES);
    assert_eq!(on_node(&program, start, PAGES, machine.nodes[0]), PAGES);
    program.use_on(machine.cpus[1]);
    let mut host = told(&program, start, PAGES);
    host = until(host, 20, || on_node(&program, start, PAGES, machine.nodes[1]) == PAGES);
    assert_eq!(mapped_on_node(&program, start, machine.nodes[1]), PAGES as u64);
    program.use_on(machine.cpus[0]);
    host = until(host, 20, || on_node(&program, start, PAGES, machine.nodes[0]) == PAGES);
    assert_eq!(mapped_on_node(&program, start, machine.nodes[0]), PAGES as u64);
    let report = host.report().unwrap();
    assert_eq!(report.moves.moved, 2 * PAGES as u64, "{report:?}");
    assert_eq!(report.moves.failed, []);
}

#[test]
fn pages_that_threads_of_two_nodes_use_stay() {
    let Some(machine) = Machine::new() else { return };
    let mut program = Program::start();
    let start = program.map(machine.cpus[0], PAGES);
    program.use_on(machine.cpus[0]);
    program.say(&format!("also {}", machine.cpus[1]));
    let mut host = told(&program, start, PAGES);
    for _ in 0..5 {
        host.interval(&mut || false).unwrap();
    }
    let report = host.report().unwrap();
    assert_eq!(on_node(&program, start, PAGES, machine.nodes[0]), PAGES);
    assert!(report.samples.shared > 0, "{report:?}");
}

#[test]
fn memory_that_the_program_bound_stays_where_it_is() {
    let Some(machine) = Machine::new() else { return };
    let mut program = Program::start();
    let start = program.map(machine.cpus[0], PAGES);
    program.say(&format!("bind {}", machine.nodes[0]));
    program.use_on(machine.cpus[1]);
    let mut host = told(&program, start, PAGES);
    for _ in 0..3 {
        host.interval(&mut || false).unwrap();
    }
    let report = host.report().unwrap();
    assert_eq!(on_node(&program, start, PAGES, machine.nodes[0]), PAGES);
    assert!(failed(&report, "numactl") >= PAGES as u64, "{report:?}");
}

#[test]
fn a_program_that_unmaps_in_the_middle_keeps_the_rest_near() {
    let Some(machine) = Machine::new() else { return };
    let mut program = Program::start();
    let start = program.map(machine.cpus[0], PAGES);
    program.use_on(machine.cpus[1]);
    let mut host = told(&program, start, PAGES);
    program.say("unmap 150");
    host = until(host, 20, || {
        on_node(&program, start, PAGES - 150, machine.nodes[1]) == PAGES - 150
    });
    let report = host.report().unwrap();
    assert_eq!(report.moves.moved, PAGES as u64 - 150, "{report:?}");
}

#[test]
fn a_program_that_forks_shares_its_pages_which_stay() {
    let Some(machine) = Machine::new() else { return };
    let mut program = Program::start();
    let start = program.map(machine.cpus[0], PAGES);
    let copy: i32 = program.say("fork").parse().unwrap();
    // It runs and writes nothing: the pages stay both processes'.
    program.say(&format!("spin {}", machine.cpus[1]));
    let mut host = told(&program, start, PAGES);
    for _ in 0..3 {
        host.interval(&mut || false).unwrap();
    }
    let report = host.report().unwrap();
    // SAFETY: ends the process that was made for this.
    unsafe { libc::kill(copy, libc::SIGKILL) };
    assert_eq!(on_node(&program, start, PAGES, machine.nodes[0]), PAGES);
    assert_eq!(report.moves.moved, 0);
    assert!(report.samples.of_several_processes >= 3 * PAGES as u64, "{report:?}");
}

#[test]
fn a_program_that_ends_in_the_middle_is_left() {
    let Some(machine) = Machine::new() else { return };
    let mut program = Program::start();
    let start = program.map(machine.cpus[0], PAGES);
    program.use_on(machine.cpus[1]);
    let mut host = told(&program, start, PAGES);
    assert!(host.interval(&mut || false).unwrap());
    program.kill();
    host.run(|| false).unwrap();
    let report = host.report().unwrap();
    assert_eq!(report.processes[0].ended.as_deref(), Some("it has ended"));
}

#[test]
fn another_users_program_is_refused_with_the_reason() {
    use std::os::unix::process::CommandExt;
    const INSIDE: &str = "DOMICILE_TEST_OTHER";
    if let Some(other) = std::env::var_os(INSIDE) {
        // As nobody: of another user's process.
        let process = other.to_str().unwrap().parse().unwrap();
        let error = move_pages::move_to(Some(process), &[PAGE], &[0]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
        let choice = Choice {
            source: Box::new(Told([(process, vec![Span::new(PAGE, PAGE)])].into())),
            others: Vec::new(),
        };
        let layout = Layout::read(&Root::default(), false).unwrap();
        let whom = Whom::Processes(vec![process]);
        let mut host = Host::new(Here::default(), layout, choice, config(), whom, Log::new(None)).unwrap();
        host.run(|| false).unwrap();
        let report = host.report().unwrap();
        let why = report.processes[0].ended.clone().unwrap();
        assert!(why.contains("CAP_SYS_PTRACE"), "{why}");
        return;
    }
    let Some(machine) = Machine::new() else { return };
    if !harness::root() {
        return harness::not_allowed("another user's name is root's to take");
    }
    let mut program = Program::start();
    program.use_on(machine.cpus[1]);
    // A directory from which any user may run a copy of this program.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("numa");
    harness::copy_program(&std::env::current_exe().unwrap(), &copy);
    for path in [folder.path(), &copy] {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let status = Command::new(copy)
        .args([
            "--exact",
            "another_users_program_is_refused_with_the_reason",
            "--nocapture",
        ])
        .env(INSIDE, program.id().to_string())
        .uid(65534)
        .gid(65534)
        .current_dir("/")
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}

/// A source of the kernel's finds the accesses that the test had the process make.
fn by_source(name: &str, pages: usize) {
    let Some(machine) = Machine::new() else { return };
    let mut program = Program::start();
    let start = program.map(machine.cpus[0], pages);
    program.use_on(machine.cpus[1]);
    // Another process on the same cpu evicts the TLB entries: accesses that hit in the TLB are not
    // seen.
    let mut other = Program::start();
    other.map(machine.cpus[1], 1);
    other.use_on(machine.cpus[1]);
    let whom = Whom::Processes(vec![program.id()]);
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut host = match prepare(config(), Some(name)) {
        Ok(prepared) => {
            let to = BufWriter::new(log.reopen().unwrap());
            prepared.watch(whom, Some(Box::new(to))).unwrap()
        }
        Err(error) => return harness::not_here(error),
    };
    // A region ends where it does: most is enough, and the rest is as much as the regions are off.
    let most = pages * 9 / 10;
    host = until(host, 150, || on_node(&program, start, pages, machine.nodes[1]) >= most);
    program.use_on(machine.cpus[0]);
    other.use_on(machine.cpus[0]);
    host = until(host, 150, || on_node(&program, start, pages, machine.nodes[0]) >= most);
    let report = host.report().unwrap();
    assert_eq!(report.source, name);
    // Twice, but for those that stayed behind the first time.
    assert!(report.moves.moved >= pages as u64, "{report:?}");
    // A fresh policy that gets the same observations makes the same requests.
    let replayed = replay(BufReader::new(log.reopen().unwrap())).unwrap();
    assert!(replayed.before.len() >= pages && replayed.before == replayed.now);
    let last = report.intervals.last().unwrap();
    println!(
        "{name}: {last:?}, own {} ns, kernel {:?} ns",
        report.own_ns, report.kernel_ns
    );
}

#[test]
fn damon_finds_what_follows() {
    by_source("damon", 8192);
}

#[test]
fn faults_of_writes_find_what_follows() {
    by_source("write-faults", PAGES);
}

#[test]
fn each_thread_has_its_pages_near_where_faults_tell_whose_they_are() {
    let Some(machine) = Machine::new() else { return };
    let mut program = Program::start();
    // All on one node, and half of it is the other one's.
    let mine = program.map(machine.cpus[0], PAGES);
    program.say(&format!("only {}", machine.cpus[0]));
    let others = program.map(machine.cpus[0], PAGES);
    program.say(&format!("only {}", machine.cpus[1]));
    let mut host = match prepare(config(), Some("write-faults")) {
        Ok(prepared) => prepared.watch(Whom::Processes(vec![program.id()]), None).unwrap(),
        Err(error) => return harness::not_here(error),
    };
    host = until(host, 150, || {
        on_node(&program, others, PAGES, machine.nodes[1]) == PAGES
    });
    assert_eq!(on_node(&program, mine, PAGES, machine.nodes[0]), PAGES);
    let report = host.report().unwrap();
    assert_eq!(report.samples.shared, 0, "{report:?}");
}

#[test]
fn faults_of_hints_find_who_reads() {
    let Some(machine) = Machine::new() else { return };
    if std::fs::write(BALANCING, "1").is_err() {
        return harness::not_here("the kernel has no balancing of its own");
    }
    let mut program = Program::start();
    let start = program.map(machine.cpus[0], PAGES);
    program.say(&format!("read {}", machine.cpus[1]));
    let whom = Whom::Processes(vec![program.id()]);
    let mut host = match prepare(config(), Some("hint-faults")) {
        Ok(prepared) => prepared.watch(whom, None).unwrap(),
        Err(error) => return harness::not_here(error),
    };
    // The kernel begins to close pages when the process has run for a second, and it moves them, too.
    host = until(host, 300, || {
        on_node(&program, start, PAGES, machine.nodes[1]) >= PAGES / 2
    });
    for _ in 0..5 {
        host.interval(&mut || false).unwrap();
    }
    std::fs::write(BALANCING, "0").unwrap();
    let report = host.report().unwrap();
    // Nothing was written, and each count is of the one cpu that it came from.
    assert!(report.samples.local + report.samples.remote > 0, "{report:?}");
    assert_eq!(report.samples.shared, 0, "{report:?}");
}

#[test]
fn soft_dirty_bits_find_what_follows() {
    by_source("soft-dirty", PAGES);
}
