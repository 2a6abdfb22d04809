//! `domicile report --format`: a saved result as a profile that other viewers open.

use std::fs;
use std::io::{ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use profiles::{Export, Format, Value};
use results::Document;
use serde_json::json;

use super::super::Done;
use crate::console::Console;
use crate::destination::{Overwrite, STANDARD};
use crate::failure::Failure;

/// The options of a profile.
#[derive(Args)]
pub struct Profile {
    /// Write a profile for other viewers instead of tables: stall by call stack, line and data structure
    #[arg(long, value_name = "FORM", conflicts_with = "html")]
    format: Option<Form>,

    /// The weight of stacks: the only value in `folded`, the one shown first in `pprof`
    #[arg(long, requires = "format", default_value = "stall", hide_default_value = false)]
    value: Weight,
}

#[derive(Clone, Copy, ValueEnum)]
enum Form {
    /// For `go tool pprof`, speedscope and the Firefox Profiler
    Pprof,
    /// One line for each stack: speedscope, inferno, flamegraph.pl
    Folded,
    /// Stall over time, for Perfetto
    Perfetto,
    /// A folder of tables for DuckDB, Polars and pandas
    Parquet,
    /// For KCachegrind and callgrind_annotate
    Callgrind,
}

#[derive(Clone, Copy, ValueEnum)]
enum Weight {
    /// Time that cpus waited
    Stall,
    /// The part of the stall that the largest change would avoid
    Avoided,
    /// Misses of the caches nearest to the cpus
    Misses,
}

impl Form {
    fn format(self) -> Format {
        match self {
            Form::Pprof => Format::Pprof,
            Form::Folded => Format::Folded,
            Form::Perfetto => Format::Perfetto,
            Form::Parquet => Format::Parquet,
            Form::Callgrind => Format::Callgrind,
        }
    }

    /// The default name of the file.
    fn usual(self) -> &'static str {
        match self {
            Form::Pprof => "domicile-profile.pb.gz",
            Form::Folded => "domicile-profile.folded",
            Form::Perfetto => "domicile-profile.perfetto-trace",
            Form::Parquet => "domicile-profile.parquet",
            // Viewers recognize files by this prefix.
            Form::Callgrind => "callgrind.out.domicile",
        }
    }

    fn is_text(self) -> bool {
        matches!(self, Form::Folded | Form::Callgrind)
    }
}

impl Weight {
    fn value(self) -> Value {
        match self {
            Weight::Stall => Value::Stall,
            Weight::Avoided => Value::Avoided,
            Weight::Misses => Value::Misses,
        }
    }
}

impl Profile {
    pub fn is_wanted(&self) -> bool {
        self.format.is_some()
    }

    /// Refuses an output that does not suit the form.
    pub fn check(&self, output: Option<&Path>, console: &Console) -> Result<(), Failure> {
        let Some(form) = self.format.filter(|_| output == Some(Path::new(STANDARD))) else {
            return Ok(());
        };
        if form.format().is_folder() || console.json() {
            return Err(Failure::usage(
                "`-o -` prints one file: it goes neither with `--format parquet`, which writes a folder, nor with `--json`",
            ));
        }
        if !form.is_text() && std::io::stdout().is_terminal() {
            return Err(Failure::usage(
                "this form is not text: name a file after `-o`, or send it through a pipe",
            ));
        }
        Ok(())
    }

    /// Writes the profile of a result; `output` is the destination that the user chose.
    pub fn write(
        &self,
        document: &Document,
        output: Option<&Path>,
        overwrite: Overwrite,
        console: &mut Console,
    ) -> Done {
        let Some(form) = self.format else {
            return Ok(ExitCode::SUCCESS);
        };
        let format = form.format();
        let export = profiles::export(document, format, self.value.value()).map_err(Failure::work)?;
        if output == Some(Path::new(STANDARD)) {
            return printed(export, console);
        }
        let viewer = |path: &Path, export: &Export| format.viewer(&path.display().to_string(), export);
        let (path, viewer) = if format.is_folder() {
            let path = match output {
                Some(path) => path.to_path_buf(),
                None => overwrite.free(Path::new(form.usual())),
            };
            let viewer = viewer(&path, &export);
            folder(&path, export, overwrite)?;
            (path, viewer)
        } else {
            let place = match output {
                Some(path) => overwrite.destination(path, "the profile")?,
                None => overwrite.unnamed(Path::new(form.usual()), "the profile")?,
            };
            let path = place.path().to_path_buf();
            let viewer = viewer(&path, &export);
            let bytes = export
                .files
                .into_iter()
                .flat_map(|(_, bytes)| bytes)
                .collect::<Vec<u8>>();
            place.write(|out| out.write_all(&bytes))?;
            (path, viewer)
        };
        if console.json() {
            console.line(&json!({"profile": path}))?;
        } else {
            console.text(&format!("Profile: {}\n{viewer}\n", path.display()))?;
        }
        console.flush()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints a profile to a pipe.
fn printed(export: Export, console: &mut Console) -> Done {
    for (_, bytes) in export.files {
        console.bytes(&bytes)?;
    }
    console.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the files of a profile into a folder.
fn folder(path: &Path, export: Export, overwrite: Overwrite) -> Result<(), Failure> {
    if !overwrite.force && path.exists() {
        return Err(Failure::work(format!(
            "{} exists, and the profile would be written over it: add `--force`, or name another folder",
            path.display()
        )));
    }
    fs::create_dir_all(path).map_err(|error| {
        Failure::work(format!(
            "cannot make the folder {}: {error}; name another one",
            path.display()
        ))
    })?;
    // Tables of an older result that this one lacks would be read as part of this one.
    for name in profiles::TABLES {
        if export.files.iter().all(|(written, _)| *written != Some(name)) {
            match fs::remove_file(path.join(name)) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(Failure::work(format!(
                        "cannot remove the older {}: {error}; name another folder",
                        path.join(name).display()
                    )));
                }
                _ => {}
            }
        }
    }
    for (name, bytes) in export.files {
        let file: PathBuf = path.join(name.unwrap_or("profile"));
        let place = overwrite.destination(&file, "the profile")?;
        place.write(|out| out.write_all(&bytes))?;
    }
    Ok(())
}
