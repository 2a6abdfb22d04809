//! `domicile report`: a saved result, shown again.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use results::Document;
use serde_json::json;

use super::Done;
use crate::console::Console;
use crate::destination::{Overwrite, STANDARD, apart};
use crate::failure::Failure;
use crate::shown::{Details, OF_JSON, Shown};

/// Longest result that is read.
const LIMIT: u64 = 1 << 30;

/// Show a saved result as tables or as one HTML page
///
/// Reads what `advise` has written or what `simulate --json` has printed.
#[derive(Args)]
#[command(after_help = "Examples:\n  domicile report domicile-advice.json\n  \
                        domicile report domicile-advice.json --html advice.html")]
pub struct Report {
    /// The result; `-` reads standard input
    file: PathBuf,

    /// Write an HTML page that needs nothing else, instead of tables; `-` prints it
    #[arg(long, value_name = "PAGE")]
    html: Option<PathBuf>,

    #[command(flatten)]
    details: Details,

    #[command(flatten)]
    shown: Shown,

    #[command(flatten)]
    overwrite: Overwrite,
}

impl Report {
    pub fn run(&self, console: &mut Console) -> Done {
        if self.overwrite.force && self.html.is_none() {
            return Err(Failure::usage(
                "`--force` is for a file that is written; add `--html PAGE`",
            ));
        }
        let top = self.shown.top(match (&self.html, console.json()) {
            (Some(_), _) => Some("is of the lists that are printed as text: leave out `--top` or `--html`"),
            (None, true) => Some(OF_JSON),
            (None, false) => None,
        })?;
        // Two streams are no file that could be written over.
        let is_file = |path: &&Path| *path != Path::new(STANDARD);
        let files = [("the result", Some(&*self.file)), ("`--html`", self.html.as_deref())];
        apart(&files.map(|(what, path)| (what, path.filter(is_file))))?;
        let printed = self.html.as_deref() == Some(Path::new(STANDARD));
        if printed && console.json() {
            return Err(Failure::usage(
                "`--html -` prints a page, and `--json` a result: leave one out",
            ));
        }
        let page = self.html.as_ref().filter(|_| !printed);
        let place = page.map(|page| self.overwrite.destination(page, "the page"));
        let place = place.transpose()?;
        let name = if self.file == Path::new("-") {
            "standard input".to_string()
        } else {
            self.file.display().to_string()
        };
        let text = self
            .read()
            .map_err(|error| Failure::work(format!("cannot read {name}: {error}; give the path of a saved result")))?;
        let document = Document::parse(&text).map_err(|error| {
            Failure::work(format!(
                "{name}: {error}; give a result of `domicile advise` or `domicile simulate --json`"
            ))
        })?;
        if printed {
            console.text(&report::page(&document))?;
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(place) = place {
            let page = place.path().to_path_buf();
            place.write_text(&report::page(&document))?;
            if console.json() {
                console.line(&json!({"page": page}))?;
            } else {
                console.text(&format!("Page: {}\n", page.display()))?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        if console.json() {
            // As it was saved: what it does not say is not made up.
            for value in results::values(&text).map_err(Failure::work)? {
                console.line(&value)?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        let columns = console.columns();
        match &document {
            Document::Advice(advice) if !self.details.wanted(self.shown) => {
                console.text(&report::screen(advice, columns))?;
            }
            _ => console.text(&report::text(&document, columns, top))?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn read(&self) -> std::io::Result<String> {
        let mut text = String::new();
        let source: Box<dyn Read> = match self.file == Path::new("-") {
            true => Box::new(std::io::stdin()),
            false => Box::new(std::fs::File::open(&self.file)?),
        };
        source.take(LIMIT + 1).read_to_string(&mut text)?;
        if text.len() as u64 > LIMIT {
            return Err(std::io::Error::other(format!("it is longer than {LIMIT} bytes")));
        }
        Ok(text)
    }
}
