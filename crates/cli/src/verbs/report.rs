//! `domicile report`: shows a saved result again, or compares two.

mod profile;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use results::{Document, saved};
use serde_json::json;

use super::compare::{self, Judging};
use super::{Done, saved as files};
use crate::console::Console;
use crate::destination::{Overwrite, STANDARD, apart};
use crate::failure::Failure;
use crate::shown::{Details, OF_JSON, Shown};
use profile::Profile;

/// Show a saved result as tables, as one HTML page, or as a profile for other viewers
///
/// Reads a result that `advise` has written, or that `simulate --json` or `compare --json` has printed. Given two
/// results, it shows what is better and what is worse in the second, as `domicile compare` does.
#[derive(Args)]
#[command(after_help = "Examples:\n  domicile report domicile-advice.json\n  \
                        domicile report domicile-advice.json --html advice.html\n  \
                        domicile report domicile-advice.json --format folded\n  \
                        domicile report before.json after.json")]
pub struct Report {
    /// The result; `-` reads standard input
    file: PathBuf,

    /// A result after a change, to compare with the first
    #[arg(value_name = "AFTER")]
    after: Option<PathBuf>,

    #[command(flatten)]
    judging: Judging,

    /// Write a self-contained HTML page instead of tables; `-` prints it
    #[arg(long, value_name = "PAGE")]
    html: Option<PathBuf>,

    /// The same as `--html`; with `--format`, the file for the profile
    #[arg(short, long, value_name = "FILE", conflicts_with = "html")]
    output: Option<PathBuf>,

    #[command(flatten)]
    profile: Profile,

    #[command(flatten)]
    details: Details,

    #[command(flatten)]
    shown: Shown,

    #[command(flatten)]
    overwrite: Overwrite,
}

impl Report {
    pub fn run(&self, console: &mut Console) -> Done {
        if self.overwrite.force && self.page().is_none() && !self.profile.is_wanted() {
            return Err(Failure::usage(
                "`--force` is for a file that is written; add `--html PAGE`, or `--format`",
            ));
        }
        if self.profile.is_wanted() {
            return self.write_profile(console);
        }
        let top = self.shown.top(match (self.page(), console.json()) {
            (Some(_), _) => Some("is of the lists that are printed as text: leave out `--top` or `--html`"),
            (None, true) => Some(OF_JSON),
            (None, false) => None,
        })?;
        for result in [Some(&*self.file), self.after.as_deref()] {
            is_another(result, "`--html`", self.page())?;
        }
        let printed = self.page() == Some(Path::new(STANDARD));
        if printed && console.json() {
            return Err(Failure::usage(
                "`--html -` prints a page, and `--json` a result: leave one out",
            ));
        }
        let page = self.page().filter(|_| !printed);
        let place = page.map(|page| self.overwrite.destination(page, "the page"));
        let place = place.transpose()?;
        if self.after.is_none() && !self.judging.conditions.is_empty() {
            return Err(Failure::usage(
                "`--fail-if` is for two results that are compared; give a second one",
            ));
        }
        let shown = self.read()?;
        let document = &shown.document;
        if printed {
            console.text(&report::page(document, &files::named_source))?;
            return shown.ended(console);
        }
        if let Some(place) = place {
            let page = place.path().to_path_buf();
            place.write_text(&report::page(document, &files::named_source))?;
            if console.json() {
                console.line(&json!({"page": page}))?;
            } else {
                console.text(&format!("Page: {}\n", page.display()))?;
            }
            return shown.ended(console);
        }
        if console.json() {
            // As it was saved: nothing that it lacks is added.
            for value in &shown.values {
                console.line(value)?;
            }
            return shown.ended(console);
        }
        let columns = console.columns();
        match document {
            Document::Advice(advice) if !self.details.wanted(self.shown) => {
                console.text(&report::screen(advice, columns))?;
            }
            Document::Outcomes(outcomes) if !self.details.given() => {
                console.text(&report::outcomes_screen(outcomes, columns, top))?;
            }
            _ => console.text(&report::text(document, columns, top))?,
        }
        if let Document::Advice(advice) = document
            && let Some(verified) = &advice.verified
        {
            console.text(&report::verified(verified, columns))?;
        }
        shown.ended(console)
    }

    /// The result as a profile.
    fn write_profile(&self, console: &mut Console) -> Done {
        if self.after.is_some() {
            return Err(Failure::usage(
                "`--format` makes a profile of one result: give one, or leave out `--format`",
            ));
        }
        is_another(Some(&*self.file), "the profile", self.output.as_deref())?;
        let ignored = [
            (
                self.details.given() || self.shown.given(),
                "`--details` and `--top` are of tables",
            ),
            (
                !self.judging.conditions.is_empty(),
                "`--fail-if` is for two results that are compared",
            ),
        ];
        if let Some((_, why)) = ignored.iter().find(|(given, _)| *given) {
            return Err(Failure::usage(format!("{why}: leave it out, or `--format`")));
        }
        self.profile.check(self.output.as_deref(), console)?;
        let document = files::parse(&files::text(&self.file)?, &self.file)?;
        self.profile
            .write(&document, self.output.as_deref(), self.overwrite, console)
    }

    /// The destination of the page.
    fn page(&self) -> Option<&Path> {
        self.html.as_deref().or(self.output.as_deref())
    }

    fn read(&self) -> Result<Read, Failure> {
        let Some(after) = &self.after else {
            let text = files::text(&self.file)?;
            return Ok(Read {
                document: files::parse(&text, &self.file)?,
                values: results::values(&text).map_err(Failure::work)?,
                judged: false,
            });
        };
        let comparison = compare::of_results(&self.file, after, &self.judging)?;
        let value = serde_json::to_value(saved(&comparison)).map_err(Failure::work)?;
        Ok(Read {
            document: Document::Comparison(Box::new(comparison)),
            values: vec![value],
            judged: true,
        })
    }
}

/// Refuses an output that would overwrite a result. Streams are not files.
fn is_another(result: Option<&Path>, what: &str, output: Option<&Path>) -> Result<(), Failure> {
    let is_file = |path: &&Path| *path != Path::new(STANDARD);
    apart(&[("the result", result.filter(is_file)), (what, output.filter(is_file))])
}

/// The results to show.
struct Read {
    document: Document,
    /// The same as JSON.
    values: Vec<serde_json::Value>,
    /// True if it was compared here, so that its conditions determine our exit status.
    judged: bool,
}

impl Read {
    /// Ends after everything was shown: reports the conditions that are met, and returns the exit status.
    fn ended(&self, console: &mut Console) -> Done {
        console.flush()?;
        match &self.document {
            Document::Comparison(comparison) if self.judged => Ok(compare::status(comparison)),
            _ => Ok(ExitCode::SUCCESS),
        }
    }
}
