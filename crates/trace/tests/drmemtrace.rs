//! drmemtrace, record by record.

use crate::import::{fails, import, items};

use trace::import::Format;
use trace::{Chosen, Gaps, KernelPart, Trace, Unknown};

/// A record.
pub fn entry(kind: u16, size: u16, value: u64) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &size.to_le_bytes(), &value.to_le_bytes()].concat()
}

pub fn drmemtrace() -> Vec<u8> {
    let lengths = u64::from_le_bytes([3, 5, 0, 0, 0, 0, 0, 0]);
    [
        entry(25, 0, 5),        // header
        entry(28, 12, 5),       // marker: version
        entry(28, 9, 0x40),     // marker: file type, x86-64
        entry(22, 4, 501),      // thread
        entry(24, 4, 500),      // process
        entry(28, 18, 16384),   // marker: page size
        entry(47, 3, 0xc3c3c3), // encoding
        entry(10, 4, 0x1000),   // instruction
        entry(0, 8, 0x7fff0),   // read
        entry(17, 2, lengths),  // bundle
        entry(1, 4, 0x8000),    // write
        entry(3, 64, 0x9000),   // prefetch
        entry(29, 2, 0x1100),   // instruction without a fetch
        entry(0, 1, 0x8001),    // read
        entry(22, 4, 502),      // thread
        entry(24, 4, 500),      // process
        entry(28, 14, 3),       // marker: window
        entry(48, 2, 0x2000),   // taken jump
        entry(22, 4, 501),      // thread
        entry(1, 2, 0x8002),    // write
        entry(23, 0, 501),      // thread exit
        entry(26, 0, 0),        // footer
    ]
    .concat()
}

pub const DRMEMTRACE: [&str; 11] = [
    "0:i 1000 4 1000+1",
    "0:r 7fff0 8 1000+0",
    "0:i 1004 3 1004+1",
    "0:i 1007 5 1007+1",
    "0:w 8000 4 1007+0",
    "0:p 9000 1 1007+0",
    "0:r 8001 1 1100+0",
    "1:Window { index: 3 }",
    "1:i 2000 2 2000+1",
    "0:w 8002 2 1100+0",
    "0:Exit",
];

#[test]
fn drmemtrace_is_read_record_by_record() {
    let trace = import(Format::Drmemtrace, &drmemtrace()).unwrap();
    assert_eq!(items(&trace), DRMEMTRACE);
    assert_eq!(trace.instructions(), Some(4));
    assert_eq!(trace.threads().iter().map(|t| t.number).collect::<Vec<_>>(), [501, 502]);
    assert_eq!(trace.processes().iter().map(|p| p.pid).collect::<Vec<_>>(), [500]);
    assert_eq!(trace.header().page_bytes, 16384);

    let start = |more: Vec<u8>| [entry(25, 0, 5), more].concat();
    fails(
        Format::Drmemtrace,
        &entry(0, 8, 1),
        &["byte 0", "no header", "drraw2trace"],
    );
    fails(Format::Drmemtrace, &entry(25, 0, 5 | 28 << 32), &["32-bit"]);
    fails(Format::Drmemtrace, &start(entry(28, 9, 0x20)), &["byte 12", "32-bit"]);
    fails(
        Format::Drmemtrace,
        &start(entry(28, 9, 0x4000)),
        &["byte 12", "pieces of the kernel"],
    );
    fails(Format::Drmemtrace, b"", &["byte 0", "the file is empty"]);
    fails(Format::Drmemtrace, &start(entry(17, 9, 0)), &["bundle of 9"]);
    fails(
        Format::Drmemtrace,
        &drmemtrace()[..30],
        &["byte 24", "6 bytes into a record of 12"],
    );
}

/// What a file begins with: its type, and thread 501 of process 500.
pub fn begin(file_type: u64) -> Vec<u8> {
    begin_of(file_type, 501)
}

pub fn begin_of(file_type: u64, thread: u64) -> Vec<u8> {
    [
        entry(25, 0, 7),
        entry(28, 12, 7),
        entry(28, 9, file_type),
        entry(22, 8, thread),
        entry(24, 8, 500),
    ]
    .concat()
}

/// An instruction that reads.
pub fn load(pc: u64, addr: u64) -> Vec<u8> {
    [entry(10, 4, pc), entry(0, 8, addr)].concat()
}

pub fn end_of(thread: u64) -> Vec<u8> {
    [entry(23, 0, thread), entry(26, 0, 0)].concat()
}

fn imported(parts: &[Vec<u8>]) -> Trace {
    import(Format::Drmemtrace, &parts.concat()).unwrap()
}

fn gaps(trace: &Trace) -> Gaps {
    trace.header().gaps.clone().unwrap_or_default()
}

#[test]
fn all_prefetches_of_data_count_and_those_of_code_do_not() {
    let prefetches = (0..50).map(|kind| entry(kind, 64, 0x8000));
    let of = |kinds: &[u16]| {
        kinds
            .iter()
            .map(|kind| entry(*kind, 64, 0x8000))
            .collect::<Vec<_>>()
            .concat()
    };
    assert_eq!(prefetches.count(), 50);
    let data: Vec<u16> = (2..=8).chain(32..=34).chain(41..=46).collect();
    let code: Vec<u16> = [9].into_iter().chain(35..=40).collect();
    let trace = imported(&[begin(0x8), entry(10, 4, 0x1000), of(&data), of(&code), of(&[27])]);
    let info = trace::info(&trace).unwrap();
    assert_eq!((info.prefetches, info.references), (16, 17));
    assert_eq!(trace.header().gaps, None);
}

#[test]
fn what_the_kernel_does_is_left_out_and_counted() {
    let kernel = |from: u16, to: u16| {
        [
            entry(28, from, 0),
            load(0xffff_ffff_8000_0000, 0xffff_8880_0000_0000),
            load(0xffff_ffff_8000_0004, 0x7000),
            // A bundle of two, and a round of a repeated instruction.
            entry(17, 2, 0x0404),
            entry(29, 4, 0xffff_ffff_8000_0004),
            entry(28, to, 0),
        ]
        .concat()
    };
    let trace = imported(&[
        begin(0x1240),
        load(0x1000, 0x5000),
        entry(31, 2, 0x1004),
        // A system call, a switch of threads, an interrupt.
        kernel(27, 28),
        kernel(34, 35),
        kernel(43, 44),
        // What belongs to the last instruction of the program.
        entry(1, 8, 0x6000),
        load(0x1006, 0x5008),
        end_of(501),
    ]);
    assert_eq!(
        items(&trace),
        [
            "0:i 1000 4 1000+1",
            "0:r 5000 8 1000+0",
            "0:i 1004 2 1004+1",
            "0:w 6000 8 1004+0",
            "0:i 1006 4 1006+1",
            "0:r 5008 8 1006+0",
            "0:Exit"
        ]
    );
    assert_eq!(trace.instructions(), Some(3));
    let expected = KernelPart {
        instructions: 12,
        references: 6,
    };
    assert_eq!(gaps(&trace).kernel, Some(expected));
}

#[test]
fn interrupts_nest_and_a_system_call_is_of_its_thread() {
    let trace = imported(&[
        begin(0x41040),
        entry(28, 43, 0),
        load(0x10, 0x5000),
        entry(28, 43, 0),
        entry(28, 44, 0),
        load(0x14, 0x5000),
        entry(28, 44, 0),
        // An end without a begin.
        entry(28, 44, 0),
        load(0x1000, 0x5000),
        // Another thread is no part of the call.
        entry(28, 27, 3),
        load(0x18, 0x5000),
        entry(22, 8, 502),
        entry(24, 8, 500),
        load(0x1010, 0x5000),
        entry(22, 8, 501),
        load(0x1c, 0x5000),
        entry(28, 28, 3),
        // The kernel is known by its addresses, too.
        load(0xffff_8000_0000_1000, 0x5000),
        load(0x1004, 0x5000),
    ]);
    let fetches = items(&trace).into_iter().filter(|item| item.contains(":i"));
    assert_eq!(
        fetches.collect::<Vec<_>>(),
        ["0:i 1000 4 1000+1", "1:i 1010 4 1010+1", "0:i 1004 4 1004+1"]
    );
    assert_eq!(gaps(&trace).kernel.unwrap().instructions, 5);
}

/// What was cut out of a longer trace.
#[test]
fn a_trace_may_begin_within_the_kernel() {
    let trace = imported(&[
        begin(0x1040),
        load(0xffff_ffff_8000_0000, 0x5000),
        // A bundle goes on where the instruction before it ended.
        entry(17, 1, 4),
        entry(28, 28, 3),
        load(0x1000, 0x5000),
    ]);
    assert_eq!(items(&trace), ["0:i 1000 4 1000+1", "0:r 5000 8 1000+0"]);
    let expected = KernelPart {
        instructions: 2,
        references: 1,
    };
    assert_eq!(gaps(&trace).kernel, Some(expected));
}

#[test]
fn file_types_say_what_is_missing() {
    let of = |file_type: u64| imported(&[begin(file_type), load(0x1000, 0x5000), end_of(501)]);
    assert_eq!(of(0x240).header().gaps, None);
    for (file_type, fetches, data) in [
        (0x41, true, true),
        (0x1c0, true, true),
        (0xc0, true, false),
        (0x140, false, true),
        // Filtered up to a marker that never came.
        (0x21c0, true, true),
    ] {
        let trace = of(file_type);
        let gaps = gaps(&trace);
        assert_eq!(
            (gaps.filtered_fetches, gaps.filtered_data),
            (fetches, data),
            "{file_type:#x}"
        );
        assert_eq!(trace.instructions(), (!fetches).then_some(1), "{file_type:#x}");
        assert_eq!(trace.header().chosen, None);
    }
    let code = imported(&[begin(0x44), entry(10, 4, 0x1000), entry(10, 4, 0x1004), end_of(501)]);
    assert!(gaps(&code).no_data);
    assert_eq!(code.instructions(), Some(2));
    // Nobody said so, and it is so.
    assert!(gaps(&imported(&[begin(0x40), entry(10, 4, 0x1000)])).no_data);
    assert!(!gaps(&of(0x44)).no_data);
}

/// Where filtering ends, counting begins.
#[test]
fn what_is_filtered_at_first_warms_caches() {
    let trace = imported(&[
        begin(0x21c0),
        load(0x1000, 0x5000),
        entry(28, 23, 0),
        load(0x1004, 0x6000),
        entry(28, 23, 0),
        end_of(501),
    ]);
    assert_eq!(
        items(&trace),
        [
            "0:i 1000 4 1000+1",
            "0:r 5000 8 1000+0",
            "0:Counted { index: 0 }",
            "0:i 1004 4 1004+1",
            "0:r 6000 8 1004+0",
            "0:Exit"
        ]
    );
    assert_eq!(trace.header().gaps, None);
    let warmed = Chosen {
        windows: 1,
        warmed: true,
        ..Chosen::default()
    };
    assert_eq!(trace.header().chosen, Some(warmed));
}

/// Each window begins filtered, and the recorder repeats its number.
#[test]
fn each_window_is_warmed_before_it_counts() {
    let window = |number: u64| {
        [
            entry(28, 14, number),
            load(0x1000, 0x5000),
            entry(28, 14, number),
            entry(28, 23, 0),
            load(0x1004, 0x5000 + number),
        ]
        .concat()
    };
    let trace = imported(&[begin(0x21c0), window(0), window(1), entry(28, 14, 2), load(0x1000, 1)]);
    let events = items(&trace).into_iter().filter(|item| item.contains('{'));
    assert_eq!(
        events.collect::<Vec<_>>(),
        [
            "0:Window { index: 0 }",
            "0:Counted { index: 0 }",
            "0:Window { index: 1 }",
            "0:Counted { index: 1 }",
            "0:Window { index: 2 }"
        ]
    );
    let chosen = trace.header().chosen.clone().unwrap();
    assert_eq!((chosen.windows, chosen.warmed), (3, true));
}

#[test]
fn windows_alone_are_parts_of_the_run() {
    let trace = imported(&[
        begin(0x40),
        entry(28, 14, 4),
        load(0x1000, 0x5000),
        entry(28, 14, 5),
        load(0x1000, 0x5000),
    ]);
    let chosen = trace.header().chosen.clone().unwrap();
    assert_eq!((chosen.windows, chosen.warmed), (2, false));
}

#[test]
fn what_is_not_known_is_counted_and_named() {
    let trace = imported(&[
        [entry(25, 0, 9), begin(0x8_0040)[12..].to_vec()].concat(),
        entry(60, 4, 0x1000),
        load(0x1000, 0x5000),
        entry(60, 4, 0x1000),
        entry(999, 4, 0x1000),
        entry(50, 0, 0),
        entry(28, 47, 0),
        entry(28, 200, 0),
        entry(28, 46, 0x7000),
        end_of(501),
    ]);
    assert_eq!(items(&trace).len(), 3);
    let unknown = |(what, count): (&str, u64)| Unknown {
        what: what.into(),
        count,
    };
    let expected = [
        ("record type 50", 1),
        ("record type 60", 2),
        ("record type 999", 1),
        ("marker 47", 1),
        ("marker 200", 1),
        ("file type 0x80000", 1),
        ("format version 9, newer than 7,", 1),
    ];
    assert_eq!(gaps(&trace).unknown, expected.map(unknown));
    // What has nothing but such is no trace.
    let noise: Vec<Vec<u8>> = (100..300).map(|kind| entry(kind, 0, 0)).collect();
    fails(
        Format::Drmemtrace,
        &[begin(0x40), noise.concat()].concat(),
        &["byte 828", "more than 64", "record type 164", "damaged"],
    );
}

#[test]
fn a_number_of_a_thread_is_given_again_after_its_end() {
    let thread = |tid: u64| [entry(22, 8, tid), entry(24, 8, 500), load(0x1000, tid)].concat();
    let trace = imported(&[
        begin(0x40),
        thread(501),
        end_of(501),
        thread(501),
        thread(u64::MAX),
        end_of(501),
    ]);
    assert_eq!(
        trace.threads().iter().map(|t| t.number).collect::<Vec<_>>(),
        [501, 501, u64::MAX]
    );
    assert_eq!(trace.processes().len(), 1);
}
