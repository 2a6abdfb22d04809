//! Traces may be written and read on any thread, and by several at once.

use crate::memory;

use memory::Shared;
use trace::{Batch, Header, Options, Process, Ref, Thread, ThreadStream, Trace, Writer};

#[test]
fn everything_can_be_sent_to_another_thread() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<Writer>();
    send::<ThreadStream>();
    send::<trace::OrderStream>();
    send::<trace::Cat>();
    send::<Trace>();
    sync::<Trace>();
}

#[test]
fn many_threads_read_one_trace_at_once() {
    let out = Shared::default();
    let options = Options {
        background: true,
        ..Options::default()
    };
    let mut writer = Writer::new(out.clone(), &Header::default(), options).unwrap();
    let process = writer.process(Process::default());
    let kind = trace::synthetic::Kind::Mixed;
    let mut written = Vec::new();
    for number in 0..4 {
        let thread = writer.thread(Thread {
            process,
            number,
            ..Thread::default()
        });
        let refs: Vec<Ref> = trace::synthetic::Stream::new(kind, number, &mut writer)
            .take(150_000)
            .collect();
        writer.refs(thread, &refs).unwrap();
        written.push(refs);
    }
    writer.finish().unwrap();
    let trace = Trace::from_bytes(out.take()).unwrap();
    std::thread::scope(|scope| {
        for (thread, written) in written.iter().enumerate() {
            for ahead in [0, 1, 4] {
                let trace = trace.clone();
                scope.spawn(move || {
                    let mut stream = trace.thread(thread as u32).unwrap();
                    if ahead > 0 {
                        stream = stream.ahead(ahead);
                    }
                    let (mut batch, mut read) = (Batch::default(), Vec::new());
                    while stream.next(&mut batch).unwrap() {
                        read.extend_from_slice(&batch.refs);
                    }
                    assert!(read == *written);
                });
            }
        }
    });
}

#[test]
fn a_stream_ahead_may_be_dropped_at_any_time() {
    let out = Shared::default();
    let mut writer = Writer::new(out.clone(), &Header::default(), Options::default()).unwrap();
    let process = writer.process(Process::default());
    let thread = writer.thread(Thread {
        process,
        ..Thread::default()
    });
    let kind = trace::synthetic::Kind::Hot;
    let refs: Vec<Ref> = trace::synthetic::Stream::new(kind, 1, &mut writer)
        .take(700_000)
        .collect();
    writer.refs(thread, &refs).unwrap();
    writer.finish().unwrap();
    let trace = Trace::from_bytes(out.take()).unwrap();
    for pieces in 0..5 {
        let mut stream = trace.thread(thread).unwrap().ahead(2);
        let mut batch = Batch::default();
        for _ in 0..pieces {
            assert!(stream.next(&mut batch).unwrap());
        }
    }
}

#[test]
fn what_is_appended_to_a_lent_buffer_is_written_as_if_it_were_given() {
    let write = |lend: bool| {
        let out = Shared::default();
        let options = Options {
            buffered_refs: 100_000,
            ..Options::default()
        };
        let mut writer = Writer::new(out.clone(), &Header::default(), options).unwrap();
        let process = writer.process(Process::default());
        let threads = [0, 1].map(|number| {
            writer.thread(Thread {
                process,
                number,
                ..Thread::default()
            })
        });
        let kind = trace::synthetic::Kind::Mixed;
        let refs: Vec<Ref> = trace::synthetic::Stream::new(kind, 5, &mut writer)
            .take(300_000)
            .collect();
        let mut rest = refs.as_slice();
        // Pieces of all lengths, also of none and of several chunks, the threads in turn.
        for (turn, length) in [10, 0, 65_536, 7, 65_519, 1, 150_000].into_iter().enumerate() {
            let thread = threads[turn % 2];
            let (piece, later) = rest.split_at(length);
            rest = later;
            if lend {
                let mut buffer = writer.lend(thread).unwrap();
                assert!(writer.event(thread, trace::Event::WorkEnd).is_err(), "it is lent");
                buffer.extend_from_slice(piece);
                writer.give_back(thread, buffer).unwrap();
            } else if length > 0 {
                writer.refs(thread, piece).unwrap();
            }
            writer.event(thread, trace::Event::WorkEnd).unwrap();
        }
        let summary = writer.finish().unwrap();
        assert_eq!(summary.references, 281_073);
        out.take()
    };
    let (given, lent) = (write(false), write(true));
    let read = |bytes| {
        let trace = Trace::from_bytes(bytes).unwrap();
        let mut batch = Batch::default();
        [0, 1].map(|thread| {
            let mut stream = trace.thread(thread).unwrap();
            let mut read = (Vec::new(), 0);
            while stream.next(&mut batch).unwrap() {
                read.0.extend_from_slice(&batch.refs);
                read.1 += batch.events.len();
            }
            read
        })
    };
    assert!(read(given) == read(lent));
}

#[test]
fn only_what_was_lent_can_be_given_back() {
    let mut writer = Writer::new(Shared::default(), &Header::default(), Options::default()).unwrap();
    let process = writer.process(Process::default());
    let thread = writer.thread(Thread {
        process,
        ..Thread::default()
    });
    assert!(writer.lend(thread + 1).is_err(), "there is no such thread");
    assert!(writer.give_back(thread, Vec::new()).is_err(), "nothing was lent");
    let buffer = writer.lend(thread).unwrap();
    assert!(writer.lend(thread).is_err(), "once is enough");
    assert!(writer.flush().is_err());
    writer.give_back(thread, buffer).unwrap();
    writer.flush().unwrap();
    assert!(writer.finish().is_ok());
}
