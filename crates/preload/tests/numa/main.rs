//! The program's text from copies on nodes, and pages of arrays at home ([`homes`]), in real processes: on whatever machine this is, and
//! on one with several nodes.

mod homes;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use live::protocol::{TEXT_ENVIRONMENT, TextInstructions, VERSION};
use replicas::{TextCopies, TextState};
use sys::nodes::NodeReading;
use sys::{Root, mappings, numa_maps};

const INSIDE: &str = "DOMICILE_TEST_TEXT";
const SAYS: &str = "text: ";

/// The run-time as it is now. In a guest it was brought along (guest/test).
fn run_time() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        // This program is in the folder `deps` of that in which cargo builds.
        let program = std::env::current_exe().unwrap();
        let folder = program.ancestors().nth(2).unwrap();
        if std::env::var_os("DOMICILE_GUEST").is_none() {
            let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
            cargo.args(["build", "--locked", "--quiet", "-p", "domicile-preload"]);
            if folder.ends_with("release") {
                cargo.arg("--release");
            }
            cargo.arg("--target-dir").arg(folder.parent().unwrap());
            assert!(
                cargo
                    .current_dir(env!("CARGO_MANIFEST_DIR"))
                    .status()
                    .unwrap()
                    .success()
            );
        }
        folder.join("libdomicile_preload.so")
    })
}

/// Has a command's program, and those that it starts, get their text from the store.
fn under(store: &TextCopies, children: bool, command: &mut Command) {
    let instructions = TextInstructions {
        version: VERSION,
        store: store.path(),
        command: std::process::id(),
        children,
        preload_before: None,
    };
    command
        .env("LD_PRELOAD", run_time())
        .env(TEXT_ENVIRONMENT, instructions.text());
}

fn with_cpus() -> Vec<NodeReading> {
    let mut nodes = sys::nodes::nodes(&Root::default()).unwrap_or_default();
    nodes.retain(|node| !node.cpus.is_empty());
    nodes
}

/// This program once more, on a cpu.
struct Inside {
    process: Child,
    from: BufReader<ChildStdout>,
}

impl Inside {
    fn start(store: Option<&TextCopies>, cpu: u32) -> Inside {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "inside", "--nocapture", "--test-threads=1"])
            .env(INSIDE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if let Some(store) = store {
            under(store, false, &mut command);
        }
        // SAFETY: the closure does nothing but system calls.
        unsafe { command.pre_exec(move || pin(cpu).and_then(|()| no_files())) };
        let mut process = command.spawn().unwrap();
        let from = BufReader::new(process.stdout.take().unwrap());
        Inside { process, from }
    }

    fn line(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "it said nothing");
            if let Some((_, said)) = line.trim_end().split_once(SAYS) {
                return said.to_string();
            }
        }
    }

    /// Lets it end; what it said of its work, and how it ended.
    fn end(mut self) -> (String, Option<i32>) {
        writeln!(self.process.stdin.take().unwrap()).unwrap();
        let said = self.line();
        let mut rest = String::new();
        while self.from.read_line(&mut rest).unwrap() > 0 {}
        (said, self.process.wait().unwrap().code())
    }
}

fn pin(cpu: u32) -> std::io::Result<()> {
    // SAFETY: a set of cpus is numbers, all of which may be zero; the call reads it and concerns this thread alone.
    let pinned = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
    };
    match pinned {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Has whoever writes to a file be ended by a signal: the store is none.
fn no_files() -> std::io::Result<()> {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the limits live, and are read.
    match unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const none) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// What the child does; in the parent this test is nothing.
#[test]
fn inside() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    // Of the program and of the C library.
    println!(
        "{SAYS}{} {}",
        inside as fn() as usize,
        libc::qsort as *const () as usize
    );
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
    println!("{SAYS}{}", work());
}

/// Much of what text and its tables are used for.
fn work() -> String {
    std::panic::set_hook(Box::new(|_| ()));
    let unwound = std::panic::catch_unwind(|| panic!("on purpose")).is_err();
    let threads: Vec<_> = (0..4u64)
        .map(|at| std::thread::spawn(move || (0..1000).fold(at, |a, b| a.wrapping_mul(31) ^ b)))
        .collect();
    let sum = threads
        .into_iter()
        .fold(0u64, |sum, thread| sum.wrapping_add(thread.join().unwrap()));
    let found = Command::new(std::env::current_exe().unwrap())
        .args(["--list", "--format", "terse"])
        .output()
        .unwrap();
    // SAFETY: looks up a name.
    let name = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"strlen".as_ptr()) };
    let backtrace = std::backtrace::Backtrace::force_capture().to_string();
    format!(
        "{unwound} {sum} {} {} {} {}",
        found.status,
        String::from_utf8_lossy(&found.stdout).lines().count(),
        !name.is_null(),
        backtrace.contains("work")
    )
}

/// The nodes of the mapping that has an address, and its name.
fn lies(process: u32, address: usize) -> (Vec<u32>, String) {
    let maps = numa_maps::of(&Root::default(), process).unwrap();
    let mapping = maps.iter().rfind(|mapping| mapping.start <= address).unwrap();
    let nodes = mapping
        .pages
        .iter()
        .filter(|(_, pages)| *pages > 0)
        .map(|(node, _)| *node)
        .collect();
    let all = mappings::all(Some(process)).unwrap();
    let named = all.iter().find(|mapping| mapping.span.contains(address)).unwrap();
    (nodes, format!("{:?}", named.kind))
}

/// Whether the store could do its work here; says why not.
fn works(state: &TextState) -> bool {
    let Some(why) = state.processes.iter().find_map(|process| process.why.as_ref()) else {
        return true;
    };
    if state.copies.is_empty() {
        harness::not_here(why);
        return false;
    }
    panic!("{state:?}");
}

#[test]
fn text_comes_from_the_node_of_each_process_which_behaves_the_same() {
    let nodes = with_cpus();
    let store = TextCopies::create().unwrap();
    let mut cost = Vec::new();
    for node in &nodes {
        let (said, code) = Inside::start(None, node.cpus[0]).end_after_its_first_line();
        assert_eq!(code, Some(0));
        // Two on each node.
        for _ in 0..2 {
            let mut program = Inside::start(Some(&store), node.cpus[0]);
            let line = program.line();
            let state = store.state().unwrap();
            if !works(&state) {
                return;
            }
            let last = state.processes.last().unwrap();
            assert_eq!(
                (last.process, last.node, last.left),
                (program.process.id(), node.number, 0),
                "{state:?}"
            );
            for address in line.split(' ').map(|address| address.parse().unwrap()) {
                let (on, name) = lies(program.process.id(), address);
                assert_eq!(on, [node.number], "{name}");
                assert!(name.contains("domicile-text"), "{name}");
            }
            assert_eq!(program.end(), (said.clone(), code));
            cost.push(
                state
                    .copies
                    .iter()
                    .find(|(number, _)| *number == node.number)
                    .unwrap()
                    .1,
            );
        }
        let of_node = &cost[cost.len() - 2..];
        assert_eq!(of_node[0], of_node[1], "the second process makes no copies");
    }
    let state = store.state().unwrap();
    assert_eq!(
        (state.copies.len(), state.processes.len()),
        (nodes.len(), 2 * nodes.len())
    );
    assert!(state.copies.iter().all(|(_, bytes)| *bytes > 1 << 20));
}

impl Inside {
    fn end_after_its_first_line(mut self) -> (String, Option<i32>) {
        self.line();
        self.end()
    }
}

#[test]
fn what_a_program_starts_is_concerned_where_that_is_asked_for() {
    let store = TextCopies::create().unwrap();
    let script = "printf '3\\n1\\n2\\n' | sort -r | cat; env | grep -c DOMICILE_TEXT; exit 7";
    let run = |children: Option<bool>| {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        if let Some(children) = children {
            under(&store, children, &mut command);
        }
        command.output().unwrap()
    };
    let plain = run(None);
    let alone = run(Some(false));
    let state = store.state().unwrap();
    if state.processes.is_empty() {
        return harness::not_here("sh is linked statically, and loads no run-time");
    }
    if !works(&state) {
        return;
    }
    assert_eq!(state.processes.len(), 1, "{state:?}");
    assert_eq!((plain.status.code(), alone.status.code()), (Some(7), Some(7)));
    assert!(alone.stdout.starts_with(b"3\n2\n1\n"));
    assert!(plain.stderr.is_empty() && alone.stderr.is_empty(), "{alone:?}");
    let all = run(Some(true));
    assert_eq!((all.status.code(), &all.stdout[..6]), (Some(7), &b"3\n2\n1\n"[..]));
    // sort, cat, env, grep, and the shell again.
    assert!(store.state().unwrap().processes.len() > 4, "{:?}", store.state());
}
