//! `domicile import`: traces of other tools.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use results::{Imported, saved};
use trace::import::Format;

use super::Done;
use crate::console::{self, Console};
use crate::destination::{Overwrite, apart, no_stream};
use crate::failure::Failure;
use crate::progress;

/// Import a trace of another tool
///
/// The text format is one record a line: `<thread> <r|w|i> <hex address> <bytes>`; `b <n>` is a barrier of n threads,
/// `<thread> begin <hex hint>...` and `<thread> end` mark a work item,
/// `#` starts a comment.
#[derive(Args)]
#[command(
    after_help = "Example:\n  valgrind --tool=lackey --trace-mem=yes ls 2> ls.lackey\n  \
                        domicile import --format lackey ls.lackey -o ls.trace"
)]
pub struct Import {
    /// Format of the file
    #[arg(long, value_parser = formats())]
    format: Format,

    /// The file to import, which may be compressed by gzip, xz or zstd; for drmemtrace also a zip archive or a folder
    file: PathBuf,

    /// The trace to write
    #[arg(short, long, value_name = "TRACE")]
    output: PathBuf,

    #[command(flatten)]
    overwrite: Overwrite,
}

fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name)).try_map(|name| name.parse::<Format>())
}

impl Import {
    pub fn run(&self, console: &mut Console) -> Done {
        no_stream(&self.output)?;
        apart(&[("the input", Some(&self.file)), ("`--output`", Some(&self.output))])?;
        self.overwrite.allows(&self.output, "the trace")?;
        let bar = progress::unknown(&format!("importing {}", self.file.display()));
        let imported = trace::import::file(self.format, &self.file, &self.output);
        bar.finish_and_clear();
        let imported = imported.map_err(|error| {
            Failure::work(match error {
                trace::TraceError::Import { .. } => format!(
                    "{}: {error}; is it really in the format `{}`?",
                    self.file.display(),
                    self.format.name()
                ),
                error => error.to_string(),
            })
        })?;
        if imported.summary.references == 0 && imported.header.gaps.is_none() {
            // An empty trace is useless.
            let _ = std::fs::remove_file(&self.output);
            return Err(Failure::work(format!(
                "{}: it holds no references in the format `{}`; is it the right file?",
                self.file.display(),
                self.format.name()
            )));
        }
        let (summary, notes) = (imported.summary, advise::limits(&imported.header));
        if console.json() {
            console.line(&saved(&Imported {
                output: self.output.display().to_string(),
                format: self.format.name().to_string(),
                references: summary.references,
                bytes: summary.bytes,
                notes,
            }))?;
        } else {
            for note in &notes {
                console::note(format_args!("note: {note}"));
            }
            console.text(&format!(
                "{} references in {}, {}\n",
                report::count(summary.references),
                self.output.display(),
                report::bytes(summary.bytes)
            ))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
