//! Files that receive results.
//!
//! A file that cannot be written is refused before the work, and an existing file is overwritten only with `--force`. A
//! result is written to a temporary file and renamed: a reader finds either the old file or the complete new one.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use trace::Destination as Unfinished;

use crate::failure::Failure;

/// How many numbered names are tried for a file without a given name.
const MOST_NUMBERS: u32 = 10_000;

/// Stands for standard output, or input, in place of a file.
pub const STANDARD: &str = "-";

/// The option of verbs that write files.
#[derive(Args, Clone, Copy, Debug)]
pub struct Overwrite {
    /// Write over files that exist
    #[arg(long)]
    pub force: bool,
}

/// A place for one result. It was writable when this was made.
#[derive(Debug)]
pub struct Destination {
    path: PathBuf,
    /// The result's name in messages: "the full result".
    what: &'static str,
    overwrite: Overwrite,
}

impl Overwrite {
    /// A place for a result. Error: it cannot be written, or it exists and must not be overwritten.
    pub fn destination(self, path: &Path, what: &'static str) -> Result<Destination, Failure> {
        if path == Path::new(STANDARD) {
            return Err(Failure::usage(format!(
                "{what} cannot go to standard output: name a file (`./-` for one of that name)"
            )));
        }
        self.allows(path, what)?;
        let special = fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir());
        if !special {
            // The file can be begun, and is removed again: nothing stays behind if the work is interrupted. (Opening a
            // fifo would wait for its reader.)
            Unfinished::begin(path)
                .map(Unfinished::discard)
                .map_err(|error| cannot(what, path, &error))?;
        }
        Ok(Destination {
            path: path.to_path_buf(),
            what,
            overwrite: self,
        })
    }

    /// The same for a file without a given name: if the name is taken, the next free one is used, `result-2.json`.
    pub fn unnamed(self, path: &Path, what: &'static str) -> Result<Destination, Failure> {
        self.destination(&self.free(path), what)
    }

    /// The path of a file or folder without a given name: numbered if the name is taken.
    pub fn free(self, path: &Path) -> PathBuf {
        let taken = |path: &Path| fs::symlink_metadata(path).is_ok();
        let numbered = |number: u32| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // Names may have several extensions: `profile.pb.gz`.
            let dot = name.char_indices().skip(1).find(|(_, letter)| *letter == '.');
            let (stem, ends) = name.split_at(dot.map_or(name.len(), |(at, _)| at));
            // KCachegrind recognizes files by their prefix.
            match stem == "callgrind" {
                true => path.with_file_name(format!("{name}-{number}")),
                false => path.with_file_name(format!("{stem}-{number}{ends}")),
            }
        };
        let names = std::iter::once(path.to_path_buf()).chain((2..MOST_NUMBERS).map(numbered));
        let free = names.into_iter().find(|path| self.force || !taken(path));
        free.unwrap_or_else(|| path.to_path_buf())
    }

    /// Checks that a file may be made at a path: for traces, which the recorder itself writes.
    pub fn allows(self, path: &Path, what: &'static str) -> Result<(), Failure> {
        if self.force || !Unfinished::occupied(path) {
            return Ok(());
        }
        Err(Failure::work(format!(
            "{} exists, and {what} would be written over it: add `--force`, or name another file",
            path.display()
        )))
    }
}

/// A trace is read in random order, so it is never a stream.
pub fn no_stream(output: &Path) -> Result<(), Failure> {
    if output != Path::new(STANDARD) {
        return Ok(());
    }
    Err(Failure::usage(
        "a trace cannot go to standard output: name a file (`./-` for one of that name)",
    ))
}

/// Checks that all files that are read and written differ: overwriting an input or another result would lose it. Each
/// comes with its description.
pub fn apart(files: &[(&str, Option<&Path>)]) -> Result<(), Failure> {
    let mut known: Vec<(PathBuf, &str)> = Vec::new();
    for &(what, path) in files {
        // Devices and pipes hold nothing to lose.
        let Some(path) = path.filter(|path| fs::metadata(path).is_ok_and(|about| about.is_file()) || !path.exists())
        else {
            continue;
        };
        let place = resolved(path);
        if let Some((_, other)) = known.iter().find(|(known, _)| *known == place) {
            return Err(Failure::usage(format!(
                "{other} and {what} are the same file, {}: name another one",
                path.display()
            )));
        }
        known.push((place, what));
    }
    Ok(())
}

/// The target of a path, whether or not it exists.
fn resolved(path: &Path) -> PathBuf {
    let beside = |path: &Path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    };
    path.canonicalize()
        .ok()
        .or_else(|| beside(path))
        .unwrap_or_else(|| path.to_path_buf())
}

impl Destination {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the result. If only the last step fails, the file is kept, and the error names it.
    pub fn write(self, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        let failed = |error: io::Error| cannot(self.what, &self.path, &error);
        let unfinished = Unfinished::begin(&self.path).map_err(failed)?;
        let filled = unfinished.file().and_then(|file| {
            let mut out = BufWriter::new(file);
            fill(&mut out)?;
            out.flush()
        });
        if let Err(error) = filled {
            unfinished.discard();
            return Err(failed(error));
        }
        // Another process may have made it meanwhile.
        if let Err(failure) = self.overwrite.allows(&self.path, self.what) {
            let kept = unfinished.path().display();
            return Err(Failure::work(format!("{failure}; it is in {kept} instead")));
        }
        unfinished.keep().map_err(failed)
    }

    pub fn write_text(self, text: &str) -> Result<(), Failure> {
        self.write(|out| out.write_all(text.as_bytes()))
    }
}

fn cannot(what: &str, path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::work(format!(
        "cannot write {what} to {}: {why}; name another file",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const YES: Overwrite = Overwrite { force: true };
    const NO: Overwrite = Overwrite { force: false };

    fn text(failure: &Failure) -> &str {
        match failure {
            Failure::Work(text) | Failure::Usage(text) | Failure::GivenUp(text) | Failure::Program(text, _) => text,
            Failure::ReaderLeft => "",
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_result_is_whole_or_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        let failed = NO.destination(&path, "the result").unwrap().write(|out| {
            out.write_all(b"half")?;
            Err(io::Error::other("the disk is full"))
        });
        assert!(text(&failed.unwrap_err()).contains("the disk is full"));
        assert!(names(folder.path()).is_empty());
        NO.destination(&path, "the result")
            .unwrap()
            .write_text("whole")
            .unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(names(folder.path()), ["result.json"]);
    }

    #[test]
    fn what_exists_is_written_over_by_force_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let refused = NO.destination(&path, "the result").unwrap_err();
        assert!(text(&refused).contains("--force"), "{refused:?}");
        YES.destination(&path, "the result").unwrap().write_text("new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn who_comes_in_between_is_not_written_over_and_nothing_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        let place = NO.destination(&path, "the result").unwrap();
        fs::write(&path, "another's").unwrap();
        let failure = place.write_text("ours").unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), "another's");
        let kept = names(folder.path())
            .into_iter()
            .find(|name| name.contains(".partial"))
            .unwrap();
        assert!(text(&failure).contains(&kept), "{failure:?}");
        assert_eq!(fs::read_to_string(folder.path().join(kept)).unwrap(), "ours");
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (link, file) = (folder.path().join("link"), folder.path().join("file"));
        std::os::unix::fs::symlink("file", &link).unwrap();
        NO.destination(&link, "the result").unwrap().write_text("one").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "one");
        YES.destination(&link, "the result").unwrap().write_text("two").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn one_file_is_not_for_two_things() {
        let folder = tempfile::tempdir().unwrap();
        let (trace, link) = (folder.path().join("trace"), folder.path().join("link"));
        fs::write(&trace, "").unwrap();
        std::os::unix::fs::symlink("trace", &link).unwrap();
        let new = folder.path().join("new");
        let other = folder
            .path()
            .join("../")
            .join(folder.path().file_name().unwrap())
            .join("new");
        apart(&[
            ("the trace", Some(&trace)),
            ("`--output`", Some(&new)),
            ("`--keep`", None),
        ])
        .unwrap();
        let same = apart(&[("the trace", Some(&trace)), ("`--output`", Some(&link))]).unwrap_err();
        assert!(
            text(&same).contains("the trace and `--output` are the same file"),
            "{same:?}"
        );
        assert!(apart(&[("`--output`", Some(&new)), ("`--keep`", Some(&other))]).is_err());
        let null = Path::new("/dev/null");
        apart(&[("`--output`", Some(null)), ("`--keep`", Some(null))]).unwrap();
    }

    #[test]
    fn a_name_that_nobody_chose_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        for name in ["result.json", "result-2.json", "result-3.json"] {
            let place = NO.unnamed(&path, "the result").unwrap();
            assert_eq!(place.path(), folder.path().join(name));
            place.write_text("").unwrap();
        }
        for name in ["profile.pb.gz", "profile-2.pb.gz"] {
            let place = NO.unnamed(&folder.path().join("profile.pb.gz"), "the profile").unwrap();
            assert_eq!(place.path(), folder.path().join(name));
            place.write_text("").unwrap();
        }
        assert_eq!(YES.unnamed(&path, "the result").unwrap().path(), path);
    }

    #[test]
    fn what_cannot_be_written_is_refused_before_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path| NO.destination(path, "the result").unwrap_err();
        assert!(text(&refused(folder.path())).contains("directory"));
        assert!(text(&refused(&folder.path().join("missing/result"))).contains("No such file"));
        assert!(matches!(refused(Path::new("")), Failure::Work(_)));
        assert!(text(&refused(Path::new("-"))).contains("`./-`"));
        assert!(matches!(refused(Path::new("/proc/result")), Failure::Work(_)));
        // A device is written directly.
        let failure = NO.destination(Path::new("/dev/full"), "the result").unwrap();
        assert!(text(&failure.write_text("text").unwrap_err()).contains("No space left"));
    }
}
