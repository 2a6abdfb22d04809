//! References to columns.

use super::{AGAIN, BESIDE_1, Habit, NEW_INSNS, NEW_SITE, event};
use crate::error::TraceError;
use crate::limits;
use crate::model::{Op, Ref, Site, Timed};
use crate::varint::put_signed;

/// Encodes chunks one after the other; keeps its tables, to avoid allocations.
pub struct Encoder {
    /// The sites of the chunk by number, as many as a chunk can have: a 16-bit number needs no check.
    locals: Box<[Known; limits::CHUNK_REFS]>,
    known: usize,
    /// For each site of the trace: the chunk that used it last, and its number there.
    numbers: Vec<(u32, u16)>,
    chunk: u32,
    tokens: Vec<u8>,
    site_low: Vec<u8>,
    site_high: Vec<u8>,
    insns: Vec<u8>,
    /// As long as the differences of a chunk can be; the first `used` bytes are in use.
    deltas: Vec<u8>,
    used: usize,
    events: Vec<u8>,
    names: Vec<u8>,
}

/// The encoder's memory of a site. 32 bytes: two to a cache line.
#[derive(Clone, Copy)]
struct Known {
    habit: Habit,
    /// Everything except the address of the reference that came next, the last time ([`but_address`]), so that one
    /// comparison decides whether all of it was predicted.
    next: u64,
    /// Number in the trace's table.
    site: u32,
    size: u16,
    op: Op,
}

/// A value that no reference can have: there are fewer sites.
const NOTHING: u64 = u64::MAX;

const UNKNOWN: Known = Known {
    habit: Habit::NONE,
    next: NOTHING,
    site: 0,
    size: 0,
    op: Op::Read,
};

/// A reference without its address: site, instructions, operation and size, as they lie in memory.
#[inline(always)]
fn but_address(r: &Ref) -> u64 {
    u64::from(r.site) | u64::from(r.insns) << 32 | u64::from(r.op as u8) << 40 | u64::from(r.size) << 48
}

impl Default for Encoder {
    fn default() -> Encoder {
        let locals = vec![UNKNOWN; limits::CHUNK_REFS].into_boxed_slice();
        Encoder {
            locals: locals.try_into().unwrap_or_else(|_| unreachable!("it has that length")),
            known: 0,
            numbers: Vec::new(),
            chunk: 0,
            tokens: Vec::new(),
            site_low: Vec::new(),
            site_high: Vec::new(),
            insns: Vec::new(),
            deltas: vec![0; limits::CHUNK_REFS * 8 + 8],
            used: 0,
            events: Vec::new(),
            names: Vec::new(),
        }
    }
}

impl Encoder {
    /// Appends the payload of a chunk (before zstd) to `out`; returns the instructions that its references count. Sites
    /// that `refs` name must be in `sites`, with the same operation and size.
    pub fn encode(
        &mut self,
        refs: &[Ref],
        events: &[Timed],
        sites: &[Site],
        out: &mut Vec<u8>,
    ) -> Result<u64, TraceError> {
        debug_assert!(refs.len() <= limits::CHUNK_REFS && events.len() <= limits::CHUNK_EVENTS);
        self.start(sites.len());
        let instructions = self.references(refs, sites)?;
        event::encode(events, &mut self.events);
        if self.events.len() > limits::CHUNK_EVENT_BYTES {
            return Err(TraceError::Refused("the events of a chunk take over 4 MiB".into()));
        }
        let mut before = 0i64;
        for local in &self.locals[..self.known] {
            put_signed(&mut self.names, i64::from(local.site) - before);
            before = i64::from(local.site);
        }
        // The decoder loads eight bytes wherever a difference begins.
        let deltas = self.used + 8;
        self.deltas[self.used..deltas].fill(0);
        let head = [
            refs.len(),
            events.len(),
            self.known,
            self.names.len(),
            self.site_low.len(),
            self.insns.len(),
            deltas,
            self.events.len(),
        ];
        for number in head {
            out.extend_from_slice(&(number as u32).to_le_bytes());
        }
        let columns: [&[u8]; 7] = [
            &self.names,
            &self.tokens,
            &self.site_low,
            &self.site_high,
            &self.insns,
            &self.deltas[..deltas],
            &self.events,
        ];
        for column in columns {
            out.extend_from_slice(column);
        }
        Ok(instructions)
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
        self.known = 0;
        self.used = 0;
        for column in [
            &mut self.tokens,
            &mut self.site_low,
            &mut self.site_high,
            &mut self.insns,
            &mut self.events,
            &mut self.names,
        ] {
            column.clear();
        }
    }

    fn references(&mut self, refs: &[Ref], sites: &[Site]) -> Result<u64, TraceError> {
        self.tokens.resize(refs.len(), 0);
        let mut tokens = std::mem::take(&mut self.tokens);
        // There is no site before the first. The last number stands in: no site follows it, unless all the chunk's
        // references are of different sites; then it is reset.
        let mut here = u16::MAX;
        self.locals[usize::from(here)].next = NOTHING;
        let mut before = 0u64;
        let mut instructions = 0;
        for (r, place) in refs.iter().zip(&mut tokens) {
            let what = but_address(r);
            instructions += what >> 32 & 0xff;
            // Not via the previous site: the processor can look up many sites at once.
            let number = self.numbers.get(r.site as usize).map_or(0, |slot| slot.1);
            let (number, token) = if self.locals[usize::from(here)].next == what {
                (number, 0)
            } else {
                self.surprise(r, here, before, sites)?
            };
            let habit = &mut self.locals[usize::from(number)].habit;
            let delta = r.addr.wrapping_sub(habit.foreseen()) as i64;
            if delta == 0 {
                habit.confirm(r.addr);
                if token != 0 {
                    *place = token;
                }
            } else {
                let (code, difference) = address(habit.last, r.addr, delta, before);
                habit.learn(r.addr);
                // Eight bytes are written, and those beyond the width are overwritten later: this needs no loop.
                if let Some(room) = self.deltas.get_mut(self.used..self.used + 8) {
                    room.copy_from_slice(&difference.to_le_bytes());
                }
                self.used += usize::from(WIDTHS[usize::from(code & 0xf)]);
                *place = token | code;
            }
            before = r.addr;
            here = number;
        }
        self.tokens = tokens;
        Ok(instructions)
    }

    /// The number of the site of a reference that was not completely predicted, and the part of the token for it; the
    /// literals are written here.
    #[inline(never)]
    fn surprise(&mut self, r: &Ref, here: u16, before: u64, sites: &[Site]) -> Result<(u16, u8), TraceError> {
        let from = &mut self.locals[usize::from(here)].next;
        let foreseen = *from != NOTHING && *from as u32 == r.site;
        *from = but_address(r);
        self.insns.push(r.insns);
        let slot = self
            .numbers
            .get_mut(r.site as usize)
            .ok_or_else(|| TraceError::Refused(format!("site {} is not in the table of sites", r.site)))?;
        let known = self.known;
        if slot.0 != self.chunk {
            *slot = (self.chunk, known as u16);
            let site = &sites[r.site as usize];
            let mut habit = Habit::new(site);
            habit.begin(before);
            self.locals[known] = Known {
                habit,
                next: NOTHING,
                site: r.site,
                size: site.size,
                op: site.op,
            };
            self.known += 1;
        }
        let number = slot.1;
        let local = &self.locals[usize::from(number)];
        if (local.op, local.size) != (r.op, r.size) {
            return Err(TraceError::Refused(format!(
                "a reference says {:?} of {} bytes, its site {} says {:?} of {}",
                r.op, r.size, r.site, local.op, local.size
            )));
        }
        if foreseen {
            return Ok((number, NEW_INSNS));
        }
        // The distance back to the site's name, 0 for a site that is new in this chunk.
        let literal = (known - usize::from(number)) as u16;
        self.site_low.push(literal as u8);
        self.site_high.push((literal >> 8) as u8);
        Ok((number, NEW_SITE))
    }
}

/// Bytes of difference for each address code.
pub(super) const WIDTHS: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 0, 0, 0, 0, 0];

/// The cheapest way to write an unpredicted `addr`: its code, and its difference. Without branches, because the
/// processor's predictor fails where ours does.
#[inline(always)]
pub(super) fn address(last: u64, addr: u64, delta: i64, before: u64) -> (u8, i64) {
    let width = bytes_of(delta);
    let beside = addr.wrapping_sub(before) as i64;
    let other = bytes_of(beside);
    let (code, difference) = if (other < width) & (other <= 2) {
        (BESIDE_1 - 1 + other, beside)
    } else {
        (width, delta)
    };
    (if addr == last { AGAIN } else { code }, difference)
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
