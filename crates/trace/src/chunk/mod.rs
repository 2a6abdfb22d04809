//! A chunk: up to 65536 references of one thread and the events among them, in columns.
//!
//! A reference is encoded as its difference from a prediction. Two predictors process every reference, the same in the
//! encoder and in the decoder, and are reset in every chunk:
//!
//! - **which site** comes next: the one that followed this site the last time, after as many
//!   instructions;
//! - **which address** it touches: the site's last address plus its stride, the difference that it
//!   has last shown twice in a row.
//!
//! A reference that both predict costs one token byte of zero, and zstd compresses a row of zeros to almost nothing.
//! Values that were not predicted go to further columns. [`Habit`] is the second predictor; `encode` and `decode` are
//! the two sides; `runs` is `encode` for references that come in runs of superblocks. README.md gives the layout byte
//! by byte.

mod bodies;
mod decode;
mod encode;
mod encoded;
pub mod event;
mod runs;

pub use decode::Decoder;
pub use encode::Encoder;
pub use encoded::Encoded;
pub use runs::{Body, Coder};

use crate::model::{Op, Site};

/// Numbers at the front of the payload, each 4 bytes.
const HEAD_NUMBERS: usize = 8;

/// Low four bits of a token: how the address is written.
const ADDRESS: u8 = 0x0f;
/// The site was not predicted: a literal follows, and one for the instructions.
const NEW_SITE: u8 = 0x10;
/// The site was predicted, the instructions were not.
const NEW_INSNS: u8 = 0x20;

/// Address codes 0 to 8 are the bytes of a difference to the predicted address; these two are one or two bytes of a
/// difference to the previous reference.
const BESIDE_1: u8 = 9;
const BESIDE_2: u8 = 10;
/// The site's last address again.
const AGAIN: u8 = 11;
const ADDRESS_CODES: u8 = 12;

/// The history of a site's addresses.
#[derive(Clone, Copy)]
struct Habit {
    last: u64,
    /// Difference last seen; 0 when it does not fit.
    seen: i32,
    /// Difference last seen twice in a row.
    stride: i32,
}

impl Habit {
    const NONE: Habit = Habit {
        last: 0,
        seen: 0,
        stride: 0,
    };

    /// For a site that the chunk has not used: predicts that a fetch is of its own program counter.
    fn new(site: &Site) -> Habit {
        Habit {
            last: if site.op == Op::Fetch { site.pc } else { 0 },
            ..Habit::NONE
        }
    }

    /// The first use: without better knowledge, the prediction is near the reference `before`.
    fn begin(&mut self, before: u64) {
        if self.last == 0 {
            self.last = before;
        }
    }

    #[inline(always)]
    fn foreseen(&self) -> u64 {
        self.last.wrapping_add(i64::from(self.stride) as u64)
    }

    /// Learns the address. A single jump (the end of a row) does not erase the stride.
    #[inline(always)]
    fn learn(&mut self, addr: u64) {
        let difference = addr.wrapping_sub(self.last) as i64;
        let fits = difference as i32;
        let fits = if i64::from(fits) == difference { fits } else { 0 };
        self.stride = if fits == self.seen { fits } else { self.stride };
        self.seen = fits;
        self.last = addr;
    }

    /// Learns the address that was predicted: the result of [`Habit::learn`] in that case.
    #[inline(always)]
    fn confirm(&mut self, addr: u64) {
        self.seen = self.stride;
        self.last = addr;
    }
}
