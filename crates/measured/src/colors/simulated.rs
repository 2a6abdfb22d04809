//! The trial on models of machines, whose truth is known: for every model it must find the right colors or refuse, and
//! never find colors that do not exist.

use std::collections::VecDeque;

use super::finding::{ColorVerdict, Finding, Suspect};
use super::investigate::{Stopwatch, investigate};
use super::sets::Known;
use crate::Effort;
use crate::chase::Random;

/// Sets of a few ways, the least recently used line or one at random goes.
struct Cache {
    sets: Vec<VecDeque<u64>>,
    ways: usize,
    random: Option<Random>,
}

impl Cache {
    fn new(sets: usize, ways: usize) -> Cache {
        Cache {
            sets: vec![VecDeque::new(); sets],
            ways,
            random: None,
        }
    }

    /// Returns whether the line was there; it is now.
    fn touch(&mut self, set: usize, line: u64) -> bool {
        let lines = &mut self.sets[set];
        let at = lines.iter().position(|&other| other == line);
        match (at, &mut self.random) {
            (Some(at), None) => drop(lines.remove(at)),
            (Some(_), Some(_)) => return true,
            (None, None) if lines.len() == self.ways => drop(lines.pop_front()),
            (None, Some(random)) if lines.len() == self.ways => {
                let victim = random.below(self.ways as u64) as usize;
                lines.remove(victim);
            }
            (None, _) => {}
        }
        lines.push_back(line);
        at.is_some()
    }
}

/// How the bits of a line's number choose the set.
#[derive(Clone, Copy)]
enum Index {
    Low,
    /// The low bits, those that frames decide turned by the bits above.
    Hashed,
    /// Two slices, by the parity of many bits, and the low bits in each.
    Sliced,
}

impl Index {
    fn set(self, line: u64, sets: usize) -> usize {
        let low = line as usize % sets;
        match self {
            Index::Low => low,
            Index::Hashed => (line ^ line >> sets.trailing_zeros() << 6) as usize % sets,
            Index::Sliced => {
                let slice = (line & 0x15_5b5b_5b57).count_ones() as usize % 2;
                slice * (sets / 2) + line as usize % (sets / 2)
            }
        }
    }
}

struct Model {
    first: Cache,
    second: Cache,
    third: Cache,
    index: [Index; 2],
    tlb: Cache,
    /// The cost of a refill of the TLB.
    refill_ns: f64,
    /// The machine's own frame of each page.
    frames: Vec<u64>,
    noise: Option<Random>,
    /// The noise: a walk takes up to this many times as long.
    slower: f64,
}

/// The caches: 4 KiB in 8 sets, 256 KiB in 8 ways (eight colors, bits 12 to 14), 2 MiB in 16 ways
/// (32 colors, bits 12 to 16).
const FIRST: (usize, usize) = (8, 8);
const SECOND: (usize, usize) = (512, 8);
const THIRD: (usize, usize) = (2048, 16);
/// The TLB: few sets, by the low bits of the page.
const TLB: (usize, usize) = (16, 4);
const PAGES: u32 = 3072;

impl Model {
    fn new() -> Model {
        Model {
            first: Cache::new(FIRST.0, FIRST.1),
            second: Cache::new(SECOND.0, SECOND.1),
            third: Cache::new(THIRD.0, THIRD.1),
            index: [Index::Low, Index::Low],
            tlb: Cache::new(TLB.0, TLB.1),
            refill_ns: 0.0,
            frames: (0..u64::from(PAGES)).map(|page| page + (5 << 30)).collect(),
            noise: None,
            slower: 0.0,
        }
    }

    /// The frames as the program believes them to be: huge pages in order.
    fn believed() -> Vec<Known> {
        let known = |page: u32| Known {
            page,
            address: u64::from(page) << 12 & ((1 << 21) - 1),
        };
        (0..PAGES).map(known).collect()
    }

    fn scattered(mut self) -> Model {
        let mut random = Random(77);
        self.frames = (0..u64::from(PAGES)).map(|_| random.below(1 << 24)).collect();
        self
    }

    fn noisy(mut self, slower: f64, seed: u64) -> Model {
        self.noise = Some(Random(seed));
        self.slower = slower;
        self
    }

    fn load(&mut self, word: u32) -> f64 {
        let line = word / 8;
        let (page, within) = (line / 64, u64::from(line % 64));
        let line = self.frames[page as usize] * 64 + within;
        let refill = if self.tlb.touch(page as usize % TLB.0, page.into()) {
            0.0
        } else {
            self.refill_ns
        };
        refill
            + if self.first.touch(line as usize % FIRST.0, line) {
                1.0
            } else if self.second.touch(self.index[0].set(line, self.second.sets.len()), line) {
                4.0
            } else if self.third.touch(self.index[1].set(line, self.third.sets.len()), line) {
                20.0
            } else {
                100.0
            }
    }
}

impl Stopwatch for Model {
    fn time(&mut self, words: &[u32]) -> f64 {
        // Linking them and a round to warm up, as on the machine.
        for &word in words.iter().chain(words) {
            self.load(word);
        }
        let sum: f64 = words.iter().map(|&word| self.load(word)).sum();
        let noise = match &mut self.noise {
            // Seldom very much, mostly little, as the neighbors on a shared machine.
            Some(random) => (random.below(1 << 20) as f64 / f64::from(1 << 20)).powi(3) * self.slower,
            None => 0.0,
        };
        sum / words.len() as f64 * (1.0 + noise)
    }
}

fn suspects() -> Vec<Suspect> {
    let suspect = |name: &str, level: u8, (sets, ways): (usize, usize), before: (usize, usize)| Suspect {
        name: name.into(),
        level,
        shared: level == 3,
        bytes: (sets * ways * 64) as u64,
        ways: ways as u32,
        before: (before.0 * before.1 * 64) as u64,
    };
    vec![suspect("L2", 2, SECOND, FIRST), suspect("L3", 3, THIRD, SECOND)]
}

fn tried(mut model: Model) -> Vec<Finding> {
    investigate(&suspects(), &Model::believed(), 21, Effort::Quick, &mut model)
}

fn is_colors(finding: &Finding) -> Option<(u32, u32, usize)> {
    match finding.verdict {
        ColorVerdict::Colors {
            first_bit, bits, pages, ..
        } => Some((first_bit, bits, pages)),
        _ => None,
    }
}

#[test]
fn a_plain_machine_has_the_colors_of_its_caches() {
    let findings = tried(Model::new());
    assert_eq!(is_colors(&findings[0]), Some((12, 3, 8)), "{findings:#?}");
    assert_eq!(is_colors(&findings[1]), Some((12, 5, 16)), "{findings:#?}");
}

#[test]
fn replacement_at_random_hides_no_color() {
    let mut model = Model::new();
    model.second.random = Some(Random(9));
    model.third.random = Some(Random(10));
    let findings = tried(model);
    for (finding, bits) in findings.iter().zip([3, 5]) {
        let Some((12, found, _)) = is_colors(finding) else {
            panic!("{findings:#?}")
        };
        assert_eq!(found, bits);
    }
}

#[test]
fn a_host_that_scatters_leaves_no_colors() {
    for finding in tried(Model::new().scattered()) {
        assert!(matches!(finding.verdict, ColorVerdict::Nothing { .. }), "{finding:#?}");
    }
}

#[test]
fn translation_that_depends_on_the_bits_is_no_color() {
    let mut model = Model::new().scattered();
    model.refill_ns = 30.0;
    for finding in tried(model) {
        assert!(matches!(finding.verdict, ColorVerdict::Nothing { .. }), "{finding:#?}");
    }
    // And hides none that are there.
    let mut model = Model::new();
    model.refill_ns = 30.0;
    assert_eq!(is_colors(&tried(model)[0]), Some((12, 3, 8)));
}

#[test]
fn a_hashed_index_behind_a_plain_one_is_distinguished() {
    let mut model = Model::new();
    model.index[1] = Index::Hashed;
    let findings = tried(model);
    assert_eq!(is_colors(&findings[0]), Some((12, 3, 8)), "{findings:#?}");
    assert_eq!(is_colors(&findings[1]), None, "{findings:#?}");
}

#[test]
fn slices_leave_the_bits_that_choose_the_set_of_each() {
    let mut model = Model::new();
    model.index[1] = Index::Sliced;
    model.third = Cache::new(2 * THIRD.0, THIRD.1 / 2);
    let mut suspects = suspects();
    suspects[1].ways /= 2;
    let findings = investigate(&suspects, &Model::believed(), 21, Effort::Quick, &mut model);
    let Some((first, bits, pages)) = is_colors(&findings[1]) else {
        panic!("{findings:#?}");
    };
    assert_eq!((first, bits), (12, 5), "{findings:#?}");
    // Sixteen pages fill a color to the last line where the slices share them evenly.
    assert!((8..=16).contains(&pages), "{pages}");
}

#[test]
fn a_part_of_the_ways_is_what_a_color_is_worth() {
    let mut model = Model::new();
    model.third.ways = 10;
    assert_eq!(is_colors(&tried(model)[1]), Some((12, 5, 10)));
}

#[test]
fn noise_may_hide_colors_but_makes_none() {
    for (seed, slower) in [(1, 0.3), (2, 2.0), (3, 20.0)] {
        for finding in tried(Model::new().scattered().noisy(slower, seed)) {
            assert_eq!(is_colors(&finding), None, "{finding:#?}");
        }
        for (finding, bits) in tried(Model::new().noisy(slower, seed)).iter().zip([3, 5]) {
            assert!(
                is_colors(finding).is_none_or(|(first, found, _)| (first, found) == (12, bits)),
                "{finding:#?}"
            );
        }
    }
}

#[test]
fn little_noise_hides_nothing() {
    let findings = tried(Model::new().noisy(0.1, 3));
    assert_eq!(
        is_colors(&findings[0]).map(|(first, bits, _)| (first, bits)),
        Some((12, 3)),
        "{findings:#?}"
    );
}
