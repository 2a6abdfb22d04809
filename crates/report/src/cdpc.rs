//! Compiler-directed page coloring: what its hints would gain, beside the usual policies, and what to do for it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::number::{bytes, count, nanoseconds, percent};
use crate::outcome::{Cache, Outcome, Structure};
use crate::work::Change;

/// Below this, two predicted times are the same for all that the model can tell.
const NOTHING: f64 = 0.01;
/// Arrays that are named.
const ARRAYS: usize = 10;
/// An array with a smaller part of the conflicts is not named.
const FEW: f64 = 0.01;
/// What policies that it is compared with do to pages' colors.
const RIVALS: [&str; 2] = ["page-coloring", "bin-hopping"];

/// What policy `cdpc` was told, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CdpcTold {
    /// `summaries` (what the program's compiler said) or `trace` (which cpus touch which pages).
    pub from: String,
    pub loops: u64,
    pub arrays: u64,
    pub segments: u64,
    pub sets: u64,
    /// Pages with a hint, and of those the ones that the cpu with most touches.
    pub pages: u64,
    pub pages_of_one_cpu: u64,
    pub colors: u32,
    /// Pages that were touched and had a hint, and those that got the color.
    pub asked: u64,
    pub honoured: u64,
    /// Summaries that cannot be: the first of them in words, and how many.
    pub malformed: Vec<String>,
    pub malformed_summaries: u64,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl CdpcTold {
    /// In a line for people.
    pub fn in_words(&self) -> String {
        let source = self.source();
        let mut text = match self.pages {
            0 => format!("cdpc: no hints: no array of several pages is known from {source}"),
            pages => format!(
                "cdpc: hints for {} of {}, from {source} ({} in {}); {} of {} were honoured",
                many(pages, "page"),
                many(self.arrays, "array"),
                many(self.segments, "uniform access segment"),
                many(self.sets, "set"),
                count(self.honoured),
                count(self.asked),
            ),
        };
        if self.malformed_summaries > 0 {
            text += &format!(
                "; {} left out: {}",
                many(self.malformed_summaries, "summary").replace("summarys", "summaries"),
                self.malformed.join("; ")
            );
        }
        text
    }

    fn source(&self) -> String {
        match self.from.as_str() {
            "summaries" => format!("what the compiler said of {}", many(self.loops, "parallel loop")),
            _ => "which cpus touch which pages".to_string(),
        }
    }
}

fn many(number: u64, what: &str) -> String {
    format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" })
}

/// What the hints would gain, as it was simulated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CdpcAdvice {
    /// The policy with the hints, and its predicted time.
    pub policy: String,
    pub wall_ns: f64,
    pub told: CdpcTold,
    /// The outermost cache.
    pub cache: String,
    /// The others: page coloring, bin hopping, and what a usual kernel does.
    pub against: Vec<CdpcRival>,
    /// The arrays with the most conflicts in that cache under the baseline.
    pub arrays: Vec<CdpcArray>,
    /// What to do for it; empty where nothing is gained.
    pub next: String,
    /// All this in words.
    pub verdict: String,
}

/// Another policy, and what becomes of it with hints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CdpcRival {
    pub policy: String,
    pub wall_ns: f64,
    /// The part of its time that is saved; negative where the hints cost time.
    pub gain: f64,
    /// Misses of the outermost cache, and those of them that are conflicts.
    pub misses: Change,
    pub conflicts: Change,
}

/// An array and its misses in the outermost cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CdpcArray {
    pub name: String,
    pub bytes: u64,
    pub misses: u64,
    pub conflicts: u64,
}

impl CdpcAdvice {
    /// Where one of the policies is the baseline with its colors by hints, and there are hints.
    pub fn new(policies: &[Outcome], base: &Outcome) -> Option<CdpcAdvice> {
        let of_base = |color: &str| with_colors(&base.policy, color);
        let hinted = |outcome: &&Outcome| outcome.cdpc.is_some() && outcome.policy == of_base("cdpc");
        let hinted = policies.iter().find(hinted)?;
        let told = hinted.cdpc.clone().filter(|told| told.pages > 0)?;
        let outer = outermost(hinted);
        let mut against: Vec<CdpcRival> = RIVALS
            .iter()
            .filter_map(|color| policies.iter().find(|outcome| outcome.policy == of_base(color)))
            .map(|rival| against(rival, hinted))
            .collect();
        if base.policy != hinted.policy && against.iter().all(|rival| rival.policy != base.policy) {
            against.push(self::against(base, hinted));
        }
        let mut advice = CdpcAdvice {
            policy: hinted.policy.clone(),
            wall_ns: hinted.time_ns.wall,
            told,
            arrays: arrays(&base.structures, outer.level),
            cache: outer.name,
            against,
            next: String::new(),
            verdict: String::new(),
        };
        if advice.gains() {
            advice.next = advice.what_to_do();
        }
        advice.verdict = advice.in_words(&outermost(base));
        Some(advice)
    }

    /// Whether any of the others would be slower by more than nothing, and none faster.
    pub fn gains(&self) -> bool {
        let gains = || self.against.iter().map(|rival| rival.gain);
        gains().any(|gain| gain >= NOTHING) && gains().all(|gain| gain > -NOTHING)
    }

    fn what_to_do(&self) -> String {
        match self.told.from.as_str() {
            "summaries" => "start the program with `domicile run --policy cdpc -- PROGRAM`".to_string(),
            _ => "build the program with domicile-cc, domicile-c++ or domicile-fc, which tell the run-time library of its \
                  parallel loops, and start it with `domicile run --policy cdpc -- PROGRAM`"
                .to_string(),
        }
    }

    fn in_words(&self, base: &Cache) -> String {
        let of_each = |say: &dyn Fn(&CdpcRival) -> String| list(&self.against.iter().map(say).collect::<Vec<_>>());
        let gains = of_each(&|rival| format!("{} of the time under `{}`", percent(rival.gain), rival.policy));
        if self.gains() {
            let conflicts = of_each(&|rival| count(rival.conflicts.before));
            let after = self.against.first().map_or(0, |rival| rival.conflicts.after);
            return format!(
                "Compiler-directed page coloring would save {gains}: {} instead of {}, with {} conflict misses in {} instead \
                 of {conflicts}. For it, {}.",
                nanoseconds(self.wall_ns),
                of_each(&|rival| nanoseconds(rival.wall_ns)),
                count(after),
                self.cache,
                self.next
            );
        }
        let slower: Vec<&CdpcRival> = self.against.iter().filter(|rival| rival.gain <= -NOTHING).collect();
        if let Some(best) = slower.iter().min_by(|a, b| a.gain.total_cmp(&b.gain)) {
            return format!(
                "Compiler-directed page coloring would gain nothing: it takes {} more time than `{}`.",
                percent(-best.gain),
                best.policy
            );
        }
        let conflict = base.conflict as f64 / base.misses.max(1) as f64;
        let why = match conflict {
            _ if base.misses == 0 || !base.classed() => String::new(),
            few if few < NOTHING => format!(": {} of the {} misses are conflicts", percent(few), self.cache),
            _ if base.capacity > base.conflict => format!(
                ": {} of the {} misses are for want of capacity, which no place of pages mends",
                percent(base.capacity as f64 / base.misses as f64),
                self.cache
            ),
            _ => String::new(),
        };
        format!("Compiler-directed page coloring makes no difference to the time{why}.")
    }
}

/// A policy's name with another part for colors.
fn with_colors(policy: &str, color: &str) -> String {
    let recolored = policy.parse::<policy::Name>().and_then(|name| name.recolored(color));
    recolored.map_or_else(|_| color.to_string(), |name| name.to_string())
}

fn outermost(outcome: &Outcome) -> Cache {
    outcome.caches.last().cloned().unwrap_or_default()
}

fn against(rival: &Outcome, hinted: &Outcome) -> CdpcRival {
    let (before, after) = (outermost(rival), outermost(hinted));
    let wall = rival.time_ns.wall;
    CdpcRival {
        policy: rival.policy.clone(),
        wall_ns: wall,
        gain: if wall > 0.0 {
            (wall - hinted.time_ns.wall) / wall
        } else {
            0.0
        },
        misses: Change {
            before: before.misses,
            after: after.misses,
        },
        conflicts: Change {
            before: before.conflict,
            after: after.conflict,
        },
    }
}

/// The data structures with the most conflicts in the caches of a level.
fn arrays(structures: &[Structure], level: u8) -> Vec<CdpcArray> {
    let all: u64 = structures
        .iter()
        .map(|structure| structure.of_level(level).conflict)
        .sum();
    let array = |structure: &Structure| {
        let cache = structure.of_level(level);
        CdpcArray {
            name: structure.name.clone(),
            bytes: structure.bytes,
            misses: cache.misses,
            conflicts: cache.conflict,
        }
    };
    let mut arrays: Vec<CdpcArray> = structures.iter().map(array).collect();
    arrays.retain(|array| array.conflicts > 0 && array.conflicts as f64 >= FEW * all as f64);
    arrays.sort_by_key(|array| std::cmp::Reverse(array.conflicts));
    arrays.truncate(ARRAYS);
    arrays
}

fn list(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// The sizes of what is told, in a line.
pub fn facts(advice: &CdpcAdvice) -> String {
    let told = &advice.told;
    let part = match told.pages_of_one_cpu {
        0 => String::new(),
        pages => format!("; one cpu touches up to {} of them", many(pages, "page")),
    };
    format!(
        "{}{part}, and there are {}",
        told.in_words(),
        many(told.colors.into(), "color")
    )
}

/// An array's size, where it is known.
pub fn size(array: &CdpcArray) -> String {
    match array.bytes {
        0 => String::new(),
        size => bytes(size),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(policy: &str, wall: f64, capacity: u64, conflict: u64) -> Outcome {
        let mut value = json!({
            "policy": policy,
            "caches": [
                {"name": "L1", "level": 1, "misses": 9},
                {"name": "L2", "level": 2, "misses": capacity + conflict, "capacity": capacity, "conflict": conflict},
            ],
            "time_ns": {"wall": wall},
            "structures": [
                {"name": "x", "bytes": 4096, "caches": [{"name": "L2", "level": 2, "misses": 90, "conflict": 80}]},
                {"name": "y", "caches": [{"name": "L2", "level": 2, "misses": 900, "conflict": 0}]},
            ],
        });
        if policy.ends_with("cdpc") {
            value["cdpc"] = json!({"from": "trace", "pages": 64, "arrays": 2, "segments": 8, "sets": 4, "colors": 32,
                "asked": 64, "honoured": 60, "pages_of_one_cpu": 32, "malformed_summaries": 1, "malformed": ["l: none"]});
        }
        serde_json::from_value(value).unwrap()
    }

    fn advice(walls: [f64; 4], capacity: u64, conflict: u64) -> CdpcAdvice {
        let names = [
            "first-touch+page-coloring",
            "first-touch+bin-hopping",
            "first-touch+random",
            "first-touch+cdpc",
        ];
        let policies: Vec<Outcome> = names
            .iter()
            .zip(walls)
            .map(|(name, wall)| outcome(name, wall, capacity, if name.ends_with("cdpc") { 0 } else { conflict }))
            .collect();
        CdpcAdvice::new(&policies, &policies[2]).unwrap()
    }

    #[test]
    fn the_verdict_tells_what_is_saved_and_what_to_do() {
        let good = advice([4e9, 2e9, 3e9, 1e9], 10, 1000);
        assert!(good.gains());
        assert_eq!(
            good.verdict,
            "Compiler-directed page coloring would save 75.0% of the time under `first-touch+page-coloring`, 50.0% of the time \
             under `first-touch+bin-hopping` and 66.7% of the time under `first-touch+random`: 1.00 s instead of 4.00 s, 2.00 s \
             and 3.00 s, with 0 conflict misses in L2 instead of 1000, 1000 and 1000. For it, build the program with \
             domicile-cc, domicile-c++ or domicile-fc, which tell the run-time library of its parallel loops, and start it with \
             `domicile run --policy cdpc -- PROGRAM`."
        );
        assert_eq!(good.arrays.len(), 1);
        assert_eq!((good.arrays[0].name.as_str(), good.arrays[0].conflicts), ("x", 80));
        assert_eq!(
            good.told.in_words(),
            "cdpc: hints for 64 pages of 2 arrays, from which cpus touch which pages (8 uniform access segments in 4 sets); 60 \
             of 64 were honoured; 1 summary left out: l: none"
        );
    }

    #[test]
    fn what_gains_nothing_says_why() {
        let worse = advice([4e9, 1e9, 3e9, 1.2e9], 10, 1000);
        assert!(!worse.gains() && worse.next.is_empty());
        assert!(
            worse
                .verdict
                .contains("takes 20.0% more time than `first-touch+bin-hopping`"),
            "{}",
            worse.verdict
        );
        let same = advice([1e9; 4], 990, 10);
        assert!(
            same.verdict.contains("99.0% of the L2 misses are for want of capacity"),
            "{}",
            same.verdict
        );
        let few = advice([1e9; 4], 10_000, 1);
        assert!(few.verdict.contains("are conflicts"), "{}", few.verdict);
    }

    #[test]
    fn without_hints_there_is_no_advice() {
        let plain = outcome("random", 1.0, 1, 1);
        assert_eq!(CdpcAdvice::new(std::slice::from_ref(&plain), &plain), None);
        let mut empty = outcome("cdpc", 1.0, 1, 1);
        empty.cdpc.as_mut().unwrap().pages = 0;
        assert_eq!(CdpcAdvice::new(&[plain.clone(), empty], &plain), None);
    }
}
