//! A policy's name, read once: which policy decides colors, which homes, and which the order of work.

use std::fmt;
use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::combine::Combined;
use crate::registry::{entry, registry};
use crate::seam::Policy;
use crate::settings::{Entry, Kind, PolicyError, Settings, Traits, join, split};
use crate::work::WorkOrder;

/// One policy, or several with `+` between them, at most one of each kind: `first-touch+cdpc`.
///
/// It is shown as it was written.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Name {
    parts: Vec<&'static Entry>,
}

impl Name {
    /// For each of the kinds the first policy in the registry that satisfies `is`.
    pub fn first(kinds: &[Kind], is: impl Fn(&Traits) -> bool) -> Name {
        let of = |kind: &Kind| registry().iter().find(|entry| entry.kind == *kind && is(&entry.traits));
        let parts = kinds.iter().filter_map(of).collect();
        Name { parts }
    }

    /// The policy that decides over a kind if no part of a name does.
    pub fn default_of(kind: Kind) -> Name {
        Name::first(&[kind], |traits| traits.default)
    }

    /// The policy of a kind, if the name has one.
    pub fn of(&self, kind: Kind) -> Option<&'static Entry> {
        self.parts.iter().copied().find(|part| part.kind == kind)
    }

    /// The policy, if it stands alone.
    pub fn alone(&self) -> Option<&'static Entry> {
        match self.parts[..] {
            [part] => Some(part),
            _ => None,
        }
    }

    /// True if `so` holds for a part of the name.
    pub fn is(&self, so: impl Fn(&Traits) -> bool) -> bool {
        self.parts.iter().any(|part| so(&part.traits))
    }

    /// True if the policy of a setting `policy.parameter=value` is a part of the name.
    pub fn has(&self, policy: &str) -> bool {
        self.parts.iter().any(|part| part.name == policy)
    }

    /// The name without the part of a kind; `None` if nothing is left.
    pub fn without(&self, kind: Kind) -> Option<Name> {
        let parts: Vec<_> = self.parts.iter().copied().filter(|part| part.kind != kind).collect();
        (!parts.is_empty()).then_some(Name { parts })
    }

    /// The name with the parts of another, each in the place of the one of its kind; if there is none, a home goes in front
    /// and the others come last.
    pub fn with(&self, other: &Name) -> Name {
        let mut parts = self.parts.clone();
        for new in &other.parts {
            match parts.iter_mut().find(|part| part.kind == new.kind) {
                Some(part) => *part = new,
                None if new.kind == Kind::Home => parts.insert(0, new),
                None => parts.push(new),
            }
        }
        Name { parts }
    }

    /// The same homes, with the colors of another policy; the work is left in its own order.
    pub fn recolored(&self, color: &Name) -> Name {
        let parts = self.of(Kind::Home).into_iter().collect();
        Name { parts }.with(color)
    }
}

impl From<&'static Entry> for Name {
    fn from(entry: &'static Entry) -> Name {
        Name { parts: vec![entry] }
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

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Name, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{:?}", self.to_string())
    }
}

/// Builds the policy that a name stands for.
///
/// `sets` are texts of the form `policy.parameter=value`; those that name a policy outside the
/// combination are passed over (they may be meant for another policy of the same run), but a
/// name that no policy has is an error. Kinds that no part decides fall to the defaults: homes by
/// first touch, colors by page coloring.
pub fn build(name: &Name, sets: &[String]) -> Result<Box<dyn Policy>, PolicyError> {
    let mut entries = name.parts.clone();
    for kind in [Kind::Home, Kind::Color] {
        if name.of(kind).is_none() {
            entries.extend(Name::default_of(kind).parts);
        }
    }
    let parts = entries
        .iter()
        .map(|entry| (entry.build)(&Settings::of(entry, sets)?))
        .collect::<Result<Vec<_>, _>>()?;
    check_names(sets)?;
    Ok(Box::new(Combined::new(parts)))
}

/// The parameters of policy `order`, if the name has it as a part; `sets` as in [`build`].
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
    fn parts_are_left_out_added_and_replaced() {
        let of = |text: &str| text.parse::<Name>().unwrap();
        let (name, order, slots) = (of("first-touch+cdpc+order"), of("order"), of("slots"));
        assert_eq!(name.without(Kind::Order).unwrap().to_string(), "first-touch+cdpc");
        assert_eq!(order.without(Kind::Order), None);
        assert_eq!(name.recolored(&slots).to_string(), "first-touch+slots");
        assert_eq!(order.recolored(&slots).to_string(), "slots");
        assert_eq!(
            name.with(&of("interleave+random")).to_string(),
            "interleave+random+order"
        );
        assert_eq!(
            order.with(&of("random+interleave")).to_string(),
            "interleave+order+random"
        );
    }

    #[test]
    fn names_are_made_of_what_the_registry_says() {
        let linux = Name::first(&[Kind::Home, Kind::Color], |traits| traits.linux);
        assert_eq!(linux.to_string(), "first-touch+random");
        assert!(linux.alone().is_none());
        assert_eq!(
            Name::default_of(Kind::Color).alone().map(|entry| entry.name),
            Some("page-coloring")
        );
        assert!(linux.is(|traits| traits.linux) && !linux.is(|traits| traits.hints));
    }
}
