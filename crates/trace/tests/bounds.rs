//! What a file may ask of whoever reads it: work and memory have bounds in its length, whatever it says.

use crate::memory;

use memory::Shared;
use trace::{Batch, Header, Op, Options, Process, Ref, Site, Thread, ThreadId, Trace, TraceError, Writer};

/// A block whose checksums are right, whatever is in it. `numbers`: id, count, first, sum, events.
fn block(file: &mut Vec<u8>, kind: u8, numbers: (u32, u32, u64, u64, u32), payload: &[u8]) {
    let (id, count, first, sum, events) = numbers;
    let stored = zstd::bulk::compress(payload, 19).unwrap();
    let mut head = b"dBlk".to_vec();
    head.extend_from_slice(&[kind, 1, 0, 0]);
    for number in [stored.len() as u32, payload.len() as u32, id, count] {
        head.extend_from_slice(&number.to_le_bytes());
    }
    head.extend_from_slice(&first.to_le_bytes());
    head.extend_from_slice(&sum.to_le_bytes());
    for number in [events, crc32fast::hash(&stored)] {
        head.extend_from_slice(&number.to_le_bytes());
    }
    head.extend_from_slice(&crc32fast::hash(&head).to_le_bytes());
    file.extend_from_slice(&head);
    file.extend_from_slice(&stored);
}

/// What a trace of one thread begins with; its one site reads `size` bytes.
fn begun(size: u16) -> Vec<u8> {
    let mut file = b"\x8dDOM\r\n\x1a\n\x03\x00\x00\x00".to_vec();
    file.extend_from_slice(&crc32fast::hash(&file).to_le_bytes());
    let header = serde_json::to_vec(&Header::default()).unwrap();
    block(&mut file, 1, (0, 0, 0, 0, 0), &header);
    let tables = br#"{"processes":[{"pid":0,"parent":null,"program":"","arguments":[]}],"threads":[{"process":0,"number":0,"name":"","stack":null}]}"#;
    block(&mut file, 3, (0, 0, 0, 0, 0), tables);
    let mut site = vec![0, 0];
    let mut rest = u32::from(size);
    while rest > 127 {
        site.push(rest as u8 | 128);
        rest >>= 7;
    }
    site.push(rest as u8);
    block(&mut file, 2, (0, 1, 0, 0, 0), &site);
    file
}

/// A chunk of so many references by the one site, all to one address.
fn dense(file: &mut Vec<u8>, first: u64, refs: u32) {
    let mut payload = Vec::new();
    for number in [refs, 0, 1, 1, 2, 2, 8, 0] {
        payload.extend_from_slice(&number.to_le_bytes());
    }
    payload.push(0);
    // The first names the site; the second that the site follows itself; the others are as foreseen.
    let mut tokens = vec![0; refs as usize];
    (tokens[0], tokens[1]) = (0x10, 0x10);
    payload.extend_from_slice(&tokens);
    payload.extend_from_slice(&[0, 1, 0, 0, 1, 1]);
    payload.extend_from_slice(&[0; 8]);
    block(file, 4, (0, refs, first, 0, 0), &payload);
}

/// References and the bytes that they touch, by reading all of a trace.
fn work(trace: &Trace) -> Result<(u64, u64), TraceError> {
    let (mut refs, mut bytes) = (0, 0);
    for thread in 0..trace.threads().len() as ThreadId {
        let (mut stream, mut batch) = (trace.thread(thread)?, Batch::default());
        while stream.next(&mut batch)? {
            refs += batch.refs.len() as u64;
            bytes += batch.refs.iter().map(|r| u64::from(r.size)).sum::<u64>();
        }
    }
    Ok((refs, bytes))
}

/// The most that a chunk may ask of whoever reads it, and the fewest bytes of the file that it takes.
const CHUNK_REFS: u64 = 65_536;
const CHUNK_TOUCHES: u64 = (16 << 20) + CHUNK_REFS * 256;
const CHUNK_STORED: u64 = 52 + 32;

#[test]
fn the_work_of_reading_has_a_bound_in_the_files_length() {
    // As dense as can be: 300 chunks, each as full as it may be.
    let mut file = begun(256);
    (0..300).for_each(|chunk| dense(&mut file, chunk * CHUNK_REFS, CHUNK_REFS as u32));
    let most = file.len() as u64 / CHUNK_STORED;
    assert!(file.len() < 80_000, "{}", file.len());
    let (refs, bytes) = work(&Trace::from_bytes(file).unwrap()).unwrap();
    assert_eq!((refs, bytes), (300 * CHUNK_REFS, 300 * CHUNK_REFS * 256));
    assert!(refs <= most * CHUNK_REFS && bytes <= most * CHUNK_TOUCHES);
}

#[test]
fn a_chunk_of_wide_references_beyond_its_bound_is_damage() {
    for size in [257, 4096, 65_535u16] {
        let fits = (16 << 20) / u32::from(size);
        for (refs, whole) in [(fits, true), (fits + 1, false), (CHUNK_REFS as u32, false)] {
            let mut file = begun(size);
            dense(&mut file, 0, refs);
            let read = work(&Trace::from_bytes(file).unwrap());
            match read {
                Ok(read) => assert!(whole && read == (refs.into(), u64::from(refs) * u64::from(size))),
                Err(error) => {
                    let error = error.to_string();
                    assert!(!whole, "{size}: {error}");
                    assert!(
                        error.contains("damaged at byte") && error.contains("touch more than 16 MiB"),
                        "{error}"
                    );
                }
            }
        }
    }
}

/// Records of whole copies are wide, and no damage: their chunks are short.
#[test]
fn what_is_wide_is_written_in_chunks_that_can_be_read() {
    for (lend, runs) in [(false, false), (true, false), (false, true)] {
        let out = Shared::default();
        let mut writer = Writer::new(out.clone(), &Header::default(), Options::default()).unwrap();
        let process = writer.process(Process::default());
        let thread = writer.thread(Thread {
            process,
            ..Thread::default()
        });
        let sites = [8, 65_535].map(|size| {
            writer.site(Site {
                pc: 0,
                op: Op::Read,
                size,
            })
        });
        let refs: Vec<Ref> = (0..5000usize)
            .map(|i| Ref {
                addr: i as u64 * 65_536,
                site: sites[i % 2],
                insns: 1,
                op: Op::Read,
                size: [8, 65_535][i % 2],
            })
            .collect();
        if runs {
            let mut carried = 0;
            writer.runs(thread, &[], &mut carried, 0, &|_| None).unwrap();
        }
        for part in refs.chunks(1234) {
            if lend {
                let mut buffer = writer.lend(thread).unwrap();
                buffer.extend_from_slice(part);
                writer.give_back(thread, buffer).unwrap();
            } else {
                writer.refs(thread, part).unwrap();
            }
        }
        writer.finish().unwrap();
        let trace = Trace::from_bytes(out.take()).unwrap();
        let (mut stream, mut batch, mut read) = (trace.thread(0).unwrap(), Batch::default(), Vec::new());
        while stream.next(&mut batch).unwrap() {
            read.extend_from_slice(&batch.refs);
        }
        assert!(read == refs, "lent: {lend}, among runs: {runs}");
        assert_eq!(trace.pieces(0).len(), 10, "2500 of 64 KiB, 256 in a chunk");
    }
}

/// Tables that zstd has made a thousandth of what they say.
#[test]
fn tables_beyond_what_their_length_in_the_file_can_mean_are_damage() {
    let mut file = begun(8);
    let spaces = [b"{".as_slice(), &vec![b' '; 8 << 20], b"}"].concat();
    (0..8).for_each(|_| block(&mut file, 3, (0, 0, 0, 0, 0), &spaces));
    assert!(file.len() < 20_000, "{}", file.len());
    let error = Trace::from_bytes(file.clone()).err().unwrap().to_string();
    assert!(
        error.contains("asks for too much") && error.contains("bytes of tables"),
        "{error}"
    );
    // What can be read is: the first ones come to less.
    let salvaged = Trace::salvage_bytes(file).unwrap();
    assert!(!salvaged.damage().is_empty());
}
