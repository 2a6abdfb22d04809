use std::ptr::null;

use super::*;

fn summary() -> domicile_summary {
    domicile_summary {
        name: c"u".as_ptr(),
        start: std::ptr::without_provenance(0x10000),
        bytes: 513 * 513 * 8,
        offset: 8,
        unit: 513 * 8,
        span: 511 * 8,
        inner: [
            domicile_inner { stride: 16, count: 2 },
            domicile_inner::default(),
            domicile_inner::default(),
        ],
        distance: -4104,
        communication: abi::SHIFT,
        access: abi::READS | abi::WRITES,
    }
}

fn a_loop(summaries: &[domicile_summary]) -> domicile_loop {
    domicile_loop {
        version: VERSION,
        count: summaries.len() as u32,
        place: c"calc1 (swim.f90:123)".as_ptr(),
        iterations: 511,
        chunk: 7,
        schedule: abi::CHUNKED,
        reverse: 1,
        threads: 4,
        reserved: 0,
        summaries: summaries.as_ptr(),
    }
}

fn of(from: &domicile_loop) -> Result<Taken, Malformed> {
    // SAFETY: all pointers of these tests point to what they should, or are null.
    unsafe { taken(from) }
}

#[test]
fn everything_arrives() {
    let summaries = [summary()];
    let taken = of(&a_loop(&summaries)).unwrap();
    let described = Loop {
        place: "calc1 (swim.f90:123)".into(),
        threads: 4,
        iterations: 511,
        schedule: Schedule::Chunked(7),
        direction: Direction::Reverse,
        summaries: vec![Summary {
            name: "u".into(),
            start: 0x10000,
            bytes: 513 * 513 * 8,
            offset: 8,
            unit: 513 * 8,
            span: 511 * 8,
            inner: vec![Inner { stride: 16, count: 2 }],
            communication: Communication::Shift(-4104),
            access: Access::ReadWrite,
        }],
    };
    assert_eq!(
        taken,
        Taken {
            described,
            passed_over: vec![]
        }
    );
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    type Change = fn(&mut domicile_loop);
    let wrong: [(&str, Change); 11] = [
        ("version 2;", |l| l.version = 2),
        ("4294967295 summaries", |l| l.count = u32::MAX),
        ("no summaries", |l| l.count = 0),
        ("not the address of summaries", |l| l.summaries = null()),
        ("not the address of summaries", |l| {
            l.summaries = std::ptr::without_provenance(1)
        }),
        ("reserved field is 1", |l| l.reserved = 1),
        ("3 is no schedule", |l| l.schedule = 3),
        ("pieces of 0 iterations", |l| l.chunk = 0),
        ("reverse is 2", |l| l.reverse = 2),
        ("129 threads", |l| l.threads = 129),
        ("threads; from 1 to 128", |l| l.threads = u32::MAX),
    ];
    let summaries = [summary()];
    for (why, change) in wrong {
        let mut one = a_loop(&summaries);
        change(&mut one);
        let error = of(&one).unwrap_err().to_string();
        assert!(error.contains(why), "{why}: {error}");
    }
    // SAFETY: a null pointer is refused before anything is read, and so is one that cannot be a loop's.
    let (null, odd) = unsafe { (taken(null()), taken(std::ptr::without_provenance(3))) };
    assert!(null.unwrap_err().to_string().contains("a null pointer"));
    assert!(odd.unwrap_err().to_string().contains("0x3 is not the address"));
}

#[test]
fn summaries_that_cannot_be_are_passed_over_and_the_others_count() {
    type Change = fn(&mut domicile_summary);
    let wrong: [(&str, Change); 6] = [
        ("u: is at no address", |s| s.start = null()),
        ("u: a span of 0", |s| s.span = 0),
        ("3 is no kind of communication", |s| s.communication = 3),
        ("access is 0", |s| s.access = 0),
        ("access is 4", |s| s.access = 4),
        ("ends beyond the last address", |s| s.bytes = u64::MAX),
    ];
    for (why, change) in wrong {
        let mut bad = summary();
        change(&mut bad);
        let both = [bad, summary()];
        let taken = of(&a_loop(&both)).unwrap();
        assert_eq!(taken.described.summaries.len(), 1);
        assert!(
            taken.passed_over[0].to_string().contains(why),
            "{:?}",
            taken.passed_over
        );
        // Alone it leaves nothing.
        assert!(of(&a_loop(&both[..1])).unwrap_err().to_string().contains(why));
    }
}

#[test]
fn texts_may_be_missing_long_or_no_text() {
    let long = std::ffi::CString::new(vec![b'x'; 1000]).unwrap();
    let mut one = summary();
    one.name = long.as_ptr();
    let mut other = summary();
    other.name = null();
    let mut third = summary();
    third.name = c"\xff!".as_ptr();
    let summaries = [one, other, third];
    let mut a_loop = a_loop(&summaries);
    a_loop.place = null();
    let described = of(&a_loop).unwrap().described;
    assert_eq!(described.place, "a parallel loop");
    let names: Vec<&str> = described
        .summaries
        .iter()
        .map(|summary| summary.name.as_str())
        .collect();
    assert_eq!(
        names,
        [&"x".repeat(LONGEST_TEXT), "an array without a name", "\u{fffd}!"]
    );
}

#[cfg(not(miri))]
#[test]
fn no_threads_are_as_many_as_there_would_be() {
    let summaries = [summary()];
    let mut a_loop = a_loop(&summaries);
    a_loop.threads = 0;
    assert_eq!(of(&a_loop).unwrap().described.threads, threads());
}

#[test]
fn summaries_are_counted_before_they_are_copied() {
    let summaries = [summary(), summary()];
    let mut one = a_loop(&summaries);
    let count_of = |from: *const domicile_loop| {
        // SAFETY: null, at no address of a loop, or a loop.
        unsafe { count(from) }
    };
    assert_eq!(count_of(&one), 2);
    (one.count, one.version) = (MOST_SUMMARIES + 1, VERSION);
    assert_eq!(count_of(&one), 0);
    (one.count, one.version) = (2, VERSION + 1);
    assert_eq!(count_of(&one), 0);
    assert_eq!((count_of(null()), count_of(std::ptr::without_provenance(3))), (0, 0));
}
