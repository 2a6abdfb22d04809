//! A policy's name, read once: which policy decides colors, which homes, and which the order of work.

use std::fmt;
use std::str::FromStr;

use crate::combine::Combined;
use crate::registry::{entry, registry};
use crate::seam::Policy;
use crate::settings::{Entry, Kind, PolicyError, Settings, join, split};
use crate::work::WorkOrder;

/// One policy, or several with `+` between them, at most one of each kind: `first-touch+cdpc`.
///
/// It is shown as it was written.
#[derive(Clone)]
pub struct Name {
    parts: Vec<&'static Entry>,
}

impl Name {
    /// The policy of a kind, if the name has one.
    pub fn of(&self, kind: Kind) -> Option<&'static Entry> {
        self.parts.iter().copied().find(|part| part.kind == kind)
    }

    /// Whether a policy is a part of the name.
    pub fn has(&self, policy: &str) -> bool {
        self.parts.iter().any(|part| part.name == policy)
    }

    /// The name without the part of a kind; `None` where nothing is left.
    pub fn without(&self, kind: Kind) -> Option<Name> {
        let parts: Vec<_> = self.parts.iter().copied().filter(|part| part.kind != kind).collect();
        (!parts.is_empty()).then_some(Name { parts })
    }

    /// The same homes, with the colors of another policy; the work is left in its own order.
    ///
    /// Errors: as for a name that has this policy.
    pub fn recolored(&self, color: &str) -> Result<Name, PolicyError> {
        match self.of(Kind::Home) {
            Some(home) => format!("{}+{color}", home.name).parse(),
            None => color.parse(),
        }
    }
}

impl FromStr for Name {
    type Err = PolicyError;

    fn from_str(name: &str) -> Result<Name, PolicyError> {
        let mut parts: Vec<&'static Entry> = Vec::new();
        for part in name.split('+') {
            let entry = entry(part).ok_or_else(|| unknown(part))?;
            if parts.iter().any(|other| other.kind == entry.kind) {
                let what = match entry.kind {
                    Kind::Color => "a page's color",
                    Kind::Home => "a page's home",
                    Kind::Order => "the order of work",
                    Kind::Threads => "where threads run",
                };
                return Err(PolicyError::SameKind {
                    name: name.to_string(),
                    what,
                });
            }
            parts.push(entry);
        }
        Ok(Name { parts })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.parts.iter().map(|part| part.name).collect::<Vec<_>>().join("+"))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{:?}", self.to_string())
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        self.parts
            .iter()
            .map(|part| part.name)
            .eq(other.parts.iter().map(|part| part.name))
    }
}

impl Eq for Name {}

/// Builds the policy that a name stands for.
///
/// `sets` are texts of the form `policy.parameter=value`; those that name a policy outside the
/// combination are passed over (they may be meant for another policy of the same run), but a
/// name that no policy has is an error. What no part decides falls to the defaults: homes by
/// first touch, colors by page coloring.
pub fn build(name: &Name, sets: &[String]) -> Result<Box<dyn Policy>, PolicyError> {
    let mut entries = name.parts.clone();
    for (kind, default) in [(Kind::Home, "first-touch"), (Kind::Color, "page-coloring")] {
        if name.of(kind).is_none() {
            entries.extend(entry(default));
        }
    }
    let parts = entries
        .iter()
        .map(|entry| (entry.build)(&Settings::of(entry, sets)?))
        .collect::<Result<Vec<_>, _>>()?;
    check_names(sets)?;
    Ok(Box::new(Combined::new(parts)))
}

/// The parameters of policy `order`, where the name has it as a part; `sets` as in [`build`].
pub fn work_order(name: &Name, sets: &[String]) -> Result<Option<WorkOrder>, PolicyError> {
    let order = name.of(Kind::Order);
    order
        .map(|entry| Ok(WorkOrder::new(&Settings::of(entry, sets)?)))
        .transpose()
}

fn check_names(sets: &[String]) -> Result<(), PolicyError> {
    for text in sets {
        let (policy, _, _) = split(text)?;
        if entry(policy).is_none() {
            return Err(unknown(policy));
        }
    }
    Ok(())
}

fn unknown(name: &str) -> PolicyError {
    PolicyError::Unknown {
        name: name.to_string(),
        known: join(registry().iter().map(|entry| entry.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_as_it_was_written_and_its_parts_are_known_by_kind() {
        for text in [
            "cdpc",
            "first-touch+page-coloring",
            "page-coloring+first-touch",
            "random+order+round-robin",
        ] {
            let name: Name = text.parse().unwrap();
            assert_eq!(name.to_string(), text);
            assert_eq!(text.parse(), Ok(name));
        }
        let name: Name = "random+order+round-robin".parse().unwrap();
        let of = |kind| name.of(kind).map(|entry| entry.name);
        assert_eq!(of(Kind::Color), Some("random"));
        assert_eq!(of(Kind::Home), Some("round-robin"));
        assert_eq!(of(Kind::Order), Some("order"));
        assert!(name.has("order") && !name.has("cdpc"));
    }

    #[test]
    fn what_is_no_name_is_refused_with_the_part_that_is_wrong() {
        let why = |text: &str| text.parse::<Name>().unwrap_err().to_string();
        assert!(why("first-touch+kernel").contains("there is no policy `kernel`"));
        for empty in ["", "+", "random+", "+random"] {
            assert!(why(empty).contains("there is no policy ``"), "{empty}");
        }
        assert!(why(" random").contains("there is no policy ` random`"));
        let twice = why("first-touch+round-robin+cdpc");
        assert_eq!(
            twice,
            "`first-touch+round-robin+cdpc` combines two policies that both choose a page's home; keep one of them"
        );
    }

    #[test]
    fn parts_are_left_out_and_colors_replaced() {
        let name: Name = "first-touch+cdpc+order".parse().unwrap();
        assert_eq!(name.without(Kind::Order).unwrap().to_string(), "first-touch+cdpc");
        let order: Name = "order".parse().unwrap();
        assert_eq!(order.without(Kind::Order), None);
        assert_eq!(name.recolored("slots").unwrap().to_string(), "first-touch+slots");
        assert_eq!(order.recolored("slots").unwrap().to_string(), "slots");
        assert!(name.recolored("round-robin").is_err());
    }
}
