//! The runs in a result, from any command.

use results::{Advice, Document, Outcome, Page, Profile, SourceLine, Structure, TOOL, Timeline};

use crate::NoProfile;

/// The program's name if the result has none.
const PROGRAM: &str = "program";

/// One run under one policy, and its known parts.
pub struct Run<'a> {
    pub program: &'a str,
    pub arguments: &'a [String],
    pub machine: &'a str,
    pub policy: String,
    pub profile: Option<&'a Profile>,
    pub timeline: Option<&'a Timeline>,
    pub lines: Option<&'a [SourceLine]>,
    pub structures: Option<&'a [Structure]>,
    pub pages: Option<&'a [Page]>,
}

/// All runs of a result. In an advice, the first is the one that the advice is given for.
pub fn of(document: &Document) -> Result<Vec<Run<'_>>, NoProfile> {
    match document {
        Document::Advice(advice) => {
            let others = advice
                .policies
                .iter()
                .filter(|outcome| outcome.policy != advice.baseline);
            let mut runs = vec![Run::advised(advice)];
            runs.extend(others.map(|outcome| Run {
                program: program(&advice.program),
                arguments: &advice.arguments,
                ..Run::simulated(outcome)
            }));
            Ok(runs)
        }
        Document::Outcomes(outcomes) => Ok(outcomes.iter().map(Run::simulated).collect()),
        Document::Comparison(_) => Err(NoProfile::Comparison),
    }
}

fn program(name: &str) -> &str {
    if name.is_empty() { PROGRAM } else { name }
}

impl<'a> Run<'a> {
    fn advised(advice: &'a Advice) -> Run<'a> {
        let base = advice.base();
        Run {
            program: program(&advice.program),
            arguments: &advice.arguments,
            machine: &advice.machine.name,
            policy: advice.baseline.clone(),
            profile: advice.profile.as_ref(),
            timeline: advice.timeline.as_ref(),
            // All of the baseline's; the advice itself has only the worst ones. An advice without lines is from a
            // version that did not look for them.
            lines: base
                .and_then(|outcome| outcome.source_lines.as_deref())
                .or(Some(&advice.source_lines[..]).filter(|lines| !lines.is_empty())),
            structures: base
                .and_then(|outcome| outcome.structures.as_deref())
                .or(Some(&advice.structures)),
            pages: base.and_then(|outcome| outcome.pages.as_deref()),
        }
    }

    fn simulated(outcome: &'a Outcome) -> Run<'a> {
        Run {
            program: program(&outcome.program),
            arguments: &outcome.arguments,
            machine: &outcome.machine,
            policy: outcome.name(),
            profile: outcome.profile.as_ref(),
            timeline: outcome.timeline.as_ref(),
            lines: outcome.source_lines.as_deref(),
            structures: outcome.structures.as_deref(),
            pages: outcome.pages.as_deref(),
        }
    }

    /// The command of the run, quoted for a shell.
    pub fn command(&self) -> String {
        let words = [self.program]
            .into_iter()
            .chain(self.arguments.iter().map(String::as_str));
        // An argument cannot contain a zero byte.
        shlex::try_join(words).unwrap_or_else(|_| self.program.to_string())
    }

    /// The meaning of its numbers, so that they are not taken for measured ones: a sentence for each fact.
    pub fn about(&self) -> Vec<String> {
        vec![
            format!("simulated by {TOOL}, not measured"),
            format!("machine: {}", self.machine),
            format!("policy: {}", self.policy),
        ]
    }
}
