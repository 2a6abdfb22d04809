//! The trial of each cache: do pages that agree in some bits of their frames' addresses compete for
//! its sets, and do pages that differ not?
//!
//! Both walks that are timed read the same number of pages with the same number of lines: one every line of each page,
//! the other words of a single line. The second time is the cost of translation for these very pages, whose numbers may
//! compete for sets of the TLB just as their lines do for sets of a cache. It is subtracted from the first.

use super::finding::{Bits, ColorVerdict, Finding, Step, Suspect};
use super::sets::{FIRST_BIT, Known, LINES, Sorted, dense, sparse};
use super::verdict::{Effect, Knee, Times, Trial, decisive, effect, knee, median, run};
use crate::Effort;
use crate::chase::Random;

/// Times a walk: the machine, or in tests a model of one.
pub trait Stopwatch {
    /// Nanoseconds a load of going round these words (page times 512, plus the word in the page), each
    /// load waiting for the one before, once all have been brought in.
    fn time(&mut self, words: &[u32]) -> f64;
}

/// The number of rounds.
struct Plan {
    steps: usize,
    tests: usize,
    ladder: usize,
}

impl Plan {
    fn of(effort: Effort) -> Plan {
        match effort {
            Effort::Quick => Plan {
                steps: 12,
                tests: 12,
                ladder: 5,
            },
            Effort::Careful => Plan {
                steps: 30,
                tests: 30,
                ladder: 9,
            },
        }
    }
}

/// Pages in a set.
const STEPS: [usize; 20] = [
    3, 4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 36, 40, 48, 56, 64, 80, 96,
];
/// The largest set has this many times the ways of the cache. A cache that takes the lines that the one before evicts
/// keeps the pages of both, so that twice the ways may not be enough; and all of a small cache is not much more than
/// four of its colors.
const WAYS_TIMES: usize = 4;
/// A load from beyond a cache is taken to cost at most this many times one that it serves.
const OUTSIDE_MAX: f64 = 6.0;
/// Fewer pages of one color than this, and it is not the ways that were met.
const PAGES_MIN: usize = 3;

/// Tries every suspect, the innermost first.
///
/// All bits of the addresses below bit `known` are known.
pub fn investigate<S: Stopwatch>(
    suspects: &[Suspect],
    pages: &[Known],
    known: u32,
    effort: Effort,
    stopwatch: &mut S,
) -> Vec<Finding> {
    let mut court = Court {
        pages,
        stopwatch,
        random: Random(0x2545_f491_4f6c_dd1d),
        plan: Plan::of(effort),
    };
    let ladder = court.ladder(suspects);
    suspects
        .iter()
        .zip(ladder.windows(2))
        .map(|(suspect, times)| court.examine(suspect, known, times[0], times[1]))
        .collect()
}

struct Court<'a, S> {
    pages: &'a [Known],
    stopwatch: &'a mut S,
    random: Random,
    plan: Plan,
}

impl<S: Stopwatch> Court<'_, S> {
    /// The cost of loads of these pages in the caches: every line, less one line of each page.
    fn beyond_translation(&mut self, pages: &[u32]) -> f64 {
        let all = dense(pages, &mut self.random);
        let all = self.stopwatch.time(&all);
        let one = sparse(pages, &mut self.random);
        all - self.stopwatch.time(&one)
    }

    /// Times of loads that each suspect serves and, last, that none serves; not a number where the
    /// pages there are do not suffice to get beyond the last cache.
    fn ladder(&mut self, suspects: &[Suspect]) -> Vec<f64> {
        let page = u64::from(LINES) * 64;
        let mut sizes: Vec<Option<u64>> = suspects
            .iter()
            .map(|suspect| {
                let between = (suspect.before as f64 * suspect.bytes as f64).sqrt() as u64;
                Some(between.min(suspect.before * 3).max(suspect.before + page))
            })
            .collect();
        let there = self.pages.len() as u64 * page;
        let last = suspects.last().map_or(0, |suspect| suspect.bytes);
        sizes.push((there >= last + last / 2).then_some(there.min(last * 2)));
        let mut seen = vec![Vec::new(); sizes.len()];
        for _ in 0..self.plan.ladder {
            for (times, &bytes) in seen.iter_mut().zip(&sizes) {
                let Some(bytes) = bytes else { continue };
                let pages = self.any((bytes / page) as usize);
                times.push(self.beyond_translation(&pages));
            }
        }
        // Any disturbance only makes a walk longer, and a time too long would hide thrashing.
        let least = |times: &Vec<f64>| times.iter().copied().reduce(f64::min).unwrap_or(f64::NAN);
        seen.iter().map(least).collect()
    }

    /// Pages of any frames.
    fn any(&mut self, count: usize) -> Vec<u32> {
        let mut places: Vec<u32> = (0..self.pages.len() as u32).collect();
        self.random.shuffle(&mut places);
        places.truncate(count);
        places
            .into_iter()
            .map(|place| self.pages[place as usize].page)
            .collect()
    }

    fn examine(&mut self, suspect: &Suspect, known: u32, inside_ns: f64, outside_ns: f64) -> Finding {
        let bits = suspect.bits().min(known - FIRST_BIT);
        let mut finding = Finding {
            cache: suspect.name.clone(),
            level: suspect.level,
            shared: suspect.shared,
            first_bit: FIRST_BIT,
            bits,
            times: None,
            steps: Vec::new(),
            tests: Vec::new(),
            verdict: ColorVerdict::Unclear { reason: String::new() },
        };
        finding.verdict = if bits == 0 {
            ColorVerdict::Nothing {
                reason: "a page covers all its sets".into(),
                confidence: 1.0,
            }
        } else {
            // On a busy machine the next level may be far slower than it is for small sets, and their thrashing would
            // look like little.
            let times = Times {
                inside_ns,
                outside_ns: match outside_ns.is_nan() {
                    true => outside_ns,
                    false => outside_ns.min(inside_ns * OUTSIDE_MAX),
                },
            };
            finding.times = times
                .inside_ns
                .is_finite()
                .then_some(times)
                .filter(|times| times.outside_ns.is_finite());
            if times.differ() {
                self.try_colors(suspect, times, &mut finding)
            } else {
                ColorVerdict::Unclear {
                    reason: undecided(suspect.bytes, inside_ns, outside_ns),
                }
            }
        };
        finding
    }

    fn try_colors(&mut self, suspect: &Suspect, times: Times, finding: &mut Finding) -> ColorVerdict {
        let sorted = Sorted::new(self.pages, finding.first_bit, finding.bits);
        let most = sorted.most();
        let counts = counts(most, suspect.ways);
        if most < suspect.ways as usize * 2 {
            return ColorVerdict::Unclear {
                reason: format!(
                    "of pages that agree in bits {} there are only {most} at hand, too few to fill {} ways twice",
                    span(finding.first_bit, finding.bits),
                    suspect.ways
                ),
            };
        }
        let steps = self.steps(&sorted, &counts);
        finding.steps = steps.iter().map(summary).collect();
        match knee(&steps, times) {
            Knee::At(pages) if pages >= PAGES_MIN => {}
            Knee::At(_) | Knee::AtOnce => {
                return ColorVerdict::Unclear {
                    reason: "even the smallest sets of pages do not stay in it: others use it at the same time".into(),
                };
            }
            Knee::Noise => return noise(),
            Knee::Never => return never(&sorted, &steps, suspect, times),
        }
        let singles = (0..finding.bits).map(|bit| 1u64 << bit);
        let counts = decisive(&steps, times);
        if counts.is_empty() {
            return noise();
        }
        let mut separate = Vec::new();
        let (mut chances, mut unclear) = (0.0, false);
        for mask in singles {
            let test = self.test(&sorted, mask, &counts, times);
            match test.effect {
                // Such bits are not relied on, but are no reason to give up the clear ones.
                Effect::Unclear => unclear = true,
                Effect::Separates { chance } | Effect::Nothing { chance } => chances += chance,
            }
            separate.push(matches!(test.effect, Effect::Separates { .. }));
            finding.tests.push(test);
        }
        let Some((first, length)) = run(&separate) else {
            if unclear {
                return noise();
            }
            return ColorVerdict::Nothing {
                reason: format!(
                    "pages that agree in bits {} compete for it, and pages that differ in one of them do so just as much",
                    span(finding.first_bit, finding.bits)
                ),
                confidence: 1.0 - chances,
            };
        };
        let run = (first as u32, length as u32);
        self.confirm(suspect, run, times, chances, finding)
    }

    /// With the other bits free a color must still have its share; and the bits that separate one by
    /// one must do so in pairs and all together, else it is their sum that decides.
    fn confirm(
        &mut self,
        suspect: &Suspect,
        (first, length): (u32, u32),
        times: Times,
        mut chances: f64,
        finding: &mut Finding,
    ) -> ColorVerdict {
        let first_bit = finding.first_bit + first;
        let sorted = Sorted::new(self.pages, first_bit, length);
        let most = sorted.most();
        let steps = self.steps(&sorted, &counts(most, suspect.ways));
        let pages = match knee(&steps, times) {
            Knee::At(pages) if pages >= PAGES_MIN => pages,
            Knee::Noise => return noise(),
            _ => {
                return ColorVerdict::Nothing {
                    reason: format!(
                        "bits {} separate pages only where the other bits are equal too: the index is a hash",
                        span(first_bit, length)
                    ),
                    confidence: 1.0 - chances,
                };
            }
        };
        let counts = decisive(&steps, times);
        if counts.is_empty() {
            return noise();
        }
        let pairs = (0..length).flat_map(|low| (low + 1..length).map(move |high| 1u64 << low | 1 << high));
        let all = (length > 2).then_some((1u64 << length) - 1);
        for mask in (0..length).map(|bit| 1u64 << bit).chain(pairs).chain(all) {
            let test = self.test(&sorted, mask, &counts, times);
            let effect = test.effect;
            finding.tests.push(test);
            match effect {
                Effect::Separates { chance } => chances += chance,
                Effect::Unclear => return noise(),
                Effect::Nothing { .. } => {
                    return ColorVerdict::Nothing {
                        reason: format!(
                            "pages that differ in bits {} together compete all the same: the index is a hash of them",
                            finding.tests.last().map(|test| list(&test.bits)).unwrap_or_default()
                        ),
                        confidence: 1.0 - chances,
                    };
                }
            }
        }
        ColorVerdict::Colors {
            first_bit,
            bits: length,
            pages,
            confidence: 1.0 - chances.min(1.0),
        }
    }

    /// Sets that agree and sets that are mixed, of growing size, in turn.
    fn steps(&mut self, sorted: &Sorted, counts: &[usize]) -> Vec<Trial> {
        let mut trials = empty(counts);
        for _ in 0..self.plan.steps {
            for trial in &mut trials {
                let value = sorted.value(&mut self.random);
                let same = sorted.agreeing(value, 0, trial.pages, &mut self.random);
                let mixed = sorted.mixed(trial.pages, &mut self.random);
                self.round(trial, &same, &mixed);
            }
        }
        trials
    }

    /// Sets that agree in all bits, and sets of which one half has those of `mask` flipped.
    fn test(&mut self, sorted: &Sorted, mask: u64, counts: &[usize], times: Times) -> Bits {
        let mut trials = empty(counts);
        for _ in 0..self.plan.tests {
            for trial in &mut trials {
                let value = sorted.value(&mut self.random);
                let same = sorted.agreeing(value, 0, trial.pages, &mut self.random);
                let flipped = sorted.agreeing(value, mask, trial.pages, &mut self.random);
                self.round(trial, &same, &flipped);
            }
        }
        let all = |times: fn(&Trial) -> &Vec<f64>| trials.iter().flat_map(times).copied().collect::<Vec<f64>>();
        Bits {
            bits: (0..sorted.bits())
                .filter(|bit| mask >> bit & 1 == 1)
                .map(|bit| bit + sorted.first())
                .collect(),
            same_ns: median(&all(|trial| &trial.same)),
            flipped_ns: median(&all(|trial| &trial.other)),
            effect: effect(&trials, times),
        }
    }

    /// One of each kind; which goes first is left to chance.
    fn round(&mut self, trial: &mut Trial, same: &[u32], other: &[u32]) {
        if self.random.below(2) == 0 {
            trial.same.push(self.beyond_translation(same));
            trial.other.push(self.beyond_translation(other));
        } else {
            trial.other.push(self.beyond_translation(other));
            trial.same.push(self.beyond_translation(same));
        }
    }
}

/// The numbers of pages to look at, `most` at most.
fn counts(most: usize, ways: u32) -> Vec<usize> {
    let most = most.min(ways as usize * WAYS_TIMES);
    STEPS.iter().copied().filter(|&count| count <= most).collect()
}

fn empty(counts: &[usize]) -> Vec<Trial> {
    let trial = |&pages: &usize| Trial {
        pages,
        same: Vec::new(),
        other: Vec::new(),
    };
    counts.iter().map(trial).collect()
}

fn summary(trial: &Trial) -> Step {
    Step {
        pages: trial.pages,
        same_ns: median(&trial.same),
        mixed_ns: median(&trial.other),
    }
}

fn noise() -> ColorVerdict {
    ColorVerdict::Unclear {
        reason: "the times contradict each other: the machine is too busy to tell; try again with --careful --fresh"
            .into(),
    }
}

/// Sets of equal pages stay in the cache however large they are.
fn never(sorted: &Sorted, steps: &[Trial], suspect: &Suspect, times: Times) -> ColorVerdict {
    let crowded: Vec<Trial> = steps
        .iter()
        .filter(|trial| trial.pages as u64 >= u64::from(suspect.ways) * 3 / 2)
        .cloned()
        .collect();
    match effect(&crowded, times) {
        Effect::Nothing { chance } => ColorVerdict::Nothing {
            reason: format!(
                "{} pages that agree in bits {} stay in it as well as mixed ones, where {} ways would hold {}",
                steps.last().map_or(0, |trial| trial.pages),
                span(sorted.first(), sorted.bits()),
                suspect.ways,
                suspect.ways
            ),
            confidence: 1.0 - chance,
        },
        // A difference here contradicts the sweep, which has just seen no rise.
        _ => noise(),
    }
}

/// `12` or `12-15`.
fn span(first: u32, bits: u32) -> String {
    match bits {
        0 | 1 => first.to_string(),
        _ => format!("{first}-{}", first + bits - 1),
    }
}

fn list(bits: &[u32]) -> String {
    let bits: Vec<String> = bits.iter().map(u32::to_string).collect();
    bits.join(" and ")
}

/// The reason why times decide nothing about a cache of `bytes` bytes; `outside_ns` is not a number if none was taken.
fn undecided(bytes: u64, inside_ns: f64, outside_ns: f64) -> String {
    if outside_ns.is_nan() {
        let has = bytes >> 20;
        return format!("too few pages are at hand to time loads that it does not serve: it has {has} MB");
    }
    format!(
        "loads that it serves and loads that it does not cannot be told apart by time ({inside_ns:.1} and {outside_ns:.1} ns)"
    )
}

#[cfg(test)]
mod tests {
    use super::undecided;

    #[test]
    fn times_that_were_not_taken_are_not_printed() {
        let large = undecided(480 << 20, 32.5, f64::NAN);
        assert!(large.contains("it has 480 MB") && !large.contains("NaN"), "{large}");
        assert!(undecided(1 << 20, 12.0, 14.0).ends_with("(12.0 and 14.0 ns)"));
    }
}
