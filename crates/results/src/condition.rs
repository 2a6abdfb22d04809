//! Conditions on a comparison, as `--fail-if` takes them: `time > +3%`.

use std::fmt::{self, Display};
use std::str::FromStr;

use crate::comparison::{Comparison, Difference, JudgedCondition, Verdict};
use crate::number::{count, time};

/// A bound on how much a figure may change.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    figure: Figure,
    relation: Relation,
    /// Of what the figure was before.
    percent: f64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Figure {
    Time,
    Stall,
    References,
    Misses(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    More,
    Less,
}

/// The forms that a condition may have.
const FORM: &str = "write `time`, `stall`, `references` or `misses(CACHE)`, then `>` or `<`, then a percentage, as in `time > +3%` \
                    or `misses(L2) > +5%`";

/// Why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; {FORM}")]
pub struct NotACondition(String);

/// A condition is of a cache that is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{condition}`: there is no cache `{cache}`; the caches are {known}")]
pub struct NoSuchCache {
    condition: String,
    cache: String,
    known: String,
}

impl FromStr for Condition {
    type Err = NotACondition;

    fn from_str(text: &str) -> Result<Condition, NotACondition> {
        let wrong = |why: String| NotACondition(why);
        let at = text
            .find(['>', '<'])
            .ok_or_else(|| wrong("there is no `>` and no `<`".to_string()))?;
        let relation = if text[at..].starts_with('>') {
            Relation::More
        } else {
            Relation::Less
        };
        let figure = match text[..at].trim() {
            "time" => Figure::Time,
            "stall" => Figure::Stall,
            "references" => Figure::References,
            other => {
                let inside = other.strip_prefix("misses").map(str::trim_start);
                let inside = inside.and_then(|rest| rest.strip_prefix('(')?.strip_suffix(')'));
                match inside.map(str::trim) {
                    Some(cache) if !cache.is_empty() => Figure::Misses(cache.to_string()),
                    _ => return Err(wrong(format!("`{other}` is no figure"))),
                }
            }
        };
        let bound = text[at + 1..].trim();
        let number = bound.strip_suffix('%').map(str::trim);
        let digits = |number: &&str| {
            let plain = number.strip_prefix(['+', '-']).unwrap_or(number);
            !plain.is_empty() && plain.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        };
        let percent = number.filter(digits).and_then(|number| number.parse().ok());
        Ok(Condition {
            figure,
            relation,
            percent: percent.ok_or_else(|| wrong(format!("`{bound}` is no percentage")))?,
        })
    }
}

impl Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let relation = match self.relation {
            Relation::More => '>',
            Relation::Less => '<',
        };
        write!(f, "{} {relation} {:+}%", self.figure, self.percent)
    }
}

impl Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Figure::Time => f.write_str("time"),
            Figure::Stall => f.write_str("stall"),
            Figure::References => f.write_str("references"),
            Figure::Misses(cache) => write!(f, "misses({cache})"),
        }
    }
}

impl Condition {
    /// Checks that a condition is of one of these caches, or of no cache.
    pub fn knows(&self, caches: &[&str]) -> Result<(), NoSuchCache> {
        match &self.figure {
            Figure::Misses(cache) if !caches.iter().any(|known| known == cache) => Err(NoSuchCache {
                condition: self.to_string(),
                cache: cache.clone(),
                known: caches.join(", "),
            }),
            _ => Ok(()),
        }
    }

    /// Judges if a comparison meets it. A change that is not told from chance meets only conditions that no change
    /// at all would meet.
    pub fn judge(&self, of: &Comparison) -> Result<JudgedCondition, NoSuchCache> {
        let caches: Vec<&str> = of.misses.iter().map(|cache| &*cache.name).collect();
        self.knows(&caches)?;
        let difference = match &self.figure {
            Figure::Time => of.time,
            Figure::Stall => of.stall,
            Figure::References => of.references,
            Figure::Misses(name) => {
                let cache = of.misses.iter().find(|cache| cache.name == *name);
                cache.map_or_else(Difference::default, |cache| cache.misses)
            }
        };
        // From nothing to something is more than any percentage.
        let change = difference.change.unwrap_or(match difference.after {
            0 => 0.0,
            _ => f64::INFINITY,
        });
        let chance = difference.verdict == Verdict::Same;
        let holds = self.holds(change);
        let met = holds && (!chance || self.holds(0.0));
        let words = |value| match self.figure {
            Figure::Time | Figure::Stall => time(value),
            Figure::References | Figure::Misses(_) => count(value),
        };
        let changed = match difference.change {
            Some(change) => format!("{:+.1}%", change * 100.0),
            None => "there was none before".to_string(),
        };
        let figures = format!("{} -> {}", words(difference.before), words(difference.after));
        let mut why = format!("{changed} ({figures})");
        if holds && !met {
            let noise = difference.noise_in_words();
            why += &format!(", not told from chance (recordings differ by {noise})");
        }
        Ok(JudgedCondition {
            condition: self.to_string(),
            met,
            why,
        })
    }

    fn holds(&self, change: f64) -> bool {
        match self.relation {
            Relation::More => change * 100.0 > self.percent,
            Relation::Less => change * 100.0 < self.percent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::ComparedMisses;

    #[test]
    fn conditions_are_read_and_written() {
        for (text, written) in [
            ("time > +3%", "time > +3%"),
            ("time>3%", "time > +3%"),
            (" misses( L2 ) > +5 % ", "misses(L2) > +5%"),
            ("stall < -2.5%", "stall < -2.5%"),
            ("references > 0%", "references > +0%"),
        ] {
            assert_eq!(text.parse::<Condition>().unwrap().to_string(), written);
        }
        for wrong in [
            "",
            "time",
            "time > 3",
            "time > %",
            "time > +x%",
            "time = 3%",
            "misses > 3%",
            "misses() > 3%",
            "wall > 3%",
            "time > inf%",
            "time >> 3%",
            "time > 3% and more",
        ] {
            let said = wrong.parse::<Condition>().unwrap_err().to_string();
            assert!(said.contains("misses(CACHE)"), "{wrong}: {said}");
        }
    }

    fn judged(condition: &str, before: u64, after: u64) -> JudgedCondition {
        let figure = Difference::new(&[before], &[after], 0.0, 0);
        let comparison = Comparison {
            time: figure,
            misses: vec![ComparedMisses {
                name: "L2".to_string(),
                misses: figure,
            }],
            ..Comparison::default()
        };
        condition.parse::<Condition>().unwrap().judge(&comparison).unwrap()
    }

    #[test]
    fn a_change_beyond_the_bound_and_beyond_chance_meets_a_condition() {
        assert!(judged("time > +3%", 1000, 1031).met);
        assert!(!judged("time > +3%", 1000, 1029).met);
        assert!(judged("misses(L2) < -3%", 1000, 960).met);
        let chance = judged("time > +0.5%", 1000, 1009);
        assert!(
            !chance.met && chance.why.contains("not told from chance"),
            "{}",
            chance.why
        );
        // No change at all meets this one: a gain of 10% was asked for.
        assert!(judged("time > -10%", 1000, 1000).met);
        assert!(!judged("time > -10%", 1000, 850).met);
        assert!(judged("time > +300%", 0, 5).met && !judged("time > +3%", 0, 0).met);
    }

    #[test]
    fn a_cache_that_is_not_there_is_named() {
        let condition: Condition = "misses(L7) > 1%".parse().unwrap();
        let said = condition.knows(&["L1", "L2"]).unwrap_err().to_string();
        assert!(said.contains("`L7`") && said.contains("L1, L2"), "{said}");
    }
}
