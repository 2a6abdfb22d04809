//! The slot that each piece of a program's data gets, without a change to the program: the file of
//! `domicile run --slots FILE`, which `domicile advise` also writes.
//!
//! # The format
//!
//! TOML. A key that is not listed is refused.
//!
//! | key | default | |
//! | --- | --- | --- |
//! | `[[slot]]` | | one table for each slot |
//! | `slot.name` | | unique; `none` is taken, see below |
//! | `slot.bytes` | | cache wanted in each shared cache: a number, or `"256 KiB"` (B, KiB, MiB, GiB) |
//! | `slot.kind` | | `private` for data with strong locality, `shared` for data with weak locality |
//! | `[[data]]` | | one table for each array or allocation site |
//! | `data.symbol` | | a variable, as `advise` names it: `p`, `p (cg.c:40)`, `p [cg]` |
//! | `data.module` | any | with `symbol`: the file it is in, by its last part: `libx.so` |
//! | `data.site` | | an allocation site, as `advise` names it: see [`Site`] |
//! | `data.at_least` | 0 | with `site`: only blocks of at least so many bytes |
//! | `data.at_most` | any | with `site`: only blocks of at most so many bytes |
//! | `data.slot` | | a slot's name; `none`: do not keep it in the cache (as few colors as can be, shared) |
//! | `data.cpus` | all that the program may use | cpus whose threads use the data, as `[0, 2]` |
//!
//! Several entries may name one slot: they use it in turn (Ding11 section 3.1). If several entries fit a
//! block, the first one counts.
//!
//! ```
//! let plan = policy::slots::Plan::read(r#"
//!     [[slot]]
//!     name = "vector"
//!     bytes = "512 KiB"
//!     kind = "private"
//!
//!     [[data]]
//!     symbol = "p"
//!     slot = "vector"
//!
//!     [[data]]
//!     site = "heap: makea (cg.c:412)"
//!     at_least = "1 MiB"
//!     slot = "none"
//! "#, "cg.toml")?;
//! assert_eq!(plan.slots[0].bytes, 512 << 10);
//! assert_eq!(plan.data[1].slot, None);
//! # Ok::<(), policy::slots::PlanError>(())
//! ```

mod read;
mod write;

pub use read::PlanError;

use results::site::{Frame, Memory, Site, Symbol, base};
use serde::{Deserialize, Serialize};

use super::Kind;

/// Most slots, and most entries for data, in one plan.
pub const PLAN_LIMIT: usize = 4096;

/// Slots, and the data in them. Serialized it has no comments; people write it as [`Plan::read`] reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Comments above the plan: its origin. Not read back.
    #[serde(skip)]
    pub about: Vec<String>,
    pub slots: Vec<PlannedSlot>,
    pub data: Vec<PlannedData>,
}

/// A slot to define.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedSlot {
    pub name: String,
    /// Bytes of cache, in each shared cache that it is used on; more than 0.
    pub bytes: u64,
    pub kind: Kind,
    /// Why it is proposed, written as a comment. Not read back.
    #[serde(skip)]
    pub why: Option<String>,
}

/// Data to place in a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedData {
    pub what: What,
    /// The slot, as its place in [`Plan::slots`]; `None`: do not keep it in the cache.
    pub slot: Option<usize>,
    /// Cpus whose threads use it; empty: all that the program may use.
    pub cpus: Vec<u32>,
    /// Why it is proposed, written as a comment. Not read back.
    #[serde(skip)]
    pub why: Option<String>,
}

/// The data that is meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// A variable of the program or of a library.
    Symbol {
        symbol: Symbol,
        /// The last part of the path of the file that it is in; `None`: any.
        module: Option<String>,
    },
    /// Blocks that one place allocates, if they have from `at_least` to `at_most` bytes.
    Site { site: Site, at_least: u64, at_most: u64 },
}

impl What {
    /// True if this names a block of `bytes` that `stack` (innermost frame first) asked for.
    pub fn is_block(&self, stack: &[Frame], memory: Memory, bytes: u64) -> bool {
        match self {
            What::Symbol { .. } => false,
            What::Site {
                site,
                at_least,
                at_most,
            } => (*at_least..=*at_most).contains(&bytes) && site.is(stack, memory),
        }
    }

    /// True if this names the variable `name` of the file at the path `module`.
    pub fn is_variable(&self, name: &str, module: &str) -> bool {
        match self {
            What::Symbol { symbol, module: only } => {
                symbol.name == name
                    && only.as_deref().is_none_or(|only| base(only) == base(module))
                    && symbol.program.as_deref().is_none_or(|program| program == base(module))
            }
            What::Site { .. } => false,
        }
    }
}

impl Plan {
    /// The entry for a block of `bytes` that `stack` asked for, innermost frame first.
    pub fn for_block(&self, stack: &[Frame], memory: Memory, bytes: u64) -> Option<&PlannedData> {
        self.data.iter().find(|data| data.what.is_block(stack, memory, bytes))
    }

    /// The entry for a variable of the file at the path `module`.
    pub fn for_variable(&self, name: &str, module: &str) -> Option<&PlannedData> {
        self.data.iter().find(|data| data.what.is_variable(name, module))
    }
}
