//! Everything else that was examined, and gains nothing, in a sentence or two.

use policy::Kind;
use results::allocators::is_library_source;
use results::{Advice, Cause, CauseKind, Outcome, count, percent, short};

use super::WORTH;
use super::colors::{part, recolored};
use crate::basis;
use crate::range;
use crate::settings::Settings;
use crate::words::{NOTHING, list};

/// Everything else that was examined, and gains nothing.
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
    // A machine that was not used shows nothing.
    if let Some(homes) = advice.homes.as_ref().filter(|homes| !homes.on_one_node.is_empty()) {
        text += &format!("{} ", homes.on_one_node);
    }
    if is_short(base) {
        let start = format!(
            "a run of {} references is mostly the start of the program",
            count(base.references)
        );
        text += &match advice.todo.is_empty() {
            true => format!("Too short to tell: {start}. "),
            false => format!("In a longer run these may gain less: {start}. "),
        };
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
    if advice.todo.is_empty() && !is_short(base) {
        text += &format!(" {}", why_nothing(advice, base));
        if advice.machine.name == range::MEASURED && advice.native.is_none() {
            text += match settings.ran {
                true => " It was not timed by itself, so more may be gained.",
                false => " No time was measured (`domicile advise -- PROGRAM` does), so more may be gained.",
            };
        }
    }
    let of_slots = advice.slots.iter().map(|slots| (slots.huge_pages, &slots.verdict));
    let of_hints = advice.cdpc.iter().map(|cdpc| (cdpc.huge_pages, &cdpc.verdict));
    for (_, verdict) in of_slots
        .chain(of_hints)
        .filter(|(lost, _)| lost.is_some_and(|lost| lost.refused))
    {
        text += &format!(" {verdict}");
    }
    if settings.no_colors.is_some() {
        text += " Page colors do nothing here (probe).";
    }
    text
}

/// The half interval, as a part of the time, from which on windows are too few for gains.
const FEW_WINDOWS: f64 = 0.5;
/// A simulated time that is this many times too long or too short may be for a machine that has changed: neighbours
/// leave more or less of the last level than when it was probed.
const FAR_OFF: f64 = 2.0;

/// The approximate number of references of a program's start.
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

/// True if a simulation differs from the baseline in the homes of pages.
fn has_other_homes(advice: &Advice, base: &Outcome) -> bool {
    let mut homes = advice.policies.iter().map(|outcome| part(outcome, Kind::Home));
    homes.any(|home| home != part(base, Kind::Home))
}
