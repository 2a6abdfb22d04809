//! The columns of a chunk that was encoded from runs, on their way to the file.

use super::event;
use crate::error::TraceError;
use crate::limits;
use crate::model::{Ref, Site, Timed};
use crate::varint::put_signed;

/// A chunk except its events.
#[derive(Default)]
pub struct Encoded {
    pub refs: usize,
    /// Instructions that the references count.
    pub instructions: u64,
    /// The sites in order of first use, as references without addresses: once for each body that
    /// has them.
    pub names: Vec<Ref>,
    /// At least one for each reference; further ones are zero.
    pub tokens: Vec<u8>,
    pub site_low: Vec<u8>,
    pub site_high: Vec<u8>,
    pub insns: Vec<u8>,
    /// The first `bytes` of these are differences.
    pub deltas: Vec<u8>,
    pub bytes: usize,
}

impl Encoded {
    /// Empties it, for reuse.
    pub fn clear(&mut self) {
        self.tokens[..self.refs].fill(0);
        self.refs = 0;
        self.instructions = 0;
        self.bytes = 0;
        self.names.clear();
        self.site_low.clear();
        self.site_high.clear();
        self.insns.clear();
    }

    /// Room for `refs` more references.
    #[cold]
    pub fn grow(&mut self, refs: usize) {
        let tokens = self.refs + refs;
        if self.tokens.len() < tokens {
            self.tokens.resize((2 * tokens).max(1024), 0);
        }
        let deltas = self.bytes + 8 * refs + 8;
        if self.deltas.len() < deltas {
            self.deltas.resize((2 * deltas).max(4096), 0);
        }
    }

    /// Appends the payload of the chunk (before zstd) to `out`.
    pub fn payload(&self, events: &[Timed], sites: &[Site], out: &mut Vec<u8>) -> Result<(), TraceError> {
        let mut names = Vec::new();
        let mut before = 0i64;
        for name in &self.names {
            let site = sites
                .get(name.site as usize)
                .ok_or_else(|| TraceError::Refused(format!("site {} is not in the table of sites", name.site)))?;
            if (site.op, site.size) != (name.op, name.size) {
                return Err(TraceError::Refused(format!(
                    "a reference says {:?} of {} bytes, its site {} says {:?} of {}",
                    name.op, name.size, name.site, site.op, site.size
                )));
            }
            put_signed(&mut names, i64::from(name.site) - before);
            before = i64::from(name.site);
        }
        let mut happened = Vec::new();
        event::encode(events, &mut happened);
        if happened.len() > limits::CHUNK_EVENT_BYTES {
            return Err(TraceError::Refused("the events of a chunk take over 4 MiB".into()));
        }
        // The decoder loads eight bytes wherever a difference begins.
        let deltas = self.bytes + 8;
        let head = [
            self.refs,
            events.len(),
            self.names.len(),
            names.len(),
            self.site_low.len(),
            self.insns.len(),
            deltas,
            happened.len(),
        ];
        for number in head {
            out.extend_from_slice(&(number as u32).to_le_bytes());
        }
        for column in [
            &names,
            &self.tokens[..self.refs],
            &self.site_low,
            &self.site_high,
            &self.insns,
            &self.deltas[..self.bytes],
            &[0; 8],
            &happened,
        ] {
            out.extend_from_slice(column);
        }
        Ok(())
    }
}
