//! What the fuzz targets do with a trace once they have made one up.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock};

use trace::import::{self, Format};
use trace::{Batch, Header, Item, Options, Trace, Writer};

/// Reads all there is in a trace, both ways. What is read must obey its own tables.
pub fn read(bytes: &[u8]) {
    for open in [Trace::from_bytes, Trace::salvage_bytes] {
        let Ok(trace) = open(bytes.to_vec()) else { continue };
        let mut batch = Batch::default();
        for thread in 0..trace.threads().len().min(64) as u32 {
            let mut stream = trace.thread(thread).expect("the thread is in the table");
            while let Ok(true) = stream.next(&mut batch) {
                for r in &batch.refs {
                    let site = trace.sites()[r.site as usize];
                    assert_eq!((r.op, r.size), (site.op, site.size));
                }
                for timed in &batch.events {
                    assert!(timed.at as usize <= batch.refs.len());
                }
            }
        }
        for item in trace.cat().take(1 << 16) {
            match item {
                Ok(Item::Ref { thread, .. } | Item::Event { thread, .. }) => {
                    assert!((thread as usize) < trace.threads().len());
                }
                Err(_) => break,
            }
        }
    }
}

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics with it").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Imports `input`; where that works, what was written must be readable to the end.
pub fn import(format: Format, input: &[u8]) {
    let out = Memory::default();
    let mut writer = Writer::new(out.clone(), &Header::default(), Options::default()).expect("memory can be written");
    let input = io::Cursor::new(input.to_vec());
    let imported = import::read(format, input, "fuzz", &mut writer).is_ok();
    let finished = writer.finish();
    if imported {
        let summary = finished.expect("what was imported can be finished");
        let bytes = std::mem::take(&mut *out.0.lock().expect("nobody panics with it"));
        let trace = Trace::from_bytes(bytes).expect("just written");
        assert_eq!(trace.references(), summary.references);
        for thread in 0..trace.threads().len() as u32 {
            let mut stream = trace.thread(thread).expect("the thread is in the table");
            let mut batch = Batch::default();
            while stream.next(&mut batch).expect("just written") {}
        }
    }
}

/// A small whole trace with a few bytes changed: `edits` are places (2 bytes, modulo its length) and
/// what to put there (1 byte); one that is left over cuts the end off.
pub fn changed(edits: &[u8]) -> Vec<u8> {
    static WHOLE: OnceLock<Vec<u8>> = OnceLock::new();
    let mut bytes = WHOLE.get_or_init(whole).clone();
    let mut rest = edits;
    while let [low, high, value, after @ ..] = rest {
        let place = usize::from(u16::from_le_bytes([*low, *high])) % bytes.len();
        bytes[place] = *value;
        rest = after;
    }
    let cut = rest.iter().fold(0, |cut, &byte| cut << 8 | usize::from(byte)) % bytes.len();
    bytes.truncate(bytes.len() - cut);
    bytes
}

fn whole() -> Vec<u8> {
    let out = Memory::default();
    let mut writer = Writer::new(out.clone(), &Header::default(), Options::default()).expect("memory can be written");
    let text = b"1 r 10 8\n2 w 20 8\nb 2\n1 m 18 8\n2 i 400 4\n1 r 20 8\n";
    import::read(Format::Text, io::Cursor::new(text.to_vec()), "whole", &mut writer).expect("it is in order");
    writer.finish().expect("memory can be written");
    std::mem::take(&mut *out.0.lock().expect("nobody panics with it"))
}
