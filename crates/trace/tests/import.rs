//! Each importer against small inputs whose records are known.

mod memory;

use memory::Shared;
use trace::import::{self, Format};
use trace::{Event, Header, Item, Op, Options, Trace, TraceError, Writer};

fn import(format: Format, input: &[u8]) -> Result<Trace, TraceError> {
    let out = Shared::default();
    let mut writer = Writer::new(out.clone(), &Header::default(), Options::default())?;
    import::read(format, std::io::Cursor::new(input.to_vec()), "input", &mut writer)?;
    writer.finish()?;
    Trace::from_bytes(out.take())
}

/// Items as short text: `thread:op addr size pc+insns`, or the event.
fn items(trace: &Trace) -> Vec<String> {
    let one = |item| match item {
        Item::Ref { thread, reference: r } => {
            let op = match r.op {
                Op::Read => 'r',
                Op::Write => 'w',
                Op::Modify => 'm',
                Op::Fetch => 'i',
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

fn fails(format: Format, input: &[u8], says: &[&str]) {
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
        b"# a comment\n7 r 7f0010 8\n  3\tw 0x7f0018 4 # another\r\n\n7 m FF 1\n3 i 401000 15",
    )
    .unwrap();
    assert_eq!(
        items(&trace),
        [
            "0:r 7f0010 8 0+0",
            "1:w 7f0018 4 0+0",
            "0:m ff 1 0+0",
            "1:i 401000 15 0+0"
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
fn bad_text_is_refused_with_its_place() {
    for (input, says) in [
        (
            &b"1 r 10 8\n1 x 10 8\n"[..],
            &["line 2 (byte 9)", "r, w, m or i", "`x`"][..],
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
