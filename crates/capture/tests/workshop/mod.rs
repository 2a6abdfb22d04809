//! What the tests of recording share: compiling small programs, recording them, reading the traces.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use capture::{Options, Outcome};
use trace::{Batch, Event, Op, Ref, ThreadId, Timed, Trace};

/// One recording at a time in a process: it catches signals.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn source_tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../capture/valgrind")
}

/// Builds the Valgrind tool, once; says where it is.
pub fn tool() -> PathBuf {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| {
        let built = Command::new("make")
            .arg("-s")
            .arg("-C")
            .arg(source_tree())
            .status()
            .unwrap();
        assert!(built.success(), "make -C capture/valgrind failed");
    });
    source_tree().join("build")
}

/// A folder with a program in it and room for traces.
pub struct Bench {
    pub folder: tempfile::TempDir,
    pub program: PathBuf,
}

/// Compiles `tests/programs/<source>` by a compiler that may be missing.
pub fn compile_by(compiler: &str, source: &str, flags: &[&str]) -> Option<Bench> {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join(source.split('.').next().unwrap());
    let compiled = Command::new(compiler)
        .current_dir(folder.path())
        .args(["-O1", "-g", "-fopenmp"])
        .args(flags)
        .arg("-o")
        .arg(&program)
        .arg(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/programs")
                .join(source),
        )
        .status();
    match compiled {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            harness::not_installed(format_args!("there is no {compiler}"));
            None
        }
        compiled => {
            assert!(compiled.unwrap().success(), "{source} does not compile by {compiler}");
            Some(Bench { folder, program })
        }
    }
}

/// Compiles `tests/programs/<name>.c`.
pub fn compile(name: &str, flags: &[&str]) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(format!("{name}.c"));
    let compiled = Command::new("gcc")
        .args(["-O1", "-g", "-fno-tree-vectorize", "-fcf-protection=none"])
        .args(flags)
        .arg("-I")
        .arg(source_tree())
        .arg("-o")
        .arg(&program)
        .arg(source)
        .args(["-pthread", "-lstdc++"])
        .status()
        .unwrap();
    assert!(compiled.success());
    Bench { folder, program }
}

impl Bench {
    pub fn options(&self, args: &[&str]) -> Options {
        // A trace of its own each time: those before may still be read.
        static TRACES: AtomicU32 = AtomicU32::new(0);
        let number = TRACES.fetch_add(1, Ordering::Relaxed);
        let mut options = Options::new(&self.program, args, self.folder.path().join(format!("{number}.dtr")));
        options.tool = Some(tool());
        options
    }

    /// Records the program with these arguments.
    pub fn record(&self, args: &[&str]) -> (Outcome, Trace) {
        record(&self.options(args))
    }
}

/// Records, and opens what was written.
pub fn record(options: &Options) -> (Outcome, Trace) {
    let _turn = alone();
    let outcome = capture::record(options, &mut |_| {}).unwrap();
    let trace = Trace::open(&options.output).unwrap();
    assert_eq!(trace.references(), outcome.summary.references);
    (outcome, trace)
}

/// All of a thread's stream.
pub fn stream(trace: &Trace, thread: ThreadId) -> (Vec<Ref>, Vec<Timed>) {
    let (mut refs, mut events) = (Vec::new(), Vec::new());
    let mut stream = trace.thread(thread).unwrap();
    let mut batch = Batch::default();
    while stream.next(&mut batch).unwrap() {
        let first = refs.len() as u32;
        refs.extend_from_slice(&batch.refs);
        events.extend(batch.events.drain(..).map(|e| Timed { at: e.at + first, ..e }));
    }
    (refs, events)
}

pub fn threads(trace: &Trace) -> std::ops::Range<ThreadId> {
    0..trace.threads().len() as ThreadId
}

/// All events of a trace, in the order of the recording, with their threads.
pub fn events(trace: &Trace) -> Vec<(ThreadId, Event)> {
    let mut all: Vec<_> = threads(trace)
        .flat_map(|t| stream(trace, t).1.into_iter().map(move |e| (e.order, t, e.event)))
        .collect();
    all.sort_by_key(|(order, ..)| *order);
    all.into_iter().map(|(_, t, event)| (t, event)).collect()
}

/// Where a symbol of the program itself lies: address, bytes.
pub fn symbol(trace: &Trace, name: &str) -> (u64, u64) {
    let ours = trace
        .modules()
        .iter()
        .find(|m| {
            m.process == 0
                && m.path.ends_with(
                    Path::new(&trace.header().program)
                        .file_name()
                        .unwrap()
                        .to_str()
                        .unwrap(),
                )
        })
        .unwrap();
    let ours = ours.start..ours.start + ours.bytes;
    let symbols = trace.symbols().iter().filter(|s| s.process == 0 && s.name == name);
    let found: Vec<_> = symbols.filter(|s| ours.contains(&s.addr)).collect();
    assert_eq!(found.len(), 1, "{name}: {found:?}");
    (found[0].addr, found[0].bytes)
}

/// The references of a thread to a symbol: operation, offset, size.
pub fn touches(trace: &Trace, thread: ThreadId, name: &str) -> Vec<(Op, u64, u16)> {
    let (addr, bytes) = symbol(trace, name);
    let (refs, _) = stream(trace, thread);
    refs.iter()
        .filter(|r| r.addr >= addr && r.addr < addr + bytes)
        .map(|r| (r.op, r.addr - addr, r.size))
        .collect()
}

/// All that `ends.c` wrote before it ended is there.
pub fn filled(trace: &Trace) {
    let written: Vec<_> = (0..4096).map(|i| (Op::Write, 4 * i, 4)).collect();
    let touched = touches(trace, 0, "data");
    assert!(
        touched.len() >= 4096,
        "{} references, {}",
        trace.references(),
        touched.len()
    );
    assert_eq!(touched[..4096], written);
}

/// Where a recording lies until it is finished.
pub fn unfinished(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_os_string();
    name.push(".partial");
    name.into()
}

/// The recorder as a process of its own, and its arguments up to the program.
pub fn recorder(output: &Path) -> (PathBuf, Vec<std::ffi::OsString>) {
    tool();
    let me = std::env::current_exe().unwrap();
    let example = me.parent().unwrap().parent().unwrap().join("examples/record");
    assert!(example.exists(), "{} is built with the tests", example.display());
    (example, vec!["--quiet".into(), "-o".into(), output.into(), "--".into()])
}
