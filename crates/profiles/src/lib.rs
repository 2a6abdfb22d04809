//! Results in the forms that other viewers open: flame graphs, pprof, KCachegrind, Perfetto, and tables for databases.
//!
//! Everything here is pure: a result in, bytes out. [`export`] is the only entry point. All forms but Perfetto's show
//! the call stacks of a result ([`results::Profile`]); Perfetto's shows the waits over time ([`results::Timeline`]);
//! tables contain all parts of the result.
//!
//! Results are files, and may contain anything: an index of a missing frame becomes an unknown frame, and names lose
//! characters that would break their form.
#![forbid(unsafe_code)]

mod callgrind;
mod choices;
mod columns;
mod folded;
mod perfetto;
mod pprof;
mod runs;
mod stacks;
mod tables;

use results::Document;

use crate::stacks::Stacks;

pub use choices::{Format, Unknown, Value};
pub use columns::Columns;
pub use tables::TABLES;

/// The bytes of a result in another form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// One file without a name, or, if [`Format::is_folder`], several for one folder.
    pub files: Vec<(Option<&'static str>, Vec<u8>)>,
}

/// The data that a result lacks for a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoProfile {
    #[error(
        "this is a comparison, which has no call stacks and no times of its own; give one of the two results that it compares"
    )]
    Comparison,
    #[error(
        "this result says nothing by call stack: an older version wrote it, or nobody asked for it; \
         make it anew with `domicile advise`, or with `domicile simulate --by stack`"
    )]
    Stacks,
    #[error(
        "this result does not say what a change would avoid: `domicile advise` found none that changes where data waits, or this is a \
         result of `domicile simulate`, which looks for none; ask for `stall` or `misses`"
    )]
    Change,
    #[error(
        "`--value` chooses what `folded` weighs and `pprof` shows first; this form has all values or other ones: leave `--value` out"
    )]
    Value,
    #[error(
        "this result says nothing over time: an older version wrote it, or nobody asked for it; \
         make it anew with `domicile advise`, or with `domicile simulate --by time`"
    )]
    Timeline,
    #[error(
        "this result has no part that makes a table; make it anew with `domicile advise`, or ask `domicile simulate` for some \
         with `--by stack`, `line`, `structure`, `page` or `time`"
    )]
    Tables,
}

/// A result in another form. `value` is the weight of folded stacks, and pprof's first value; other forms have all
/// values.
pub fn export(document: &Document, format: Format, value: Value) -> Result<Export, NoProfile> {
    if value != Value::Stall && !matches!(format, Format::Folded | Format::Pprof) {
        return Err(NoProfile::Value);
    }
    let runs = runs::of(document)?;
    if format.is_folder() {
        let files = tables::files(&runs);
        if files.is_empty() {
            return Err(NoProfile::Tables);
        }
        let files = files.into_iter().map(|(name, bytes)| (Some(name), bytes)).collect();
        return Ok(Export { files });
    }
    let bytes = match format {
        Format::Perfetto => {
            let run = runs.iter().find(|run| run.timeline.is_some());
            let (run, timeline) = run
                .and_then(|run| Some((run, run.timeline?)))
                .ok_or(NoProfile::Timeline)?;
            perfetto::trace(run, timeline)
        }
        _ => {
            let run = runs.iter().find(|run| run.profile.is_some());
            let (run, profile) = run.and_then(|run| Some((run, run.profile?))).ok_or(NoProfile::Stacks)?;
            let stacks = Stacks::of(profile);
            match format {
                Format::Callgrind => callgrind::profile(run, &stacks),
                _ if value == Value::Avoided && stacks.change.is_none() => return Err(NoProfile::Change),
                Format::Folded => folded::stacks(&stacks, value),
                _ => pprof::profile(run, &stacks, value),
            }
        }
    };
    Ok(Export {
        files: vec![(None, bytes)],
    })
}
