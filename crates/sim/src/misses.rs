//! The fast way to compare policies of homes: the caches are simulated once, and every policy decides over the stream of
//! misses that came out, with fixed costs for each page that it moves (Verghese96, section 6.1).
//!
//! [`record`] makes a [`MissStream`] from a trace, [`replay`] runs a policy over it. README.md, "Streams of misses",
//! lists what the full simulation has and this has not.

mod chains;
mod hot;
mod record;
mod replay;
mod share;
mod stream;

pub use chains::{ReadChains, read_chains};
pub use hot::{HotPages, hot_pages};
pub use record::{Scribe, best_homes, is_replayable, plain, record, record_refs, record_to_replay};
pub use replay::{replay, replay_with, waits_from};
pub use stream::{FirstTouch, Miss, MissStream};
