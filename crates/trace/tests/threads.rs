//! Traces may be written and read on any thread, and by several at once.

mod memory;

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
