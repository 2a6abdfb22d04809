//! The reasons for a refusal, with the free space.

use super::Kind;

/// A request that was refused; nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    #[error("a slot of 0 bytes; give it the bytes of cache that its data should have")]
    NoBytes,
    /// More colors than a cache has.
    #[error("a slot of {bytes} bytes is {colors} colors of {color_bytes} bytes; a cache has {most}")]
    TooLarge {
        bytes: u64,
        colors: u64,
        color_bytes: u64,
        most: u32,
    },
    #[error("no cpus: say which ones run the threads that use the data set")]
    NoCpus,
    #[error("cpu {0} has no shared cache with colors here")]
    UnknownCpu(u32),
    /// Never there, freed, or of somebody else.
    #[error("there is no such slot")]
    UnknownSlot,
    /// Never there, freed, or of somebody else.
    #[error("there is no such data set")]
    UnknownSet,
    /// Never there, or gone.
    #[error("there is no such application")]
    UnknownOwner,
    #[error("the slot is in use by {sets} data sets; free them first")]
    InUse { sets: u32 },
    /// Over-committed.
    #[error(
        "{asked} {} colors ({} KiB) are not free: {}", kind_name(.kind), u64::from(*.asked) * .color_bytes / 1024, in_words(.free, *.together, *.color_bytes)
    )]
    Full {
        kind: Kind,
        /// Colors asked for in each cache.
        asked: u32,
        color_bytes: u64,
        /// Each cache asked for.
        free: Vec<Free>,
        /// Colors that the slot could have had in all of them.
        together: u32,
    },
    /// The slot has its colors on one cache already, and they are taken on another one.
    #[error(
        "the slot's colors are taken on cache {cache}: {taken} of {asked}; use another slot for the data set on these cpus"
    )]
    Taken { cache: usize, taken: u32, asked: u32 },
    /// A data set has the same colors everywhere, and the slot has different ones.
    #[error(
        "the slot has different colors on caches {} and {}, where different data sets use it; a data set on both needs a slot of its own",
        .caches.0, .caches.1
    )]
    Apart { caches: (usize, usize) },
    /// The colors are there, but not the frames.
    #[error(
        "{asked} colors with {needed} frames each at hand are needed for the data set; {enough} of the {free} free ones have so many: take a larger slot, or free data sets"
    )]
    Frames {
        asked: u32,
        /// Frames needed of each color.
        needed: u64,
        /// Free colors that have them.
        enough: u32,
        /// Free colors.
        free: u32,
    },
    #[error("an application may have {0} slots and as many data sets")]
    TooMany(u32),
}

/// The free space of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Free {
    /// Its place in [`Caches::cpus`](super::Caches::cpus).
    pub cache: usize,
    pub cpus: Vec<u32>,
    /// Colors not given to any slot.
    pub unspecified: u32,
    /// Colors that shared slots use together.
    pub shared: u32,
}

fn kind_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Private => "private",
        Kind::Shared => "shared",
    }
}

fn in_words(free: &[Free], together: u32, color_bytes: u64) -> String {
    let one = |free: &Free| {
        let cpus: Vec<String> = free.cpus.iter().take(8).map(u32::to_string).collect();
        let more = if free.cpus.len() > 8 { " ..." } else { "" };
        format!(
            "cache {} (cpus {}{more}) has {} unspecified and {} shared",
            free.cache,
            cpus.join(" "),
            free.unspecified,
            free.shared
        )
    };
    let mut text = free.iter().take(8).map(one).collect::<Vec<_>>().join(", ");
    if free.len() > 8 {
        text += &format!(", and {} caches more", free.len() - 8);
    }
    text + &format!(
        "; the slot could have {together} ({} KiB)",
        u64::from(together) * color_bytes / 1024
    )
}
