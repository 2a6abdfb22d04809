//! What the fuzz targets do with a trace once they have made one up.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

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
