//! Columns to references.

use super::{ADDRESS, ADDRESS_CODES, AGAIN, BESIDE_1, BESIDE_2, HEAD_NUMBERS, Habit, NEW_INSNS, NEW_SITE, event};
use crate::block::u32_at;
use crate::limits;
use crate::model::{Op, Ref, Site, Timed};
use crate::varint::Cursor;

/// The decoder's memory of a site. 32 bytes: two to a cache line.
#[derive(Clone, Copy)]
struct Local {
    habit: Habit,
    /// The site that came next, the last time (`NOBODY`: none), in numbers of this chunk.
    next: u32,
    /// Number in the trace's table.
    site: u32,
    size: u16,
    op: Op,
    /// Instructions that came with `next`.
    insns: u8,
}

const NOBODY: u32 = u32::MAX;

/// Decodes chunks one after the other; keeps its tables, to avoid allocations.
#[derive(Default)]
pub struct Decoder {
    locals: Vec<Local>,
    /// True if the chunk names a site of wide references.
    wide: bool,
}

/// How to undo an address code: the bytes of its difference, the mask that keeps them, the bit of their sign, and the
/// base of the difference.
#[derive(Clone, Copy)]
struct Undo {
    mask: u64,
    sign: u64,
    width: u8,
    base: u8,
}

const FORESEEN: u8 = 0;
const BESIDE: u8 = 1;
const LAST: u8 = 2;

const UNDO: [Undo; 16] = {
    let mut table = [Undo {
        mask: 0,
        sign: 0,
        width: 0,
        base: FORESEEN,
    }; 16];
    let mut code = 1;
    while code < ADDRESS_CODES {
        let (width, base) = match code {
            BESIDE_1 => (1, BESIDE),
            BESIDE_2 => (2, BESIDE),
            AGAIN => (0, LAST),
            width => (width, FORESEEN),
        };
        table[code as usize] = if width == 0 {
            Undo {
                mask: 0,
                sign: 0,
                width,
                base,
            }
        } else {
            Undo {
                mask: u64::MAX >> (64 - 8 * width as u32),
                sign: 1 << (8 * width as u32 - 1),
                width,
                base,
            }
        };
        code += 1;
    }
    table
};

const EMPTY: Ref = Ref {
    addr: 0,
    site: 0,
    insns: 0,
    op: Op::Read,
    size: 1,
};

/// The payload of a chunk, cut into its columns.
struct Columns<'a> {
    names: &'a [u8],
    tokens: &'a [u8],
    site_low: &'a [u8],
    site_high: &'a [u8],
    insns: &'a [u8],
    deltas: &'a [u8],
    events: &'a [u8],
    refs_count: usize,
    events_count: usize,
    sites_count: usize,
}

/// Bytes that wide references touch.
pub fn wide_bytes(refs: &[Ref]) -> usize {
    let bytes = |r: &Ref| if r.size > limits::WIDE { usize::from(r.size) } else { 0 };
    refs.iter().map(bytes).sum()
}

impl Decoder {
    /// Fills `refs` and `events` from a payload; the error describes the fault in it.
    pub fn decode(
        &mut self,
        payload: &[u8],
        sites: &[Site],
        refs: &mut Vec<Ref>,
        events: &mut Vec<Timed>,
    ) -> Result<(), &'static str> {
        let columns = Columns::cut(payload)?;
        self.names(&columns, sites)?;
        // The buffer's old content is overwritten, so only growth needs initialisation.
        refs.resize(columns.refs_count, EMPTY);
        self.references(&columns, refs)?;
        if self.wide && wide_bytes(refs) > limits::WIDE_BYTES {
            return Err("the wide references of a chunk touch more than 16 MiB");
        }
        events.clear();
        event::decode(columns.events, columns.events_count, columns.refs_count as u32, events)
    }

    /// Only the events: the references between them are skipped without decoding.
    pub fn events(payload: &[u8], events: &mut Vec<Timed>) -> Result<(), &'static str> {
        let columns = Columns::cut(payload)?;
        events.clear();
        event::decode(columns.events, columns.events_count, columns.refs_count as u32, events)
    }

    /// Makes room for the sites that the chunk names, in the order in which it will use them.
    fn names(&mut self, columns: &Columns<'_>, sites: &[Site]) -> Result<(), &'static str> {
        self.locals.clear();
        self.wide = false;
        let mut cursor = Cursor::new(columns.names);
        let mut number = 0i64;
        for _ in 0..columns.sites_count {
            let step = cursor.signed().ok_or("the sites of a chunk are cut short")?;
            number = number.wrapping_add(step);
            let site = usize::try_from(number).ok().and_then(|n| sites.get(n));
            let site = site.ok_or("a chunk names a site that the table of sites does not have")?;
            self.wide |= site.size > limits::WIDE;
            self.locals.push(Local {
                habit: Habit::new(site),
                next: NOBODY,
                site: number as u32,
                size: site.size,
                op: site.op,
                insns: 0,
            });
        }
        if cursor.is_empty() {
            Ok(())
        } else {
            Err("bytes are left over after the sites of a chunk")
        }
    }

    fn references(&mut self, columns: &Columns<'_>, refs: &mut [Ref]) -> Result<(), &'static str> {
        let locals = self.locals.as_mut_slice();
        // Sites used so far.
        let mut known = 0u32;
        let (mut site_at, mut insns_at, mut delta_at) = (0usize, 0usize, 0usize);
        let mut here = NOBODY;
        let mut before = 0u64;
        // The prediction of the previous site.
        let (mut next, mut insns) = (NOBODY, 0u8);
        for (out, &token) in refs.iter_mut().zip(columns.tokens) {
            if token > ADDRESS {
                if token & NEW_SITE != 0 {
                    let low = *columns
                        .site_low
                        .get(site_at)
                        .ok_or("too few site literals in a chunk")?;
                    let high = *columns
                        .site_high
                        .get(site_at)
                        .ok_or("too few site literals in a chunk")?;
                    site_at += 1;
                    let literal = u32::from(low) | u32::from(high) << 8;
                    if literal == 0 {
                        let fresh = locals
                            .get_mut(known as usize)
                            .ok_or("a chunk uses more sites than it names")?;
                        fresh.habit.begin(before);
                        next = known;
                        known += 1;
                    } else {
                        next = known
                            .checked_sub(literal)
                            .ok_or("a site literal of a chunk reaches back too far")?;
                    }
                }
                if token & !(ADDRESS | NEW_SITE | NEW_INSNS) != 0 {
                    return Err("an unknown token in a chunk");
                }
                insns = *columns
                    .insns
                    .get(insns_at)
                    .ok_or("too few instruction literals in a chunk")?;
                insns_at += 1;
                if let Some(from) = locals.get_mut(here as usize) {
                    from.next = next;
                    from.insns = insns;
                }
            }
            let local = locals
                .get_mut(next as usize)
                .ok_or("a chunk foresees a site that it never named")?;
            let undo = UNDO[usize::from(token & ADDRESS)];
            let bytes = columns
                .deltas
                .get(delta_at..delta_at + 8)
                .ok_or("too few address bytes in a chunk")?;
            delta_at += usize::from(undo.width);
            let mut delta = [0u8; 8];
            delta.copy_from_slice(bytes);
            let delta = ((u64::from_le_bytes(delta) & undo.mask) ^ undo.sign).wrapping_sub(undo.sign);
            let base = match undo.base {
                FORESEEN => local.habit.foreseen(),
                BESIDE => before,
                _ => local.habit.last,
            };
            let addr = base.wrapping_add(delta);
            local.habit.learn(addr);
            *out = Ref {
                addr,
                site: local.site,
                insns,
                op: local.op,
                size: local.size,
            };
            before = addr;
            here = next;
            (next, insns) = (local.next, local.insns);
        }
        let left = [
            columns.site_low.len() - site_at,
            columns.insns.len() - insns_at,
            locals.len() - known as usize,
        ];
        if delta_at + 8 != columns.deltas.len() || left != [0, 0, 0] {
            return Err("a chunk has more in its columns than its references use");
        }
        Ok(())
    }
}

impl<'a> Columns<'a> {
    fn cut(payload: &'a [u8]) -> Result<Columns<'a>, &'static str> {
        let short = "a chunk is shorter than its columns";
        let (head, rest) = payload.split_at_checked(HEAD_NUMBERS * 4).ok_or(short)?;
        let number = |i: usize| u32_at(head, i * 4) as usize;
        let (refs_count, events_count, sites_count) = (number(0), number(1), number(2));
        if refs_count > limits::CHUNK_REFS || sites_count > refs_count || events_count > limits::CHUNK_EVENTS {
            return Err("a chunk claims more references, sites or events than a chunk may have");
        }
        let mut cursor = Cursor::new(rest);
        let mut column = |length: usize| cursor.bytes(length).ok_or(short);
        let columns = Columns {
            names: column(number(3))?,
            tokens: column(refs_count)?,
            site_low: column(number(4))?,
            site_high: column(number(4))?,
            insns: column(number(5))?,
            deltas: column(number(6))?,
            events: column(number(7))?,
            refs_count,
            events_count,
            sites_count,
        };
        if !cursor.is_empty() {
            return Err("bytes are left over after the columns of a chunk");
        }
        Ok(columns)
    }
}
