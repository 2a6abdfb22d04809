//! How fast traces are written and read, and how small they are.
//!
//! `cargo run --release -p domicile-trace --example container -- [MILLIONS] [FORMAT=FILE]...`
//!
//! Encodes and decodes made-up streams of each kind, and what is imported from each file, for
//! example `lackey=ls.log`, on one core. The trace is kept in memory: disks are not measured.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use trace::import::{self, Format};
use trace::synthetic::{Kind, Stream};
use trace::{Batch, Header, Options, Process, Ref, Site, Summary, Thread, Trace, Writer};

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn main() {
    let mut millions = 20;
    let mut files = Vec::new();
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some((format, path)) => files.push((
                format.parse::<Format>().unwrap_or_else(|e| panic!("{e}")),
                path.to_string(),
            )),
            None => millions = argument.parse().expect("a number of million references"),
        }
    }
    println!(
        "{:<22} {:>9} {:>12} {:>12} {:>10}",
        "stream", "million", "encode M/s", "decode M/s", "bytes/ref"
    );
    for kind in Kind::ALL {
        let refs: Vec<Ref> = Stream::bare(kind, 1).take(1_000_000 * millions).collect();
        let sites: Vec<Site> = trace::synthetic::sites().into_iter().flatten().collect();
        measure(kind.name(), &sites, &refs);
    }
    for (format, path) in files {
        let began = Instant::now();
        let out = Memory::default();
        let mut writer =
            Writer::new(out.clone(), &Header::default(), Options::default()).expect("memory can be written");
        let input = std::fs::File::open(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        import::read(format, input, &path, &mut writer).unwrap_or_else(|e| panic!("{path}: {e}"));
        let summary = writer.finish().expect("memory can be written");
        let seconds = began.elapsed().as_secs_f64();
        let trace =
            Trace::from_bytes(std::mem::take(&mut out.0.lock().expect("no writer panics"))).expect("just written");
        let name = path.rsplit('/').next().unwrap_or(&path);
        println!("{name}: import {:.1} M/s", summary.references as f64 / seconds / 1e6);
        let mut refs = Vec::new();
        let mut batch = Batch::default();
        for thread in 0..trace.threads().len() as u32 {
            let mut stream = trace.thread(thread).expect("it exists");
            while refs.len() < 64_000_000 && stream.next(&mut batch).expect("just written") {
                refs.extend_from_slice(&batch.refs);
            }
        }
        measure(name, trace.sites(), &refs);
        let data: Vec<Ref> = refs.into_iter().filter(|r| r.op != trace::Op::Fetch).collect();
        measure(&format!("{name} (data)"), trace.sites(), &data);
    }
}

fn measure(name: &str, sites: &[Site], refs: &[Ref]) {
    let mut encode = f64::MAX;
    let mut best: Option<(Summary, Vec<u8>)> = None;
    for _ in 0..3 {
        let out = Memory::default();
        let mut writer =
            Writer::new(out.clone(), &Header::default(), Options::default()).expect("memory can be written");
        for &site in sites {
            writer.site(site);
        }
        let process = writer.process(Process::default());
        let thread = writer.thread(Thread {
            process,
            ..Thread::default()
        });
        let began = Instant::now();
        for part in refs.chunks(4096) {
            writer.refs(thread, part).expect("memory can be written");
        }
        let summary = writer.finish().expect("memory can be written");
        encode = encode.min(began.elapsed().as_secs_f64());
        let bytes = std::mem::take(&mut *out.0.lock().expect("no writer panics"));
        best = Some((summary, bytes));
    }
    let Some((summary, bytes)) = best else { return };
    let trace = Trace::from_bytes(bytes).expect("just written");
    let mut decode = f64::MAX;
    let mut batch = Batch::default();
    for _ in 0..3 {
        let began = Instant::now();
        let mut stream = trace.thread(0).expect("it exists");
        let mut seen = 0u64;
        while stream.next(&mut batch).expect("just written") {
            seen += batch.refs.len() as u64;
        }
        assert_eq!(seen, refs.len() as u64);
        decode = decode.min(began.elapsed().as_secs_f64());
    }
    let millions = refs.len() as f64 / 1e6;
    println!(
        "{name:<22} {millions:>9.1} {:>12.1} {:>12.1} {:>10.3}",
        millions / encode,
        millions / decode,
        summary.bytes_per_reference
    );
}
