//! Whatever happens to a file, reading it ends: with what is whole, or with an error that says
//! where. Never in a panic, never in wrong data, never in memory that the file merely claims.

use crate::memory;

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use memory::Shared;
use proptest::prelude::*;
use trace::{
    Batch, Event, Header, Item, Op, Options, Process, Ref, Site, Stack, Symbol, Thread, ThreadId, Trace, TraceError,
    Writer,
};

/// A small trace with every kind of block: two threads, three chunks each, tables that grow.
fn small(out: impl Write + Send + 'static) -> Result<(), TraceError> {
    let header = Header {
        program: "small".into(),
        ..Header::default()
    };
    let mut writer = Writer::new(out, &header, Options::default())?;
    let process = writer.process(Process::default());
    let threads = [1, 2].map(|number| {
        writer.thread(Thread {
            process,
            number,
            ..Thread::default()
        })
    });
    for round in 0..3u64 {
        let site = writer.site(Site {
            pc: 0x400 + round,
            op: Op::Read,
            size: 8,
        });
        let stack = writer.stack(Stack {
            process,
            frames: vec![trace::Frame { pc: round }],
        });
        writer.symbols([Symbol {
            process,
            name: format!("s{round}"),
            ..Symbol::default()
        }]);
        for thread in threads {
            let kind = trace::Allocation::Heap;
            writer.event(
                thread,
                Event::Alloc {
                    addr: 64 * round,
                    bytes: 64,
                    stack,
                    kind,
                },
            )?;
            for i in 0..20 {
                let addr = 0x1000 * u64::from(thread) + round * 100 + i * i;
                writer.push(
                    thread,
                    Ref {
                        addr,
                        site,
                        insns: 1,
                        op: Op::Read,
                        size: 8,
                    },
                )?;
            }
        }
        writer.flush()?;
    }
    writer.finish()?;
    Ok(())
}

fn small_bytes() -> Vec<u8> {
    let out = Shared::default();
    small(out.clone()).unwrap();
    out.take()
}

/// All of a thread's references and events.
type Content = Vec<Item>;

fn contents(trace: &Trace) -> Result<Vec<Content>, TraceError> {
    let mut all = Vec::new();
    for thread in 0..trace.threads().len() as ThreadId {
        let mut stream = trace.thread(thread)?;
        let mut batch = Batch::default();
        let mut content = Vec::new();
        while stream.next(&mut batch)? {
            let mut events = batch.events.iter().peekable();
            for at in 0..=batch.refs.len() {
                while let Some(timed) = events.next_if(|e| e.at as usize == at) {
                    content.push(Item::Event {
                        thread,
                        order: timed.order,
                        event: timed.event.clone(),
                    });
                }
                content.extend(batch.refs.get(at).map(|&reference| Item::Ref { thread, reference }));
            }
        }
        all.push(content);
    }
    Ok(all)
}

/// Reads everything there is to read in every way there is.
fn read_all(trace: &Trace) -> Result<Vec<Content>, TraceError> {
    let all = contents(trace)?;
    let items = trace.cat().collect::<Result<Vec<_>, _>>()?;
    assert_eq!(items.len(), all.iter().map(Vec::len).sum::<usize>());
    trace::info(trace)?;
    Ok(all)
}

#[test]
fn a_file_cut_anywhere_reads_up_to_its_last_whole_chunk() {
    let bytes = small_bytes();
    let whole = read_all(&Trace::from_bytes(bytes.clone()).unwrap()).unwrap();
    let items: usize = whole.iter().map(Vec::len).sum();
    let mut before = 0;
    for length in 0..bytes.len() {
        let trace = match Trace::from_bytes(bytes[..length].to_vec()) {
            Ok(trace) => trace,
            Err(error) => {
                // Only until the header is whole.
                assert_eq!(before, 0, "{length}: {error}");
                let error = error.to_string();
                assert!(
                    error.contains("empty") || error.contains("damaged at byte"),
                    "{length}: {error}"
                );
                continue;
            }
        };
        assert!(!trace.damage().is_empty(), "{length}: nothing is said to be lost");
        let read = read_all(&trace).unwrap();
        for (part, whole) in read.iter().zip(&whole) {
            assert_eq!(part[..], whole[..part.len()], "{length}");
        }
        let now: usize = read.iter().map(Vec::len).sum();
        assert!(now >= before && now <= items, "{length}");
        before = now;
    }
    assert_eq!(before, items, "only index and footer were cut off in the end");
}

#[test]
fn no_single_bit_flip_goes_unnoticed() {
    let bytes = small_bytes();
    let clean = Trace::from_bytes(bytes.clone()).unwrap();
    let whole = read_all(&clean).unwrap();
    let mut noticed = 0;
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let strict = Trace::from_bytes(flipped.clone()).and_then(|trace| Ok((read_all(&trace)?, trace)));
        match strict {
            Err(_) => noticed += 1,
            Ok((read, trace)) if !trace.damage().is_empty() => {
                noticed += 1;
                for (part, whole) in read.iter().zip(&whole) {
                    assert_eq!(part[..], whole[..part.len()], "bit {bit}");
                }
            }
            // A flip in the index leaves all blocks whole, but then the walk must have found them all.
            Ok((read, trace)) => {
                assert_eq!(read, whole, "bit {bit}");
                assert_eq!(trace.symbols(), clean.symbols(), "bit {bit}");
            }
        }
        // Salvaged, what is read was written.
        if let Ok(trace) = Trace::salvage_bytes(flipped)
            && let Ok(read) = contents(&trace)
        {
            for (thread, content) in read.iter().enumerate() {
                assert!(content.iter().all(|item| whole[thread].contains(item)), "bit {bit}");
            }
        }
    }
    assert_eq!(noticed, bytes.len() * 8);
}

#[test]
fn one_damaged_chunk_is_an_error_with_its_place_or_is_skipped() {
    let bytes = small_bytes();
    let whole = contents(&Trace::from_bytes(bytes.clone()).unwrap()).unwrap();
    // The second chunk of the first thread: 'dBlk', kind 4, thread 0, first reference 20.
    let at = (0..bytes.len() - 52)
        .find(|&i| &bytes[i..i + 5] == b"dBlk\x04" && bytes[i + 16] == 0 && bytes[i + 24] == 20)
        .unwrap();
    let mut broken = bytes;
    broken[at + 60] ^= 0x10;
    let trace = Trace::from_bytes(broken.clone()).unwrap();
    let error = contents(&trace).unwrap_err();
    assert!(
        matches!(error, TraceError::Damaged { offset, .. } if offset == at as u64),
        "{error}"
    );
    assert!(error.to_string().contains("checksum"), "{error}");
    let mut stream = trace.thread(0).unwrap().ahead(2);
    let mut batch = Batch::default();
    assert!(stream.next(&mut batch).unwrap());
    assert!(stream.next(&mut batch).is_err());
    assert!(
        !stream.next(&mut batch).unwrap(),
        "after an error the stream is at its end"
    );

    let trace = Trace::salvage_bytes(broken).unwrap();
    // Known before anything is read, and not counted.
    assert_eq!(trace.damage()[0].offset, at as u64);
    let said = trace.lost_in_a_clause().unwrap();
    assert!(
        said.contains("checksum") && said.contains("references are lost") && !said.contains("further"),
        "{said}"
    );
    let left = contents(&trace).unwrap();
    assert_eq!(left[0], [&whole[0][..21], &whole[0][42..]].concat());
    assert_eq!(left[1], whole[1]);
    let info = trace::info(&trace).unwrap();
    assert_eq!((info.damage.len(), info.references), (1, trace.references()));
}

#[test]
fn a_damaged_schedule_is_passed_over_when_salvaging() {
    let mut bytes = small_bytes();
    let items: usize = contents(&Trace::from_bytes(bytes.clone()).unwrap())
        .unwrap()
        .iter()
        .map(Vec::len)
        .sum();
    let at = bytes.windows(5).position(|w| w == b"dBlk\x05").unwrap();
    bytes[at + 52] ^= 1;
    let trace = Trace::from_bytes(bytes.clone()).unwrap();
    assert!(trace.order().any(|run| run.is_err()));
    let trace = Trace::salvage_bytes(bytes).unwrap();
    assert_eq!(trace.cat().filter(Result::is_ok).count(), items);
    assert!(trace.order().all(|run| run.is_ok()));
}

/// Version 1 had the same file but for the events of cache slots, version 2 but for summaries, teams and prefetches,
/// version 3 but for where counting begins, version 4 but for samples of call stacks.
#[test]
fn files_of_older_versions_are_read() {
    let items = |bytes: Vec<u8>| {
        let trace = Trace::from_bytes(bytes).unwrap();
        trace.cat().collect::<Result<Vec<_>, _>>().unwrap()
    };
    for version in [1, 2, 3, 4] {
        let mut old = small_bytes();
        assert_eq!(old[8], 5);
        old[8] = version;
        let crc = crc32fast::hash(&old[..12]);
        old[12..16].copy_from_slice(&crc.to_le_bytes());
        let old = items(old);
        assert!(!old.is_empty());
        assert_eq!(old, items(small_bytes()));
    }
}

#[test]
fn what_is_not_a_trace_is_recognised() {
    let says = |bytes: &[u8], what: &str| {
        let error = Trace::from_bytes(bytes.to_vec())
            .err()
            .expect("it is no trace")
            .to_string();
        assert!(error.contains(what), "{error}");
    };
    says(b"", "the file is empty");
    says(b"1 r 10 8\n", "not a Domicile trace");
    says(b"\x8dDOM", "damaged at byte 4");
    let mut other = small_bytes();
    other[8] = 9;
    says(&other, "checksum");
    let crc = crc32fast::hash(&other[..12]);
    other[12..16].copy_from_slice(&crc.to_le_bytes());
    says(&other, "format version 9");
    other[8] = 0;
    let crc = crc32fast::hash(&other[..12]);
    other[12..16].copy_from_slice(&crc.to_le_bytes());
    says(&other, "format version 0");

    let folder = tempfile::tempdir().unwrap();
    let error = Trace::open(folder.path()).err().unwrap().to_string();
    assert!(error.contains("not a regular file"), "{error}");
    let error = Trace::open(folder.path().join("none")).err().unwrap().to_string();
    assert!(error.contains("none"), "{error}");
}

/// Replaces a number in every block header of one kind and makes its checksum right again.
fn forge(bytes: &mut [u8], kind: u8, at: usize, value: u32) {
    for i in 0..bytes.len() - 52 {
        if &bytes[i..i + 4] == b"dBlk" && bytes[i + 4] == kind {
            bytes[i + at..i + at + 4].copy_from_slice(&value.to_le_bytes());
            let crc = crc32fast::hash(&bytes[i..i + 48]);
            bytes[i + 48..i + 52].copy_from_slice(&crc.to_le_bytes());
        }
    }
}

#[test]
fn absurd_sizes_are_refused_before_anything_is_allocated() {
    // Kinds of blocks, and where in the header the sizes are.
    for kind in 1..=7u8 {
        for at in [8, 12, 16, 20, 24, 28, 36, 40] {
            for value in [u32::MAX, 1 << 31, (64 << 20) + 1] {
                let mut bytes = small_bytes();
                forge(&mut bytes, kind, at, value);
                for salvage in [false, true] {
                    let open = if salvage {
                        Trace::salvage_bytes
                    } else {
                        Trace::from_bytes
                    };
                    if let Ok(trace) = open(bytes.clone()) {
                        let _ = contents(&trace);
                        let _ = trace.cat().take(1000).count();
                    }
                }
            }
        }
    }
    let mut bytes = small_bytes();
    let end = bytes.len() - 200;
    bytes.truncate(end);
    forge(&mut bytes, 1, 12, 1 << 30);
    let error = Trace::from_bytes(bytes).err().unwrap().to_string();
    assert!(
        error.contains("asks for too much at byte 16") && error.contains("1073741824"),
        "{error}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(harness::cases(300)))]

    #[test]
    fn noise_never_panics(noise in proptest::collection::vec(any::<u8>(), 0..400), from in 0usize..2000) {
        let mut bytes = small_bytes();
        let from = from % bytes.len();
        let upto = bytes.len().min(from + noise.len());
        bytes[from..upto].copy_from_slice(&noise[..upto - from]);
        for open in [Trace::salvage_bytes, Trace::from_bytes] {
            if let Ok(trace) = open(bytes.clone()) {
                let _ = contents(&trace);
                for item in trace.cat() {
                    if item.is_err() {
                        break;
                    }
                }
            }
        }
    }
}

/// A disk with room for so many bytes.
struct Full(Shared, Arc<Mutex<usize>>);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut room = self.1.lock().unwrap();
        let now = bytes.len().min(*room);
        if now == 0 {
            return Err(io::Error::from_raw_os_error(28));
        }
        *room -= now;
        self.0.write(&bytes[..now])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_keeps_what_it_has() {
    let length = small_bytes().len();
    for background in [false, true] {
        for room in [600, 900, 1500] {
            let kept = Shared::default();
            let header = Header {
                program: "full".into(),
                ..Header::default()
            };
            let options = Options {
                background,
                ..Options::default()
            };
            let mut writer = Writer::new(Full(kept.clone(), Arc::new(Mutex::new(room))), &header, options).unwrap();
            let process = writer.process(Process::default());
            let thread = writer.thread(Thread {
                process,
                ..Thread::default()
            });
            let site = writer.site(Site {
                pc: 1,
                op: Op::Write,
                size: 8,
            });
            let mut fill = || -> Result<(), TraceError> {
                for i in 0..1000u64 {
                    let addr = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    writer.push(
                        thread,
                        Ref {
                            addr,
                            site,
                            insns: 1,
                            op: Op::Write,
                            size: 8,
                        },
                    )?;
                    if i % 20 == 19 {
                        writer.flush()?;
                    }
                }
                Ok(())
            };
            let failure = fill().and_then(|()| writer.finish().map(|_| ())).unwrap_err();
            let trace = Trace::from_bytes(kept.take()).unwrap();
            assert!(!trace.damage().is_empty());
            assert_eq!(contents(&trace).unwrap()[0].len() as u64, trace.references());
            let TraceError::Write { references, .. } = failure else {
                panic!("{failure}")
            };
            assert_eq!(references, trace.references(), "the error counts what is kept");
            assert!(failure.to_string().contains("No space left"), "{failure}");
        }
    }
    let error = small(Full(Shared::default(), Arc::new(Mutex::new(length - 1)))).unwrap_err();
    assert!(error.to_string().contains("the first 120 references"), "{error}");
}

#[test]
fn a_dropped_writer_leaves_a_whole_trace() {
    let out = Shared::default();
    let mut writer = Writer::new(out.clone(), &Header::default(), Options::default()).unwrap();
    let process = writer.process(Process::default());
    let thread = writer.thread(Thread {
        process,
        ..Thread::default()
    });
    let site = writer.site(Site {
        pc: 1,
        op: Op::Read,
        size: 1,
    });
    writer
        .push(
            thread,
            Ref {
                addr: 9,
                site,
                insns: 0,
                op: Op::Read,
                size: 1,
            },
        )
        .unwrap();
    drop(writer);
    let trace = Trace::from_bytes(out.take()).unwrap();
    assert!(trace.damage().is_empty());
    assert_eq!(trace.references(), 1);
}
