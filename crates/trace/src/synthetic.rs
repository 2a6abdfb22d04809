//! Synthetic reference streams of known character, for tests and side-by-side measurements.
//!
//! Three kinds, each with one write in four references: [`Kind::Hot`] stays in 24 KiB, [`Kind::Mixed`] combines a walk,
//! repeated use and random accesses over 16 MiB, [`Kind::Random`] accesses 64 MiB at random. The same kind, seed and
//! length give the same references on every machine.

use crate::model::{Op, Ref, Site, SiteId};
use crate::writer::Writer;

/// The character of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Random within 24 KiB: all in a first-level cache.
    Hot,
    /// 40% a walk over 16 MiB by strides of 8 bytes, 40% random within 24 KiB, 20% random over
    /// 16 MiB.
    Mixed,
    /// Random over 64 MiB.
    Random,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Hot, Kind::Mixed, Kind::Random];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Hot => "hot",
            Kind::Mixed => "mixed",
            Kind::Random => "random",
        }
    }
}

/// The first address of the streams' data.
pub const BASE: u64 = 0x1000_0000;
const HOT_BYTES: u64 = 24 << 10;
const MIXED_BYTES: u64 = 16 << 20;
const RANDOM_BYTES: u64 = 64 << 20;
/// The address at which the walk of the mixed stream begins: apart from the hot data.
const FAR: u64 = BASE + (1 << 20);

/// An endless stream of references of 8 bytes, each one instruction after the other.
pub struct Stream {
    kind: Kind,
    state: u64,
    walk: u64,
    /// Read and write sites: of the walk, of the hot part, of the stray part.
    sites: [[SiteId; 2]; 3],
}

impl Stream {
    /// Its sites are added to `writer`.
    pub fn new(kind: Kind, seed: u64, writer: &mut Writer) -> Stream {
        let sites = sites().map(|pair| pair.map(|site| writer.site(site)));
        Stream::with_sites(kind, seed, sites)
    }

    /// For use without a writer: sites 0 to 5, those of [`sites`].
    pub fn bare(kind: Kind, seed: u64) -> Stream {
        Stream::with_sites(kind, seed, [[0, 1], [2, 3], [4, 5]])
    }

    fn with_sites(kind: Kind, seed: u64, sites: [[SiteId; 2]; 3]) -> Stream {
        Stream {
            kind,
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            walk: 0,
            sites,
        }
    }

    /// xorshift64* (Marsaglia 2003, Vigna 2016).
    fn random(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// The sites of a stream: read and write, of the walk, of the hot part, of the stray part.
pub fn sites() -> [[Site; 2]; 3] {
    [0x40_1000, 0x40_2000, 0x40_3000].map(|pc| {
        [
            Site {
                pc,
                op: Op::Read,
                size: 8,
            },
            Site {
                pc: pc + 4,
                op: Op::Write,
                size: 8,
            },
        ]
    })
}

impl Iterator for Stream {
    type Item = Ref;

    fn next(&mut self) -> Option<Ref> {
        let dice = self.random();
        let place = (dice >> 16) & 0xff_ffff;
        let tenth = ((dice >> 8 & 0xff) * 10) >> 8;
        let (part, addr) = match (self.kind, tenth) {
            (Kind::Mixed, 0..4) => {
                self.walk = (self.walk + 8) % MIXED_BYTES;
                (0, FAR + self.walk)
            }
            (Kind::Hot, _) | (Kind::Mixed, 4..8) => (1, BASE + 8 * (place % (HOT_BYTES / 8))),
            (Kind::Mixed, _) => (2, FAR + 8 * (place % (MIXED_BYTES / 8))),
            (Kind::Random, _) => (2, BASE + 8 * (place % (RANDOM_BYTES / 8))),
        };
        let write = dice & 3 == 0;
        let op = if write { Op::Write } else { Op::Read };
        Some(Ref {
            addr,
            site: self.sites[part][usize::from(write)],
            insns: 1,
            op,
            size: 8,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_streams_have_the_character_they_claim() {
        for kind in Kind::ALL {
            let refs: Vec<Ref> = Stream::bare(kind, 7).take(100_000).collect();
            let share = |f: &dyn Fn(&Ref) -> bool| refs.iter().filter(|r| f(r)).count() as f64 / refs.len() as f64;
            assert!((share(&|r| r.op == Op::Write) - 0.25).abs() < 0.01);
            let hot = share(&|r| r.addr < BASE + HOT_BYTES);
            match kind {
                Kind::Hot => assert_eq!(hot, 1.0),
                Kind::Mixed => {
                    assert!((hot - 0.4).abs() < 0.01, "{hot}");
                    assert!((share(&|r| r.site < 2) - 0.4).abs() < 0.01);
                    assert!(refs.iter().all(|r| r.addr < FAR + MIXED_BYTES));
                }
                Kind::Random => {
                    assert!(hot < 0.01);
                    assert!(refs.iter().all(|r| (BASE..BASE + RANDOM_BYTES).contains(&r.addr)));
                }
            }
            assert_eq!(refs, Stream::bare(kind, 7).take(100_000).collect::<Vec<_>>());
        }
    }
}
