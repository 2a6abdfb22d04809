//! The gaps in a trace of another tool, in words, and the gaps on which no advice can rest.

use results::count;
use trace::{Gaps, KernelPart, TraceError, Unknown};

/// The missing parts, a sentence for each.
pub fn in_words(gaps: &Gaps) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(filtered(gaps).map(|what| {
        format!(
            "the trace is filtered: {what} that a small cache of the recorder answered are not in it. Misses of larger caches can be \
             counted; hits, times, instructions and which part of a line is used are not known"
        )
    }));
    if gaps.no_data {
        notes.push("the trace holds instructions only: nothing is known of data".to_string());
    }
    if let Some(KernelPart {
        instructions,
        references,
    }) = gaps.kernel
    {
        notes.push(format!(
            "{} instructions and {} references that the kernel made for the program are left out",
            count(instructions),
            count(references)
        ));
    }
    if !gaps.unknown.is_empty() {
        let one = |Unknown { what, count: times }: &Unknown| match times {
            1 => format!("{what} once"),
            times => format!("{what} {} times", count(*times)),
        };
        let all: Vec<String> = gaps.unknown.iter().map(one).collect();
        notes.push(format!("what is not known was passed over: {}", all.join(", ")));
    }
    if !gaps.other_files.is_empty() {
        let quoted = |name: &String| format!("`{name}`");
        let names: Vec<String> = gaps.other_files.iter().map(quoted).collect();
        notes.push(format!(
            "files that are no part of the trace were left out: {}",
            names.join(", ")
        ));
    }
    notes
}

/// An error that no advice can be based on the trace, with its remaining uses.
pub fn refused(gaps: &Gaps) -> Result<(), TraceError> {
    let what = match filtered(gaps) {
        _ if gaps.no_data => {
            "the trace holds instructions only, and advice is about data: record it with the references of data (drmemtrace: without \
             -instr_only_trace). `domicile simulate` counts misses of code"
                .to_string()
        }
        Some(what) => format!(
            "the trace is filtered, without {what} that a small cache of the recorder answered, so that neither times nor what would \
             save time are known: record it without a filter (drmemtrace: without -L0_filter). `domicile simulate` counts misses of \
             caches larger than that one"
        ),
        None => return Ok(()),
    };
    Err(TraceError::Unfit(what))
}

fn filtered(gaps: &Gaps) -> Option<&'static str> {
    match (gaps.filtered_fetches, gaps.filtered_data) {
        (true, true) => Some("instructions and references of data"),
        (true, false) => Some("instructions"),
        (false, true) => Some("references of data"),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_and_nothing_else() {
        assert!(in_words(&Gaps::default()).is_empty());
        let kernel = Gaps {
            kernel: Some(KernelPart {
                instructions: 1000,
                references: 7,
            }),
            unknown: vec![Unknown {
                what: "record type 60".into(),
                count: 3,
            }],
            other_files: vec!["README".into()],
            ..Gaps::default()
        };
        assert_eq!(
            in_words(&kernel),
            [
                "1000 instructions and 7 references that the kernel made for the program are left out",
                "what is not known was passed over: record type 60 3 times",
                "files that are no part of the trace were left out: `README`"
            ]
        );
        assert!(refused(&kernel).is_ok());
    }

    #[test]
    fn no_advice_rests_on_what_a_filter_let_through_or_on_code_alone() {
        let data = Gaps {
            filtered_data: true,
            ..Gaps::default()
        };
        assert!(in_words(&data)[0].contains("references of data that a small cache"));
        assert!(refused(&data).unwrap_err().to_string().contains("without a filter"));
        let code = Gaps {
            no_data: true,
            filtered_fetches: true,
            ..Gaps::default()
        };
        assert_eq!(in_words(&code).len(), 2);
        assert!(refused(&code).unwrap_err().to_string().contains("instructions only"));
    }
}
