use super::*;
use trace::{Batch, Header, Op, Options, Trace, Writer};

fn record(kind: u32, payload: &[u64]) -> Vec<u64> {
    let head = wire::RECORD << 60 | u64::from(kind) << 48 | payload.len() as u64;
    [&[head], payload].concat()
}

/// A superblock of one instruction at `pc`, which reads (0) or writes (1) eight bytes.
fn block(number: u64, pc: u64, op: u64) -> Vec<u64> {
    let payload = [
        number,
        1 | 1 << 16 | 1 << 32,
        pc | 4 << 56,
        8 << 16 | op << 32,
        1 | 1 << 16,
        0,
        0,
        0,
    ];
    record(record::BLOCK, &payload)
}

fn run(number: u64, addr: u64) -> Vec<u64> {
    vec![wire::BLOCK << 60 | number, addr]
}

fn hello(pid: u32, parent: u32, forked: bool) -> Hello {
    Hello {
        pid,
        parent,
        forked,
        parent_slots: 2,
    }
}

/// The accesses of the threads, as operation and address.
fn deeds(write: impl FnOnce(&mut ProcessTree)) -> (Vec<Vec<(Op, u64)>>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    let writer = Writer::new(
        std::fs::File::create(&path).unwrap(),
        &Header::default(),
        Options::default(),
    )
    .unwrap();
    let all = 0..u64::MAX;
    let mut tree = ProcessTree::new(Output::new(writer, vec![all], false, true, false));
    write(&mut tree);
    let notes = std::mem::take(&mut tree.commons.notes);
    tree.out.finish().0.unwrap();
    let trace = Trace::open(&path).unwrap();
    let of = |thread| {
        let (mut stream, mut batch, mut all) = (trace.thread(thread).unwrap(), Batch::default(), Vec::new());
        while stream.next(&mut batch).unwrap() {
            all.extend(batch.refs.iter().map(|r| (r.op, r.addr)));
        }
        all
    };
    ((0..trace.threads().len() as ThreadId).map(of).collect(), notes)
}

/// A child that speaks late knows what its parent knew when it made it, and not what came later.
#[test]
fn a_child_is_as_its_parent_was_when_it_was_made() {
    let (done, notes) = deeds(|tree| {
        tree.open(0, hello(10, 1, false));
        tree.words(
            0,
            &[record(record::PROGRAM, &[1, 0]), block(0, 0x400, 0), run(0, 0x1000)].concat(),
        );
        tree.words(0, &record(record::FORK, &[11]));
        // The parent continues in another thread, and translates code that the child does not have.
        tree.words(
            0,
            &[
                record(record::THREAD_CREATE, &[2]),
                record(record::THREAD, &[2]),
                block(1, 0x500, 0),
                run(1, 0x2000),
            ]
            .concat(),
        );
        tree.open(1, hello(11, 10, true));
        tree.words(
            1,
            &[
                record(record::THREAD, &[1]),
                run(0, 0x3000),
                block(1, 0x600, 1),
                run(1, 0x4000),
            ]
            .concat(),
        );
        tree.close(1);
        tree.close(0);
    });
    assert_eq!(notes, Vec::<String>::new());
    let child = vec![(Op::Read, 0x3000), (Op::Write, 0x4000)];
    assert_eq!(done, [vec![(Op::Read, 0x1000)], child, vec![(Op::Read, 0x2000)]]);
}

/// The note of a malformed record bounds the loss.
#[test]
fn what_makes_no_sense_is_counted() {
    let (done, notes) = deeds(|tree| {
        tree.open(0, hello(10, 1, false));
        tree.words(
            0,
            &[record(record::PROGRAM, &[1, 0]), block(0, 0x400, 0), run(0, 0x1000)].concat(),
        );
        tree.words(0, &[run(0, 0x1008), run(7, 0x2000), run(7, 0x2008)].concat());
        tree.words(0, &run(0, 0x1010));
        tree.close(0);
    });
    assert_eq!(done, [[0x1000, 0x1008, 0x1010].map(|addr| (Op::Read, addr))]);
    assert!(
        notes.len() == 1 && notes[0].contains("at most 2 references"),
        "{notes:?}"
    );
}
