//! drmemtrace's files: archives, and folders of one file a thread or a core.

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::drmemtrace::{DRMEMTRACE, begin_of, drmemtrace, end_of, entry, load};
use crate::import::{fails, gzip, items};

use trace::import::{self, Format};
use trace::{Gaps, Trace};

#[test]
fn a_zip_archive_is_read_member_by_member() {
    use std::io::Write;
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("t.zip"), folder.path().join("t.dtr"));
    let whole = drmemtrace();
    let mut archive = zip::ZipWriter::new(std::fs::File::create(&input).unwrap());
    for (i, part) in whole.chunks(100).enumerate() {
        let method = if i == 1 {
            zip::CompressionMethod::Stored
        } else {
            zip::CompressionMethod::Deflated
        };
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        archive.start_file(format!("chunk.{i:04}"), options).unwrap();
        archive.write_all(part).unwrap();
    }
    archive.finish().unwrap();
    import::file(Format::Drmemtrace, &input, &output).unwrap();
    assert_eq!(items(&Trace::open(&output).unwrap()), DRMEMTRACE);

    let bytes = std::fs::read(&input).unwrap();
    fails(Format::Drmemtrace, &bytes, &["zip archive cannot be read from a pipe"]);
    std::fs::write(&input, &bytes[..bytes.len() / 2]).unwrap();
    let error = import::file(Format::Drmemtrace, &input, &output)
        .unwrap_err()
        .to_string();
    assert!(error.contains("zip archive"), "{error}");
}

/// An archive with these members.
fn zipped(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in members {
        archive
            .start_file(*name, zip::write::SimpleFileOptions::default())
            .unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn imported(input: &Path) -> Trace {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("t.dtr");
    import::file(Format::Drmemtrace, input, &output).unwrap_or_else(|error| panic!("{error}"));
    Trace::from_bytes(fs::read(&output).unwrap()).unwrap()
}

fn error(input: &Path) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("t.dtr");
    let error = import::file(Format::Drmemtrace, input, &output)
        .unwrap_err()
        .to_string();
    assert!(!output.exists());
    error
}

fn says(input: &Path, words: &[&str]) {
    let error = error(input);
    for word in words {
        assert!(error.contains(word), "{error}\nshould say {word}");
    }
}

fn write(folder: &Path, name: &str, bytes: &[u8]) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn gaps(trace: &Trace) -> Gaps {
    trace.header().gaps.clone().unwrap_or_default()
}

#[test]
fn an_archives_pieces_are_read_by_their_numbers_and_nothing_else_is() {
    let folder = tempfile::tempdir().unwrap();
    let whole = drmemtrace();
    let archive = zipped(&[
        ("notes.txt", b"no piece"),
        ("trace/", b""),
        ("trace/chunk.10", &whole[120..]),
        ("trace/chunk.2", &whole[..120]),
    ]);
    write(folder.path(), "t.zip", &archive);
    let trace = imported(&folder.path().join("t.zip"));
    assert_eq!(items(&trace), DRMEMTRACE);
    assert_eq!(gaps(&trace).other_files, ["notes.txt"]);
}

#[test]
fn a_damaged_member_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    archive.start_file("chunk.0", stored).unwrap();
    archive.write_all(&drmemtrace()).unwrap();
    let mut bytes = archive.finish().unwrap().into_inner();
    // A bit of an address.
    let at = bytes.windows(4).position(|four| four == [0xf0, 0xff, 0x07, 0]).unwrap();
    bytes[at] ^= 1;
    write(folder.path(), "t.zip", &bytes);
    says(&folder.path().join("t.zip"), &["member `chunk.0` is damaged"]);
}

/// A thread's file: it reads at these times.
fn thread(tid: u64, times: &[u64]) -> Vec<u8> {
    let mut bytes = begin_of(0x40, tid);
    for time in times {
        bytes.extend([entry(28, 2, *time), entry(28, 3, 0), load(0x1000, *time)].concat());
    }
    bytes.extend(end_of(tid));
    bytes
}

/// Which thread read, in the recorded order.
fn order(trace: &Trace) -> Vec<(u64, u64)> {
    let reads = items(trace).into_iter().filter(|item| item.contains(":r "));
    reads
        .map(|item| {
            let (thread, rest) = item.split_once(":r ").unwrap();
            let number = trace.threads()[thread.parse::<usize>().unwrap()].number;
            (
                number,
                u64::from_str_radix(rest.split_once(' ').unwrap().0, 16).unwrap(),
            )
        })
        .collect()
}

#[test]
fn a_folder_is_one_trace_in_the_order_of_its_times() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("drmemtrace.app.500.dir/trace");
    write(
        &trace,
        "drmemtrace.app.501.1.trace.gz",
        &gzip(&thread(501, &[10, 30, 31])),
    );
    write(
        &trace,
        "drmemtrace.app.502.1.trace.zip",
        &zipped(&[("chunk.0", &thread(502, &[20, 40]))]),
    );
    write(&trace, "drmemtrace.app.503.1.trace", &thread(503, &[5, 31]));
    for beside in [
        "serial_schedule.bin.gz",
        "cpu_schedule.bin.zip",
        "modules.log",
        "funclist.log",
        "encodings.bin",
        "v2p.textproto",
    ] {
        write(&trace, beside, b"beside");
        write(&trace.join("../raw"), beside, b"beside");
        write(&trace.join("../aux"), beside, b"beside");
    }
    write(&trace.join("../raw"), "drmemtrace.app.501.1.raw.gz", &gzip(b"12345678"));
    for named in [trace.as_path(), trace.parent().unwrap()] {
        let trace = imported(named);
        assert_eq!(
            order(&trace),
            [
                (503, 5),
                (501, 10),
                (502, 20),
                (501, 30),
                (501, 31),
                (503, 31),
                (502, 40)
            ]
        );
        assert_eq!(trace.processes().iter().map(|p| p.pid).collect::<Vec<_>>(), [500]);
        assert_eq!(trace.header().gaps, None);
    }
}

#[test]
fn odd_files_are_left_out_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write(path, "a.trace", &thread(1, &[10]));
    write(path, "unnamed", &thread(2, &[10]));
    write(path, "README", b"a text");
    write(path, "empty", b"");
    write(path, ".hidden.trace.gz", b"a text");
    write(path, "old/a.trace", &thread(1, &[10]));
    // What was imported before.
    import::file(Format::Drmemtrace, path.join("a.trace"), path.join("b.trace")).unwrap();
    let trace = imported(path);
    assert_eq!(order(&trace), [(1, 10), (2, 10)]);
    assert_eq!(
        gaps(&trace).other_files,
        [".hidden.trace.gz", "README", "b.trace", "empty", "old/"]
    );
}

#[test]
fn a_broken_thread_is_an_error_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write(path, "a.trace", &thread(1, &[10]));
    write(path, "b.trace.gz", b"");
    says(path, &["in `b.trace.gz`", "it is empty", "drraw2trace"]);
    write(path, "b.trace.gz", b"a text of many words");
    says(path, &["in `b.trace.gz`", "no header of a 64-bit trace"]);
    let packed = gzip(&thread(2, &(0..5000).collect::<Vec<_>>()));
    write(path, "b.trace.gz", &packed[..packed.len() / 2]);
    says(path, &["in `b.trace.gz`", "cannot read on"]);
    write(path, "b.trace.gz", &thread(2, &[10])[..100]);
    says(path, &["in `b.trace.gz`", "ends 4 bytes into a record"]);
    fs::remove_file(path.join("b.trace.gz")).unwrap();
    write(path, "b.trace.lz4", b"\x04\x22\x4d\x18 and so on");
    says(path, &["in `b.trace.lz4`", "compressed by lz4", "lz4 -d"]);
}

#[test]
fn a_folder_without_a_trace_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    says(path, &["no file in the folder", "drmemtrace.*.dir"]);
    write(path, "raw/drmemtrace.app.1.1.raw.gz", &gzip(b"12345678"));
    for raw in [path, &path.join("raw")] {
        says(raw, &["raw traces only", "drraw2trace -indir DIR"]);
    }
    write(path, "trace/README", b"a text");
    says(
        &path.join("raw"),
        &["raw traces only", "what was made of them is in", "/trace: import that"],
    );
    let several = tempfile::tempdir().unwrap();
    write(several.path(), "drmemtrace.a.1.dir/trace/a.trace", &thread(1, &[10]));
    write(several.path(), "drmemtrace.b.2.dir/trace/b.trace", &thread(2, &[10]));
    says(
        several.path(),
        &["several recordings", "`drmemtrace.a.1.dir`, `drmemtrace.b.2.dir`"],
    );
    let output = path.join("t.dtr");
    let error = import::file(Format::Text, several.path(), &output).unwrap_err();
    assert!(error.to_string().contains("directory"), "{error}");
}

#[test]
fn a_thread_of_several_windows_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // The first says its number itself.
    let mut first = begin_of(0x40, 7);
    first.extend([entry(28, 14, 0), entry(28, 2, 100), load(0x1000, 1), end_of(7)].concat());
    write(path, "trace/window.0000/a.trace", &first);
    write(path, "trace/window.0001/a.trace", &thread(7, &[50]));
    write(path, "trace/window.0001/b.trace", &thread(8, &[40]));
    write(path, "trace/window.0002/a.trace", &thread(7, &[10]));
    let trace = imported(path);
    assert_eq!(order(&trace), [(7, 1), (8, 40), (7, 50), (7, 10)]);
    let events = items(&trace)
        .into_iter()
        .filter(|item| item.contains('{') || item.contains("Exit"));
    assert_eq!(
        events.collect::<Vec<_>>(),
        [
            "0:Window { index: 0 }",
            "1:Window { index: 1 }",
            "1:Exit",
            "0:Window { index: 1 }",
            "0:Window { index: 2 }",
            "0:Exit"
        ]
    );
    assert_eq!(trace.header().chosen.as_ref().unwrap().windows, 3);
}

#[test]
fn files_of_one_number_are_of_two_threads() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.trace", &thread(7, &[10]));
    write(folder.path(), "b.trace", &thread(7, &[20]));
    assert_eq!(imported(folder.path()).threads().len(), 2);
}

/// Threads go from core to core; a core that has nothing to run is no thread.
#[test]
fn files_of_cores_share_their_threads() {
    const CORES: u64 = 0x1_0040;
    let part = |tid: u64, time: u64| {
        [
            entry(22, 8, tid),
            entry(24, 8, 500),
            entry(28, 2, time),
            load(0x1000, time),
        ]
        .concat()
    };
    let first = [
        begin_of(CORES, 7),
        part(7, 10),
        // Another thread's begin, in the middle.
        begin_of(CORES, 8),
        part(8, 30),
        end_of(8),
        part(7, 50),
        end_of(7),
    ];
    let second = [
        begin_of(CORES, u64::MAX),
        entry(28, 2, u64::MAX),
        entry(28, 33, 0),
        part(7, 20),
        entry(22, 8, u64::MAX),
        entry(28, 33, 0),
        part(7, 40),
        entry(26, 0, 0),
    ];
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "drmemtrace.core.0.trace", &first.concat());
    write(folder.path(), "drmemtrace.core.1.trace", &second.concat());
    let trace = imported(folder.path());
    assert_eq!(trace.threads().iter().map(|t| t.number).collect::<Vec<_>>(), [7, 8]);
    assert_eq!(order(&trace), [(7, 10), (7, 20), (8, 30), (7, 40), (7, 50)]);
}

/// The end of filtering is said once in a core's file, whichever thread runs then.
#[test]
fn all_threads_of_a_core_count_once_filtering_ended() {
    const CORES: u64 = 0x1_21c0;
    let core = [
        begin_of(CORES, 7),
        load(0x1000, 1),
        entry(22, 8, 8),
        load(0x1000, 2),
        entry(28, 23, 0),
        load(0x1000, 3),
        begin_of(CORES, 7)[..48].to_vec(),
        load(0x1000, 4),
    ];
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "core.trace", &core.concat());
    let trace = imported(folder.path());
    let counted = items(&trace).into_iter().filter(|item| !item.contains(":i "));
    assert_eq!(
        counted.collect::<Vec<_>>(),
        [
            "0:r 1 8 1000+0",
            "1:r 2 8 1000+0",
            "1:Counted { index: 0 }",
            "1:r 3 8 1000+0",
            "0:Counted { index: 0 }",
            "0:r 4 8 1000+0"
        ]
    );
}
