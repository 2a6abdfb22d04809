//! Each importer against small inputs whose records are known.

use crate::memory;

use memory::Shared;
use trace::import::{self, Format};
use trace::{Event, Header, Item, Op, Options, Trace, TraceError, Writer};

pub fn import(format: Format, input: &[u8]) -> Result<Trace, TraceError> {
    let out = Shared::default();
    let mut writer = Writer::new(out.clone(), &Header::default(), Options::default())?;
    import::read(format, std::io::Cursor::new(input.to_vec()), "input", &mut writer)?;
    writer.finish()?;
    Trace::from_bytes(out.take())
}

/// Items as short text: `thread:op addr size pc+insns`, or the event.
pub fn items(trace: &Trace) -> Vec<String> {
    let one = |item| match item {
        Item::Ref { thread, reference: r } => {
            let op = match r.op {
                Op::Read => 'r',
                Op::Write => 'w',
                Op::Modify => 'm',
                Op::Fetch => 'i',
                Op::Prefetch => 'p',
            };
            format!(
                "{thread}:{op} {:x} {} {:x}+{}",
                r.addr,
                r.size,
                trace.sites()[r.site as usize].pc,
                r.insns
            )
        }
        Item::Event { thread, event, .. } => match event {
            Event::Barrier { object, threads } => format!("{thread}:barrier {object} of {threads}"),
            other => format!("{thread}:{other:?}"),
        },
    };
    trace.cat().map(|item| one(item.unwrap())).collect()
}

pub fn fails(format: Format, input: &[u8], says: &[&str]) {
    let error = match import(format, input) {
        Ok(_) => panic!("{:?} is accepted", input.escape_ascii().to_string()),
        Err(error) => error.to_string(),
    };
    for say in says {
        assert!(error.contains(say), "{error}\nshould say {say}");
    }
}

#[test]
fn text_is_read_as_written() {
    let trace = import(
        Format::Text,
        b"# a comment\n7 r 7f0010 8\n  3\tw 0x7f0018 4 # another\r\n\n7 m FF 1\n3 i 401000 15\n7 p 123456 1",
    )
    .unwrap();
    assert_eq!(
        items(&trace),
        [
            "0:r 7f0010 8 0+0",
            "1:w 7f0018 4 0+0",
            "0:m ff 1 0+0",
            "1:i 401000 15 0+0",
            "0:p 123456 1 0+0"
        ]
    );
    assert_eq!(trace.threads().iter().map(|t| t.number).collect::<Vec<_>>(), [7, 3]);
    assert_eq!(trace.header().origin, "import text");
    assert_eq!(trace.header().program, "input");
    assert!(trace.header().has_fetches && !trace.header().counts_instructions && !trace.header().has_pcs);
    assert_eq!(trace.instructions(), None);
    assert!(!import(Format::Text, b"1 r 0 1\n").unwrap().header().has_fetches);
}

#[test]
fn all_threads_of_the_file_meet_at_a_barrier() {
    let trace = import(Format::Text, b"1 r 10 8\nb 2\n1 r 20 8\nb 2\n5 r 30 8\nb 2\n").unwrap();
    assert_eq!(
        items(&trace),
        [
            "0:r 10 8 0+0",
            "0:barrier 1 of 2",
            "0:r 20 8 0+0",
            "0:barrier 2 of 2",
            "1:barrier 1 of 2",
            "1:barrier 2 of 2",
            "1:r 30 8 0+0",
            "0:barrier 3 of 2",
            "1:barrier 3 of 2"
        ]
    );
}

#[test]
fn a_barrier_of_some_is_of_those_active_last() {
    let trace = import(Format::Text, b"1 r 1 1\n2 r 2 1\n3 r 3 1\n1 r 4 1\nb 2\n").unwrap();
    assert_eq!(items(&trace)[4..], ["0:barrier 1 of 2", "2:barrier 1 of 2"]);
}

#[test]
fn text_marks_work_items_with_their_hints() {
    let trace = import(
        Format::Text,
        b"4 begin 1000 0xffffffffffffffff 7 # hints\n4 r 1000 8\n4 end\n5 begin\n5 end\n4 w 8 1\n",
    )
    .unwrap();
    assert_eq!(
        items(&trace),
        [
            "0:WorkBegin { hints: [4096, 18446744073709551615, 7] }",
            "0:r 1000 8 0+0",
            "0:WorkEnd",
            "1:WorkBegin { hints: [] }",
            "1:WorkEnd",
            "0:w 8 1 0+0"
        ]
    );
    assert_eq!(trace::info(&trace).unwrap().work_items, 2);
    for (input, says) in [
        (
            &b"1 begin 10 zz\n"[..],
            &["line 1", "a hint must be hexadecimal", "`zz`"][..],
        ),
        (b"1 r 10 4\n1 end 5\n", &["line 2", "`5` is too much"]),
        (b"begin 10\n", &["`begin`"]),
    ] {
        fails(Format::Text, input, says);
    }
}

#[test]
fn prefetches_are_counted_apart_and_touch_no_page() {
    let trace = import(
        Format::Text,
        b"1 r 1000 8\n1 p 5000 1\n1 p ffffffffffffffff 1\n1 w 1ff8 8\n",
    )
    .unwrap();
    let info = trace::info(&trace).unwrap();
    assert_eq!(
        [info.references, info.reads, info.writes, info.prefetches],
        [4, 1, 1, 2]
    );
    assert_eq!((info.data_pages, info.threads[0].prefetches), (1, 2));
}

#[test]
fn bad_text_is_refused_with_its_place() {
    for (input, says) in [
        (
            &b"1 r 10 8\n1 x 10 8\n"[..],
            &["line 2 (byte 9)", "r, w, m, i or p", "`x`"][..],
        ),
        (b"one r 10 8\n", &["line 1 (byte 0)", "`one`"]),
        (b"1 r zz 8\n", &["hexadecimal", "`zz`"]),
        (b"1 r 11112222333344445 8\n", &["64 bits"]),
        (b"1 r 10 0\n", &["1 to 65535"]),
        (b"1 r 10 65536\n", &["1 to 65535"]),
        (b"1 r 10\n", &["1 to 65535", "``"]),
        (b"1 r 10 8 9\n", &["`9` is too much"]),
        (b"\nb 0\n", &["line 2 (byte 1)", "from 1 on"]),
        (b"b\n", &["from 1 on"]),
        (b"1 r 10 8\nb 3\n", &["line 2 (byte 9)", "3 threads", "only 1"]),
        (b"99999999999999999999 r 10 8\n", &["a thread number"]),
        (b"\x80\xff\n", &["`\\x80\\xff`"]),
    ] {
        fails(Format::Text, input, says);
    }
}

#[test]
fn lackey_is_read_as_printed() {
    let trace = import(
        Format::Lackey,
        b"==9== Lackey, an example Valgrind tool\n==9== \nI  0401ab70,3\nI  0401ab73,5\n S 1fff000658,8\n L 1fff000650,16\nI  0401b770,1\n M 0421c7cc,4\n==9== \n--9-- done\n",
    )
    .unwrap();
    assert_eq!(
        items(&trace),
        [
            "0:i 401ab70 3 401ab70+1",
            "0:i 401ab73 5 401ab73+1",
            "0:w 1fff000658 8 401ab73+0",
            "0:r 1fff000650 16 401ab73+0",
            "0:i 401b770 1 401b770+1",
            "0:m 421c7cc 4 401b770+0"
        ]
    );
    assert_eq!(trace.instructions(), Some(3));
    assert!(trace.header().has_fetches && trace.header().has_pcs);
    for (input, says) in [
        (
            &b"I  0401ab70,3\nhello\n"[..],
            &["line 2 (byte 14)", "`hello`", "--log-file"][..],
        ),
        (b"I  0401zz70,3\n", &["hexadecimal"]),
        (b"I  0401ab70\n", &["not a line of lackey's"]),
        (b" L 10,0\n", &["1 to 65535"]),
    ] {
        fails(Format::Lackey, input, says);
    }
}

#[test]
fn din_is_read_as_dinero_does() {
    let trace = import(
        Format::Din,
        b"2 0 a fetch\n0 1000\n1 0x70f60888 4\n\n4 0\n3 77\n0 FFFFFFFFFFFFFFFC\n",
    )
    .unwrap();
    assert_eq!(
        items(&trace),
        [
            "0:i 0 4 0+0",
            "0:r 1000 4 0+0",
            "0:w 70f60888 4 0+0",
            "0:r fffffffffffffffc 4 0+0"
        ]
    );
    assert!(trace.header().has_fetches && !trace.header().counts_instructions);
    fails(Format::Din, b"0 10\n7 10\n", &["line 2 (byte 5)", "`7`"]);
    fails(Format::Din, b"0 xyz\n", &["line 1", "hexadecimal", "`xyz`"]);
    fails(Format::Din, b"0\n", &["hexadecimal"]);
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    std::io::copy(&mut liblzma::read::XzEncoder::new(bytes, 1), &mut packed).unwrap();
    packed
}

#[test]
fn a_failed_import_leaves_no_file_and_never_eats_its_input() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.txt"), folder.path().join("out.dtr"));
    std::fs::write(&input, "1 r 10 8\nnonsense\n").unwrap();
    assert!(import::file(Format::Text, &input, &output).is_err());
    assert!(!output.exists());
    // A trace that was there before stays, and nothing lies beside it.
    std::fs::write(&output, "old").unwrap();
    let before = std::fs::read_dir(folder.path()).unwrap().count();
    assert!(import::file(Format::Text, &input, &output).is_err());
    assert_eq!(std::fs::read(&output).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), before);
    let error = import::file(Format::Text, &input, &input).unwrap_err().to_string();
    assert!(error.contains("is the file to import"), "{error}");
    assert_eq!(std::fs::read_to_string(&input).unwrap(), "1 r 10 8\nnonsense\n");
    let error = import::file(Format::Text, folder.path(), &output)
        .unwrap_err()
        .to_string();
    assert!(error.contains("directory"), "{error}");
    let error = import::file(Format::Text, folder.path().join("none"), &output)
        .unwrap_err()
        .to_string();
    assert!(error.contains("none") && error.contains("No such file"), "{error}");
}

/// Counts of what lackey prints of a real program, taken by looking at the text in another way.
#[test]
fn real_lackey_output_is_counted_right() {
    let folder = tempfile::tempdir().unwrap();
    let (log, output) = (folder.path().join("lackey.log"), folder.path().join("out.dtr"));
    let ran = std::process::Command::new("valgrind")
        .args(["--tool=lackey", "--trace-mem=yes"])
        .arg(format!("--log-file={}", log.display()))
        .arg("/bin/true")
        .status();
    if !ran.is_ok_and(|status| status.success()) {
        return harness::not_installed("valgrind is not installed or cannot run here");
    }
    let text = std::fs::read_to_string(&log).unwrap();
    let lines = |start: &str| text.lines().filter(|l| l.starts_with(start)).count() as u64;
    let summary = import::file(Format::Lackey, &log, &output).unwrap().summary;
    let trace = Trace::open(&output).unwrap();
    let info = trace::info(&trace).unwrap();
    assert_eq!(
        [info.fetches, info.reads, info.writes, info.modifies],
        ["I ", " L", " S", " M"].map(lines)
    );
    assert_eq!(info.instructions, Some(lines("I ")));
    assert!(info.references > 50_000, "{}", info.references);
    assert_eq!(summary.references, info.references);
    assert!(
        info.bytes_per_reference < 1.0,
        "{} bytes a reference",
        info.bytes_per_reference
    );

    // And back to text, line by line.
    let printed = items(&trace);
    let said = text.lines().filter(|l| !l.starts_with("==")).map(|l| {
        let (addr, size) = l[3..].split_once(',').unwrap();
        let op = match &l[..2] {
            "I " => 'i',
            " L" => 'r',
            " S" => 'w',
            _ => 'm',
        };
        format!("0:{op} {} {size} ", addr.trim_start_matches('0'))
    });
    for (printed, said) in printed.iter().zip(said) {
        assert!(printed.starts_with(&said), "{printed} is not {said}");
    }
}
