//! A writer that is killed leaves a trace that can be read.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use trace::synthetic::{Kind, Stream};
use trace::{Batch, Header, Options, Process, Ref, Thread, Trace, Writer};

const FILE: &str = "TRACE_CRASH_TEST_FILE";

/// Writes two threads' references until it is killed.
fn write_for_ever(path: &Path) {
    let options = Options {
        background: true,
        ..Options::default()
    };
    let mut writer = Writer::create_with(path, &Header::default(), options).unwrap();
    let process = writer.process(Process::default());
    let threads = [1, 2].map(|number| {
        writer.thread(Thread {
            process,
            number,
            ..Thread::default()
        })
    });
    let mut streams = [1, 2].map(|seed| Stream::new(Kind::Mixed, seed, &mut writer));
    // Not for ever where nobody kills it.
    for _ in 0..10_000 {
        for (thread, stream) in threads.into_iter().zip(&mut streams) {
            let refs: Vec<Ref> = stream.take(10_000).collect();
            writer.refs(thread, &refs).unwrap();
        }
    }
}

#[test]
fn a_killed_writer_leaves_what_it_wrote() {
    if let Some(path) = std::env::var_os(FILE) {
        return write_for_ever(Path::new(&path));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("killed.dtr");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::a_killed_writer_leaves_what_it_wrote"])
        .env(FILE, &path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while path.metadata().map_or(0, |m| m.len()) < 3_000_000 {
        assert!(began.elapsed() < Duration::from_secs(120), "the writer wrote nothing");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let trace = Trace::open(&path).unwrap();
    assert_eq!(trace.damage().len(), 1, "{:?}", trace.damage());
    assert!(trace.references() > 500_000, "{}", trace.references());
    let sites = trace::synthetic::sites().as_flattened().to_vec();
    assert_eq!(trace.sites(), sites);
    for (thread, seed) in [(0, 1), (1, 2)] {
        let mut expected = Stream::bare(Kind::Mixed, seed);
        let mut stream = trace.thread(thread).unwrap();
        let mut batch = Batch::default();
        while stream.next(&mut batch).unwrap() {
            assert!(batch.refs.iter().all(|&r| expected.next() == Some(r)));
        }
    }
    let runs: u64 = trace.order().map(|run| run.unwrap().refs).sum();
    assert_eq!(runs, trace.references());
}
