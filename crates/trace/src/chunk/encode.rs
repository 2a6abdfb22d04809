//! References to columns.

use super::{AGAIN, BESIDE_1, BESIDE_2, Local, NEW_INSNS, NEW_SITE, NOBODY, event};
use crate::error::TraceError;
use crate::limits;
use crate::model::{Ref, Site, Timed};
use crate::varint::put_signed;

/// Encodes one chunk after the other; keeps its tables to spare their allocation.
#[derive(Default)]
pub struct Encoder {
    locals: Vec<Local>,
    /// For each site of the trace: the chunk that used it last, and its number there.
    numbers: Vec<(u32, u32)>,
    chunk: u32,
    tokens: Vec<u8>,
    site_low: Vec<u8>,
    site_high: Vec<u8>,
    insns: Vec<u8>,
    deltas: Vec<u8>,
    events: Vec<u8>,
    names: Vec<u8>,
}

impl Encoder {
    /// Appends the payload of a chunk (before zstd) to `out`. Sites that `refs` name must be in
    /// `sites`, and say the same operation and size.
    pub fn encode(
        &mut self,
        refs: &[Ref],
        events: &[Timed],
        sites: &[Site],
        out: &mut Vec<u8>,
    ) -> Result<(), TraceError> {
        debug_assert!(refs.len() <= limits::CHUNK_REFS && events.len() <= limits::CHUNK_EVENTS);
        self.start(sites.len());
        self.references(refs, sites)?;
        event::encode(events, &mut self.events);
        if self.events.len() > limits::CHUNK_EVENT_BYTES {
            return Err(TraceError::Refused("the events of a chunk take over 4 MiB".into()));
        }
        let mut before = 0i64;
        for local in &self.locals {
            put_signed(&mut self.names, i64::from(local.site) - before);
            before = i64::from(local.site);
        }
        // The decoder loads eight bytes wherever a difference begins.
        self.deltas.extend_from_slice(&[0; 8]);
        let head = [
            refs.len(),
            events.len(),
            self.locals.len(),
            self.names.len(),
            self.site_low.len(),
            self.insns.len(),
            self.deltas.len(),
            self.events.len(),
        ];
        for number in head {
            out.extend_from_slice(&(number as u32).to_le_bytes());
        }
        let columns = [
            &self.names,
            &self.tokens,
            &self.site_low,
            &self.site_high,
            &self.insns,
            &self.deltas,
            &self.events,
        ];
        for column in columns {
            out.extend_from_slice(column);
        }
        Ok(())
    }

    fn start(&mut self, sites: usize) {
        self.chunk = self.chunk.wrapping_add(1);
        if self.chunk == 0 {
            self.numbers.fill((0, 0));
            self.chunk = 1;
        }
        if self.numbers.len() < sites {
            self.numbers.resize(sites, (0, 0));
        }
        self.locals.clear();
        for column in [
            &mut self.tokens,
            &mut self.site_low,
            &mut self.site_high,
            &mut self.insns,
            &mut self.deltas,
            &mut self.events,
            &mut self.names,
        ] {
            column.clear();
        }
    }

    fn references(&mut self, refs: &[Ref], sites: &[Site]) -> Result<(), TraceError> {
        let mut here = NOBODY;
        let mut before = 0u64;
        for r in refs {
            let foreseen = self.locals.get(here as usize).map(|l| (l.next, l.insns));
            let next = foreseen.and_then(|(next, _)| Some((next, self.locals.get(next as usize)?.site)));
            let (number, token) = match next {
                Some((number, site)) if site == r.site => {
                    let same = foreseen.is_some_and(|(_, insns)| insns == r.insns);
                    (number, if same { 0 } else { NEW_INSNS })
                }
                _ => (self.surprise(r, before, sites)?, NEW_SITE),
            };
            if token != 0 {
                self.insns.push(r.insns);
                if let Some(from) = self.locals.get_mut(here as usize) {
                    from.next = number;
                    from.insns = r.insns;
                }
            }
            let local = &mut self.locals[number as usize];
            if (local.op, local.size) != (r.op, r.size) {
                return Err(TraceError::Refused(format!(
                    "a reference says {:?} of {} bytes, its site {} says {:?} of {}",
                    r.op, r.size, r.site, local.op, local.size
                )));
            }
            let (code, delta) = address(local, r.addr, before);
            let width = match code {
                BESIDE_1 => 1,
                BESIDE_2 => 2,
                AGAIN => 0,
                width => usize::from(width),
            };
            local.learn(r.addr);
            // Eight bytes are written and all but `width` are taken back: no loop, no branch.
            let length = self.deltas.len();
            self.deltas.extend_from_slice(&delta.to_le_bytes());
            self.deltas.truncate(length + width);
            self.tokens.push(token | code);
            before = r.addr;
            here = number;
        }
        Ok(())
    }

    /// The number of a site that was not foreseen, and its literal: how far back it was named, 0
    /// for a site that is new in this chunk.
    fn surprise(&mut self, r: &Ref, before: u64, sites: &[Site]) -> Result<u32, TraceError> {
        let known = self.locals.len() as u32;
        let slot = self
            .numbers
            .get_mut(r.site as usize)
            .ok_or_else(|| TraceError::Refused(format!("site {} is not in the table of sites", r.site)))?;
        if slot.0 != self.chunk {
            *slot = (self.chunk, known);
            let mut local = Local::new(r.site, &sites[r.site as usize]);
            local.begin(before);
            self.locals.push(local);
        }
        let literal = known - slot.1;
        self.site_low.push(literal as u8);
        self.site_high.push((literal >> 8) as u8);
        Ok(slot.1)
    }
}

/// The cheapest way to tell `addr`: its code, and the difference that goes with it.
#[inline(always)]
fn address(local: &Local, addr: u64, before: u64) -> (u8, i64) {
    let delta = addr.wrapping_sub(local.foreseen()) as i64;
    if delta == 0 {
        return (0, 0);
    }
    if addr == local.last {
        return (AGAIN, 0);
    }
    let width = bytes_of(delta);
    let beside = addr.wrapping_sub(before) as i64;
    let other = bytes_of(beside);
    if other < width && other <= 2 {
        (BESIDE_1 + other - 1, beside)
    } else {
        (width, delta)
    }
}

/// Bytes of the shortest two's complement form, 1 to 8.
#[inline(always)]
fn bytes_of(delta: i64) -> u8 {
    let magnitude = (delta ^ (delta >> 63)) as u64;
    ((64 - magnitude.leading_zeros() + 8) / 8) as u8
}

#[cfg(test)]
mod tests {
    use super::bytes_of;

    #[test]
    fn widths_are_those_of_twos_complement() {
        for (delta, bytes) in [
            (0, 1),
            (127, 1),
            (-128, 1),
            (128, 2),
            (-129, 2),
            (32767, 2),
            (32768, 3),
            (i64::MAX, 8),
            (i64::MIN, 8),
            (i64::MIN >> 8, 7),
        ] {
            assert_eq!(bytes_of(delta), bytes, "{delta}");
        }
    }
}
