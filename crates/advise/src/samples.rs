//! The parts of an advice that rest on samples of the run, and their error.

use results::{count, percent};
use sim::{CurvesOutcome, Evidence, Sampled};

/// A note on samples; none if everything was examined, or the run was short.
pub fn in_words(evidence: Option<&Evidence>, curves: Option<&CurvesOutcome>) -> Option<String> {
    let causes = evidence.and_then(|evidence| evidence.sampled).map(|of| of_causes(&of));
    let curves = curves.and_then(|curves| curves.error).map(|error| {
        let error = percent(error);
        format!(
            "reuse of structures with many lines is followed on some of them, whose uses are off by {error} at most"
        )
    });
    let what: Vec<String> = [causes, curves].into_iter().flatten().collect();
    (!what.is_empty()).then(|| {
        format!(
            "counts and times are of all references; samples are what causes and curves rest on: {} (`--exact` looks at everything)",
            what.join("; ")
        )
    })
}

fn of_causes(of: &Sampled) -> String {
    format!(
        "steps and fields are of one access in {:.0} (standard error {} at most), use of lines is of {} lines ({})",
        of.one_in(),
        percent(of.error()),
        count(of.lines),
        percent(of.line_error()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_said_where_there_are_samples() {
        let sampled = Some(Sampled {
            accesses: 60_000_000,
            bursts: 400,
            burst: 4096,
            lines: 10_000,
        });
        let evidence = Evidence {
            sampled,
            ..Evidence::default()
        };
        let said = in_words(Some(&evidence), None).unwrap_or_default();
        assert!(
            said.contains("one access in 37 (standard error 2.5% at most)"),
            "{said}"
        );
        assert!(said.contains("10.0 k lines (0.5%)"), "{said}");
        assert_eq!(in_words(Some(&Evidence::default()), None), None);
    }
}
