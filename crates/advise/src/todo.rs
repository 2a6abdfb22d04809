//! What to do about a program, the largest gain first: what all parts of an advice come to.
//!
//! A change counts only if its simulation gained something. A cause whose cure cannot be simulated counts by what is waited
//! for it, and says so. The rest is one sentence.

use std::iter::once;

use policy::{Kind, Name};
use results::{
    Advice, Cause, CauseKind, HomesAdvice, Instead, Outcome, RemoteReason, Side, Todo, count, percent, short,
};

use results::allocators::is_library_source;

use crate::homes::FORETOLD;
use crate::settings::Settings;
use crate::words::{NOTHING, list, saved};
use crate::{basis, cdpc, faults, range, sharing, slots};

/// A cure that nobody has simulated is worth naming from this share of the time on.
const WORTH: f64 = 0.05;
/// What is expected of it, as a part of what it could save at most.
const EXPECTED: f64 = 0.5;

/// All that is worth doing. `huge_pages`: for the page faults that they save. `has_ranges`: the machine's times are held against
/// clocks.
pub fn todo(advice: &Advice, huge_pages: Option<Todo>, has_ranges: bool) -> Vec<Todo> {
    let Some(base) = advice.base().filter(|base| base.references > 0) else {
        return Vec::new();
    };
    let mut all: Vec<Todo> = Vec::new();
    let mut known: Vec<&Cause> = Vec::new();
    // Colors of pages have an entry of their own.
    for cause in advice
        .causes
        .iter()
        .filter(|cause| cause.kind != CauseKind::PagesCollide)
    {
        // One change may be the cure of several causes.
        let same = |other: &&Cause| !cause.simulated.is_empty() && other.simulated == cause.simulated;
        if known.iter().any(same) {
            continue;
        }
        if let Some(todo) = of_cause(advice, cause) {
            known.push(cause);
            match all.iter_mut().find(|other| is_same(other, &todo)) {
                Some(other) => other.share += todo.share,
                None => all.push(todo),
            }
        }
    }
    all.extend(homes(advice));
    all.extend(threads(advice));
    all.extend(order(advice));
    all.extend(colors(advice, base));
    all.extend(faults::todo(advice, NOTHING));
    all.extend(huge_pages);
    let rank = |todo: &Todo| todo.gain.unwrap_or(EXPECTED * todo.share);
    all.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
    let command = command(advice);
    for todo in &mut all {
        let others = todo.instead.iter_mut().map(|other| &mut other.action);
        for action in once(&mut todo.action).chain(others) {
            *action = action.replace(PROGRAM, &command);
        }
        let varied = todo.gain.map(|gain| todo.range.unwrap_or([gain; 2]));
        todo.range = varied
            .filter(|_| has_ranges)
            .map(|gains| range::of_varied(gains, advice));
        for other in todo.instead.iter_mut().filter(|_| has_ranges) {
            other.range = Some(range::range(other.gain, advice));
        }
    }
    all
}

/// Stands for the program and its arguments.
const PROGRAM: &str = "PROGRAM";
/// A longer command would push what it saves off the screen.
const COMMAND: usize = 40;

/// The command that was recorded, to be typed again.
fn command(advice: &Advice) -> String {
    let words = once(&advice.program).chain(&advice.arguments).map(String::as_str);
    let command = shlex::try_join(words).unwrap_or_default();
    match advice.program.is_empty() || command.is_empty() || command.chars().count() > COMMAND {
        true => PROGRAM.to_string(),
        false => command,
    }
}

/// Whether one sentence says both, neither of which was simulated: the place that waits longer stands for the other.
fn is_same(one: &Todo, other: &Todo) -> bool {
    one.gain.is_none() && other.gain.is_none() && one.kind == other.kind && one.action == other.action
}

fn of_cause(advice: &Advice, cause: &Cause) -> Option<Todo> {
    // Nobody changes the C library for one program.
    if cause.file.as_deref().is_some_and(is_library_source) {
        return None;
    }
    let action = cause.change.clone()?;
    let gain = match cause.gain {
        Some(gain) if gain >= NOTHING => Some(gain),
        Some(_) => return None,
        None if cause.share >= WORTH => None,
        None => return None,
    };
    let instead = cause.alternatives.iter().filter_map(|other| {
        let gain = other.gain.filter(|gain| *gain >= NOTHING)?;
        let action = other.change.clone()?;
        Some(Instead {
            action,
            gain,
            ..Instead::default()
        })
    });
    let mut data = cause.structure.clone();
    if let [other] = &cause.other_structures[..] {
        data += &format!(" and {other}");
    } else if !cause.other_structures.is_empty() {
        data += &format!(" and {} others", cause.other_structures.len());
    }
    Some(Todo {
        source: cause.source.clone().or_else(|| named(&cause.function)),
        other_lines: cause.other_lines,
        file: cause.file.clone(),
        code: None,
        data: Some(data),
        kind: cause.kind.to_string(),
        because: cause.why.clone() + &sides(advice, cause),
        action,
        conditions: String::new(),
        instead: instead.collect(),
        // A change may mend more than its cause: huge pages leave fewer conflicts, too.
        share: cause.share.max(gain.unwrap_or(0.0)),
        gain,
        // Of the simulation alone; that of its errors comes to it.
        range: cause.gain_varied,
    })
}

/// The two accesses that take a line from one another most often.
fn sides(advice: &Advice, cause: &Cause) -> String {
    let lines = advice
        .false_sharing
        .iter()
        .filter(|_| cause.kind == CauseKind::FalseSharing);
    let worst = lines.max_by_key(|line| (line.structure == cause.structure, line.misses));
    let Some([one, other]) = worst
        .filter(|line| line.structure == cause.structure)
        .map(|line| &line.sides[..])
    else {
        return String::new();
    };
    let side = |side: &Side| match &side.source {
        Some(source) => format!("{} at {}", side.field, short(source)),
        None => side.field.clone(),
    };
    format!(": {} and {}", side(one), side(other))
}

/// A function that is known.
fn named(function: &str) -> Option<String> {
    (function != sim::UNKNOWN_CODE).then(|| function.to_string())
}

/// What brings remote data near.
fn homes(advice: &Advice) -> Option<Todo> {
    let homes = advice.homes.as_ref()?;
    let mut useful = homes
        .remedies
        .iter()
        .filter(|remedy| remedy.gain >= NOTHING && !remedy.how.is_empty());
    let Some(best) = useful.next() else {
        return filled_elsewhere(homes);
    };
    let instead = useful.map(|remedy| Instead {
        action: remedy.how.clone(),
        conditions: remedy.conditions.clone(),
        gain: remedy.gain,
        range: None,
    });
    let worst = homes.structures.first();
    // Lines that threads take from one another are an item of their own, and no place of the page mends them.
    if worst.is_some_and(|worst| is_taken_away(advice, &worst.name)) {
        return None;
    }
    let reason = worst.and_then(|worst| worst.reasons.first());
    Some(Todo {
        data: worst.map(|worst| worst.name.clone()),
        kind: "pages-remote".to_string(),
        because: format!(
            "{} of the time is waiting for another node's memory{}",
            percent(homes.remote_share),
            reason.map_or_else(String::new, |of| format!("; most of it is {}", of.reason))
        ),
        action: best.how.clone(),
        conditions: best.conditions.clone(),
        instead: instead.take(1).collect(),
        share: homes.remote_share,
        gain: Some(best.gain),
        ..Todo::default()
    })
}

/// Data that one thread fills for others. The simulation keeps the filling where it is, which is remote then: in a short run that
/// costs as much as it saves, while threads that fill their own parts have neither.
fn filled_elsewhere(homes: &HomesAdvice) -> Option<Todo> {
    let worst = homes.structures.first()?;
    let main = worst.reasons.first()?;
    let foretold = homes.remedies.iter().find(|remedy| remedy.name == FORETOLD)?;
    let later = foretold.later_gain.filter(|later| *later >= NOTHING)?;
    (homes.remote_share >= WORTH && main.reason == RemoteReason::FirstTouch).then(|| Todo {
        data: Some(worst.name.clone()),
        kind: "pages-remote".to_string(),
        because: format!(
            "{} of the time is waiting for another node's memory, most of it {}; near, the second half of the misses takes {} \
             less of the time",
            percent(homes.remote_share),
            main.reason,
            percent(later)
        ),
        action: foretold.how.clone(),
        share: homes.remote_share,
        ..Todo::default()
    })
}

/// Whether the waiting for some data is for lines that are lost to writes of other data in them.
fn is_taken_away(advice: &Advice, structure: &str) -> bool {
    let falsely = |cause: &&Cause| cause.kind == CauseKind::FalseSharing && cause.structure == structure;
    let share: f64 = advice.causes.iter().filter(falsely).map(|cause| cause.share).sum();
    advice
        .homes
        .as_ref()
        .is_some_and(|homes| share > 0.5 * homes.remote_share)
}

/// Where threads belong.
fn threads(advice: &Advice) -> Option<Todo> {
    let sharing = advice.sharing.as_ref().filter(|sharing| sharing::matters(sharing))?;
    let (best, now) = (sharing.placements.first()?, advice.base()?.time_ns.wall);
    let gain = saved(now, best.wall_ns);
    (gain >= NOTHING).then(|| Todo {
        kind: "threads-apart".to_string(),
        because: sharing.verdict.clone(),
        action: "add `--write-placement threads.sh`, which pins each thread by taskset".to_string(),
        share: gain,
        gain: Some(gain),
        ..Todo::default()
    })
}

/// Another order of the marked work.
fn order(advice: &Advice) -> Option<Todo> {
    let work = advice.work.as_ref().filter(|work| work.gain >= NOTHING)?;
    Some(Todo {
        kind: "order-of-work".to_string(),
        because: work.verdict.clone(),
        action: format!(
            "run the marked items in the order of `{}` (libdomicile's threads do it)",
            work.policy
        ),
        share: work.gain,
        gain: Some(work.gain),
        ..Todo::default()
    })
}

/// Colors of pages: the best of what was simulated, and what else gains something.
fn colors(advice: &Advice, base: &Outcome) -> Option<Todo> {
    let of_slots = advice.slots.as_ref().filter(|slots| slots::gains(slots));
    let of_slots = of_slots.filter(|slots| !basis::may_be_chance(advice, &slots.policy));
    let of_slots = of_slots.map(|slots| {
        let name = slots.written.as_deref().unwrap_or("program.slots");
        let action = format!("domicile run --slots {name} -- PROGRAM (`--write-slots {name}` writes the plan)");
        ("cache-slots", slots.gain, slots.verdict.clone(), action)
    });
    // Arrays are colored where a program's parallel loops are described: in a program with one thread there is nothing to
    // describe.
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

/// What was simulated that differs from the baseline in the colors of pages alone, with the color's name.
fn recolored<'a>(advice: &'a Advice, base: &'a Outcome) -> impl Iterator<Item = (&'static str, &'a Outcome)> {
    let now = part(base, Kind::Color);
    let same_but_color =
        |outcome: &&Outcome| outcome.order == base.order && part(outcome, Kind::Home) == part(base, Kind::Home);
    let others = advice.policies.iter().filter(same_but_color);
    others.filter_map(move |outcome| {
        let color = part(outcome, Kind::Color).filter(|color| Some(*color) != now)?;
        let slots = outcome
            .policy
            .parse::<Name>()
            .is_ok_and(|name| name.is(|traits| traits.slots));
        (!slots).then_some((color, outcome))
    })
}

/// Whether something was simulated that differs from the baseline in the homes of pages.
fn has_other_homes(advice: &Advice, base: &Outcome) -> bool {
    let mut homes = advice.policies.iter().map(|outcome| part(outcome, Kind::Home));
    homes.any(|home| home != part(base, Kind::Home))
}

/// The part of an outcome's policy that is of a kind.
fn part(outcome: &Outcome, kind: Kind) -> Option<&'static str> {
    let name = outcome.policy.parse::<Name>().ok()?;
    name.of(kind).map(|part| part.name)
}

/// The rest that was looked at, which gains nothing.
pub fn otherwise(advice: &Advice, settings: &Settings) -> String {
    let Some(base) = advice.base().filter(|base| base.references > 0) else {
        return "The trace holds no references.".to_string();
    };
    let has = |kind: &str| advice.todo.iter().any(|todo| todo.kind == kind);
    let mut without: Vec<String> = Vec::new();
    // A change that gains nothing was tried.
    let tried = advice
        .causes
        .iter()
        .filter(|cause| cause.gain.is_some_and(|gain| gain < NOTHING));
    let mut tried: Vec<String> = tried
        .map(|cause| format!("{} at {}", cure(cause), place(cause)))
        .collect();
    tried.sort();
    tried.dedup();
    without.extend(tried.into_iter().take(2));
    let near = advice.homes.iter().flat_map(|homes| &homes.remedies);
    let no_home_gains = !near.into_iter().any(|remedy| remedy.gain >= NOTHING);
    if advice.machine.nodes > 1 && no_home_gains && has_other_homes(advice, base) {
        without.push("other nodes for pages".to_string());
    }
    let colors_gain = recolored(advice, base).any(|(_, outcome)| basis::gain(base, outcome) >= NOTHING);
    let tried_colors = recolored(advice, base).next().is_some() && !colors_gain;
    if !has("page-colors") && !has("cache-slots") && tried_colors {
        without.push("other colors of pages".to_string());
    }
    if advice.sharing.is_some() && !has("threads-apart") {
        without.push("other cpus for threads".to_string());
    }
    if advice.work.is_some() && !has("order-of-work") {
        without.push("another order of the marked work".to_string());
    }
    let mut text = String::new();
    // Of a machine that was not used nothing is found.
    if let Some(homes) = advice.homes.as_ref().filter(|homes| !homes.on_one_node.is_empty()) {
        text += &format!("{} ", homes.on_one_node);
    }
    text += match advice.todo.is_empty() {
        true => "Nothing to do was found that gains 1%",
        false => "Nothing else gains 1%",
    };
    if !without.is_empty() {
        text += &format!(" (simulated, too: {})", list(&without));
    }
    text.push('.');
    if let Some(native) = advice.native.as_ref().filter(|native| !native.is_right()) {
        text += &match native.ratio() {
            ratio if ratio > 1.0 => {
                format!(
                    " The program takes {ratio:.1} times as long as simulated: more may be gained, here or elsewhere."
                )
            }
            ratio => format!(
                " The program takes {} of the simulated time: less may be gained.",
                percent(ratio)
            ),
        };
        if !(1.0 / FAR_OFF..=FAR_OFF).contains(&native.ratio()) {
            text += " `domicile probe --fresh` measures this machine again.";
        }
    }
    let half = base
        .windows
        .as_ref()
        .and_then(|windows| windows.ns_per_reference.relative());
    if let Some(half) = half.filter(|half| *half > FEW_WINDOWS && !advice.todo.is_empty()) {
        text += &format!(
            " The windows differ so much (time ± {}) that gains of the whole run may be others: record more of them.",
            percent(half)
        );
    }
    if advice.todo.is_empty() {
        text += &format!(" {}", why_nothing(advice, base));
        if advice.machine.name == range::MEASURED && advice.native.is_none() && !is_short(base) {
            text += match settings.ran {
                true => " It was not timed by itself, so more may be gained.",
                false => " No time was measured (`domicile advise -- PROGRAM` does), so more may be gained.",
            };
        }
    }
    if settings.no_colors.is_some() {
        text += " Page colors do nothing here (probe).";
    }
    text
}

/// Half an interval of the time, as a part of it, beyond which windows are too few for gains.
const FEW_WINDOWS: f64 = 0.5;
/// A simulated time that is so many times too long or too short may be that of a machine that has changed: neighbours leave more or
/// less of the last level than when it was probed.
const FAR_OFF: f64 = 2.0;

/// A program's start alone takes about so many references.
const START: u64 = 200_000;

fn is_short(base: &Outcome) -> bool {
    base.references < START && base.windows.is_none()
}

fn why_nothing(advice: &Advice, base: &Outcome) -> String {
    let time = &base.time_ns;
    let waits = time.cache_stall + time.local_stall + time.remote_stall + time.tlb_stall;
    let waits = waits as f64 / time.worked().max(1) as f64;
    let own = |cause: &&Cause| !cause.file.as_deref().is_some_and(is_library_source);
    match advice.causes.iter().find(own) {
        _ if is_short(base) => format!(
            "So short a run ({} references) is mostly the start of the program.",
            count(base.references)
        ),
        Some(worst) if waits >= WORTH => format!(
            "It waits for memory for {} of its time, most at {} for `{}`: {}.",
            percent(waits),
            place(worst),
            short(&worst.structure),
            worst.why
        ),
        _ => format!("It waits for memory for {} of its time.", percent(waits)),
    }
}

fn place(cause: &Cause) -> String {
    short(cause.source.as_ref().unwrap_or(&cause.function))
}

/// A cure in two words.
fn cure(cause: &Cause) -> &'static str {
    match cause.kind {
        CauseKind::WalksAcross => "interchange",
        CauseKind::PowerOfTwo => "padding",
        CauseKind::UnusedFields | CauseKind::FieldsApart => "splitting elements",
        CauseKind::ThinPages | CauseKind::TlbReach => "huge pages",
        CauseKind::LateReuse | CauseKind::Bandwidth => "tiling",
        CauseKind::PointerChasing => "chains in turn",
        CauseKind::Irregular => "prefetching",
        CauseKind::SameIndex => "interleaving",
        CauseKind::FalseSharing => "lines apart",
        CauseKind::ArraysCollide => "shifted arrays",
        _ => "the change",
    }
}
