//! Colors of pages as a thing to do: cache slots, and placement.

use policy::{Kind, Name};
use results::{Advice, Instead, Outcome, Todo, percent};

use crate::words::NOTHING;
use crate::{basis, cdpc, slots};

/// Colors of pages: the best simulated policy, and others that gain something.
pub fn colors(advice: &Advice, base: &Outcome) -> Option<Todo> {
    let of_slots = advice.slots.as_ref().filter(|slots| slots::gains(slots));
    let of_slots = of_slots.filter(|slots| !basis::may_be_chance(advice, &slots.policy));
    let of_slots = of_slots.map(|slots| {
        let name = slots.written.as_deref().unwrap_or("program.slots");
        let action = format!("domicile run --slots {name} -- PROGRAM (`--write-slots {name}` writes the plan)");
        ("cache-slots", slots.gain, slots.verdict.clone(), action)
    });
    // Arrays are colored if a program's parallel loops are described: a program with one thread has none to describe.
    let described = advice.cdpc.as_ref().is_some_and(|cdpc| cdpc.hints.loops > 0);
    let named = recolored(advice, base).filter(|_| advice.trace.threads > 1 || described);
    let best = named.max_by(|a, b| basis::gain(base, a.1).total_cmp(&basis::gain(base, b.1)));
    let of_policy = best.map(|(color, best)| {
        let because = format!(
            "pages that are used together compete for the same sets of a cache: `{}` takes {} less time than `{}`",
            best.policy,
            percent(basis::gain(base, best)),
            base.policy
        );
        let action = match advice.cdpc.as_ref().filter(|cdpc| cdpc::gains(cdpc)) {
            Some(cdpc) if cdpc.policy == best.policy => cdpc.next.clone(),
            // The run-time colors arrays that the program describes.
            _ => format!(
                "build it with domicile-cc, which describes its parallel loops, and start it with `domicile run --policy \
                 {color} -- PROGRAM`"
            ),
        };
        ("page-colors", basis::gain(base, best), because, action)
    });
    let mut all: Vec<_> = of_slots
        .into_iter()
        .chain(of_policy)
        .filter(|(_, gain, ..)| *gain >= NOTHING)
        .collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut all = all.into_iter();
    let (kind, gain, because, action) = all.next()?;
    Some(Todo {
        kind: kind.to_string(),
        because,
        action,
        instead: all
            .map(|(_, gain, _, action)| Instead {
                action,
                gain,
                ..Instead::default()
            })
            .collect(),
        share: gain,
        gain: Some(gain),
        ..Todo::default()
    })
}

/// The simulated runs that differ from the baseline only in the colors of pages, with the color's name.
pub fn recolored<'a>(advice: &'a Advice, base: &'a Outcome) -> impl Iterator<Item = (&'static str, &'a Outcome)> {
    let now = part(base, Kind::Color);
    let same_but_color =
        |outcome: &&Outcome| outcome.order == base.order && part(outcome, Kind::Home) == part(base, Kind::Home);
    let others = advice.policies.iter().filter(same_but_color);
    let others = others.filter(|outcome| !advice.refused.contains(&outcome.policy));
    others.filter_map(move |outcome| {
        let color = part(outcome, Kind::Color).filter(|color| Some(*color) != now)?;
        let slots = outcome
            .policy
            .parse::<Name>()
            .is_ok_and(|name| name.is(|traits| traits.slots));
        (!slots).then_some((color, outcome))
    })
}

/// The part of an outcome's policy that is of a kind.
pub fn part(outcome: &Outcome, kind: Kind) -> Option<&'static str> {
    let name = outcome.policy.parse::<Name>().ok()?;
    name.of(kind).map(|part| part.name)
}
