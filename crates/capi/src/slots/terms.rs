//! The safe library `live` in C's terms: the start of an application, its state, its errors.

use live::slots::{ColorsFrom, Error, Means, On, Refused, Start, Through};
use live::{Colors, Source};

use super::structures::domicile_slots_state;
use super::structures::{domicile_colors_source, domicile_others, domicile_slot_kind, domicile_slots_attributes};
use crate::error::Failure;
use crate::error::domicile_error::{
    self, DOMICILE_IN_USE, DOMICILE_INVALID, DOMICILE_OUT_OF_MEMORY, DOMICILE_OVERCOMMITTED, DOMICILE_REFUSED,
    DOMICILE_UNAVAILABLE, DOMICILE_UNFIT, DOMICILE_UNKNOWN_HANDLE,
};

/// Converts C's attributes.
pub fn start(attributes: &domicile_slots_attributes) -> Result<Start, Failure> {
    let on = match attributes.processors {
        0 => On::Affinity,
        processors => On::Processors(processors),
    };
    let colors = match (attributes.force, attributes.measure) {
        (0, 0) => ColorsFrom::Found,
        (0, _) => ColorsFrom::Measured,
        _ => ColorsFrom::Given(forced(attributes)?),
    };
    let through = match attributes.without_daemon {
        0 => Through::DaemonIfThere,
        _ => Through::Own,
    };
    Ok(Start { on, colors, through })
}

fn forced(attributes: &domicile_slots_attributes) -> Result<Colors, Failure> {
    let domicile_slots_attributes {
        first_bit,
        bits,
        color_bytes,
        ..
    } = *attributes;
    let colors = Colors {
        first_bit,
        bits,
        color_bytes,
        cache: "forced".to_owned(),
        source: Source::Forced,
    };
    colors.check().map_err(|not| {
        let text = format!("force with first_bit {first_bit}, bits {bits}, color_bytes {color_bytes}: {not}");
        Failure::saying(DOMICILE_INVALID, text)
    })?;
    Ok(colors)
}

/// Starts an application; more processors than there are stand for all of them, for the sake of portable programs.
pub fn application(attributes: &domicile_slots_attributes) -> Result<live::slots::Application, Failure> {
    let start = start(attributes)?;
    match live::slots::Application::start(start.clone()) {
        Err(Error::Processors { asked, there, .. }) if asked > there => Ok(live::slots::Application::start(Start {
            on: On::Affinity,
            ..start
        })?),
        other => Ok(other?),
    }
}

/// The facilities in use, for people: a line for each.
pub fn words(means: &Means) -> String {
    let Some(colors) = &means.colors else {
        return format!(
            "ways: {} of {} bytes each\n\
             caches: {}\n\
             who keeps the ways: {}\n\
             {}",
            means.caches.colors,
            means.caches.color_bytes,
            means.caches.cpus.len(),
            means.ledger,
            means.engine.trim_end()
        );
    };
    let Colors {
        first_bit,
        bits,
        color_bytes,
        cache,
        source,
    } = colors;
    let says = match source {
        Source::Validated => "validated on this machine",
        Source::Forced if means.recording => "as Linux describes the cache; nothing is changed under a recorder",
        Source::Forced => "FORCED, against or without the word of the probe",
    };
    let last = first_bit + bits - 1;
    format!(
        "colors: {} of {color_bytes} bytes each in {cache}, by address bits {first_bit} to {last}, {says}\n\
         caches: {}\n\
         who keeps the colors: {}\n\
         {}",
        1u64 << bits,
        means.caches.cpus.len(),
        means.ledger,
        means.engine.trim_end()
    )
}

/// The state of an application.
pub fn state(application: &live::slots::Application) -> Result<domicile_slots_state, Failure> {
    use domicile_colors_source::{DOMICILE_COLORS_FORCED, DOMICILE_COLORS_NONE, DOMICILE_COLORS_VALIDATED};
    let space = application.available()?;
    let means = application.means();
    let used = |cache: &&Vec<u32>| cache.iter().any(|cpu| application.cpus().contains(cpu));
    let caches = means.caches.cpus.iter().filter(used).count();
    let colors = means.colors.as_ref();
    let source = match colors.map(|colors| colors.source) {
        _ if means.recording => DOMICILE_COLORS_NONE,
        None => DOMICILE_COLORS_NONE,
        Some(Source::Validated) => DOMICILE_COLORS_VALIDATED,
        Some(Source::Forced) => DOMICILE_COLORS_FORCED,
    };
    Ok(domicile_slots_state {
        size: size_of::<domicile_slots_state>(),
        colors: colors.map_or(0, Colors::count),
        caches: caches as u32,
        color_bytes: colors.map_or(0, |colors| colors.color_bytes),
        available: space.bytes,
        source: source as u32,
        first_bit: colors.map_or(0, |colors| colors.first_bit),
        recording: u32::from(means.recording),
        reserved: 0,
    })
}

impl From<domicile_others> for live::slots::Others {
    fn from(others: domicile_others) -> live::slots::Others {
        match others {
            domicile_others::DOMICILE_OTHERS_ABSENT => live::slots::Others::Absent,
            domicile_others::DOMICILE_OTHERS_RUNNING => live::slots::Others::Running,
        }
    }
}

impl From<domicile_slot_kind> for live::slots::Kind {
    fn from(kind: domicile_slot_kind) -> live::slots::Kind {
        match kind {
            domicile_slot_kind::DOMICILE_SLOT_SHARED => live::slots::Kind::Shared,
            domicile_slot_kind::DOMICILE_SLOT_PRIVATE => live::slots::Kind::Private,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::saying(code(&error), error.to_string())
    }
}

impl From<live::Error> for Failure {
    fn from(error: live::Error) -> Failure {
        Failure::from(Error::from(error))
    }
}

fn code(error: &Error) -> domicile_error {
    match error {
        full if full.is_full() => DOMICILE_OVERCOMMITTED,
        Error::Live(error) => live_code(error),
        Error::Refused(Refused::Apart { .. }) => DOMICILE_OVERCOMMITTED,
        Error::Refused(Refused::InUse { .. }) | Error::Overlap { .. } => DOMICILE_IN_USE,
        Error::Refused(_) | Error::Range { .. } | Error::NoThread { .. } | Error::NoThreads => DOMICILE_INVALID,
        Error::Processors { .. } | Error::Cpu { .. } | Error::OtherApplication => DOMICILE_INVALID,
        Error::NoWholePage { .. } => DOMICILE_UNFIT,
        Error::Exited | Error::Forked { .. } => DOMICILE_UNKNOWN_HANDLE,
        Error::Caches(_) => DOMICILE_UNAVAILABLE,
        Error::Daemon { .. } => DOMICILE_REFUSED,
        _ => DOMICILE_REFUSED,
    }
}

fn live_code(error: &live::Error) -> domicile_error {
    match error {
        live::Error::Unavailable { .. } | live::Error::NoColors { .. } => DOMICILE_UNAVAILABLE,
        live::Error::Unfit { .. } => DOMICILE_UNFIT,
        live::Error::Wish(_) => DOMICILE_INVALID,
        live::Error::NoFrames { .. } | live::Error::Memory { .. } => DOMICILE_OUT_OF_MEMORY,
        _ => DOMICILE_REFUSED,
    }
}
