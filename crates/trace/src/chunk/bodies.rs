//! The state of the bodies of a chunk.

use super::encode::{WIDTHS, address};

/// A value that no link can have.
pub(super) const NOTHING: u64 = u64::MAX;

/// A body that the chunk has used.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub(super) head: u64,
    /// The successor of its last site, the last time ([`link`]).
    pub(super) link: u64,
    /// The body that ran next, the last time.
    pub(super) follow: u32,
    /// Number of its first site in the chunk.
    pub(super) number: u32,
    /// The first of its habits.
    pub(super) slots: u32,
    pub(super) refs: u16,
    pub(super) tail: u16,
    pub(super) insns: u16,
    /// Instructions of its first reference.
    pub(super) first: u16,
}

/// The number of the next site, and the instructions.
#[inline(always)]
pub(super) fn link(number: u32, insns: u64) -> u64 {
    u64::from(number) << 32 | insns
}

/// The first of the bodies is a placeholder: it stands for the state before the chunk.
pub(super) const NOBODY: Known = Known {
    head: u64::MAX,
    link: NOTHING,
    follow: 0,
    number: 0,
    slots: 0,
    refs: 0,
    tail: 0,
    insns: 0,
    first: 0,
};

/// [`super::Habit`] of up to four consecutive sites: `which` are, is all ones there.
#[derive(Clone, Copy)]
pub(super) struct Four {
    pub(super) last: [u64; 4],
    seen: [u64; 4],
    stride: [u64; 4],
    pub(super) which: [u64; 4],
}

pub(super) const NO_SITES: Four = Four {
    last: [0; 4],
    seen: [0; 4],
    stride: [0; 4],
    which: [0; 4],
};

impl Four {
    /// Returns true if all addresses are as predicted, and then learns them.
    #[inline(always)]
    pub(super) fn confirm(&mut self, addresses: &[u64; 4]) -> bool {
        let lanes = addresses.iter().zip(&self.last).zip(&self.stride).zip(&self.which);
        let wrong = lanes.fold(0, |wrong, (((addr, last), stride), which)| {
            wrong | (addr ^ last.wrapping_add(*stride)) & which
        });
        if wrong == 0 {
            self.last = *addresses;
            self.seen = self.stride;
        }
        wrong == 0
    }

    /// The code for an address, whose difference is appended; learns the address.
    #[inline(always)]
    pub(super) fn code(&mut self, site: usize, addr: u64, before: u64, deltas: &mut [u8], bytes: &mut usize) -> u8 {
        let (last, stride) = (self.last[site], self.stride[site]);
        let delta = addr.wrapping_sub(last.wrapping_add(stride)) as i64;
        if delta == 0 {
            self.last[site] = addr;
            self.seen[site] = stride;
            return 0;
        }
        let (code, difference) = if delta as i8 as i64 == delta && addr != last {
            (1, delta)
        } else {
            address(last, addr, delta, before)
        };
        // Eight bytes are written, and those beyond the width are overwritten later: this needs no loop.
        if let Some(room) = deltas.get_mut(*bytes..*bytes + 8) {
            room.copy_from_slice(&difference.to_le_bytes());
        }
        *bytes += usize::from(WIDTHS[usize::from(code & 0xf)]);
        let step = addr.wrapping_sub(last);
        let fits = if step as i32 as u64 == step { step } else { 0 };
        self.stride[site] = if fits == self.seen[site] { fits } else { stride };
        self.seen[site] = fits;
        self.last[site] = addr;
        code
    }
}

/// Address of the last reference of the body that ran last.
#[inline(always)]
pub(super) fn before(fours: &[Four], here: &Known) -> u64 {
    let site = usize::from(here.refs).max(1) - 1;
    fours[here.slots as usize + site / 4].last[site % 4]
}

fn place(head: u64, length: usize) -> usize {
    (head.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (length - 1)
}

/// The number of a body, 0 if it is not known.
#[inline(never)]
pub(super) fn find(table: &[u32], known: &[Known], head: u64) -> usize {
    if table.is_empty() {
        return 0;
    }
    let mut at = place(head, table.len());
    loop {
        let number = table[at] as usize;
        if number == 0 || known[number].head == head {
            return number;
        }
        at = (at + 1) & (table.len() - 1);
    }
}

pub(super) fn insert(table: &mut [u32], head: u64, number: usize) {
    let mut at = place(head, table.len());
    while table[at] != 0 {
        at = (at + 1) & (table.len() - 1);
    }
    table[at] = number as u32;
}
