//! `--write-book PAGE`: writes the results into the page's parts for them.

use std::path::{Path, PathBuf};
use std::process::Command;

use ::reproduce::page::{self, Made};
use ::reproduce::{Paper, Section};

use crate::destination::Overwrite;
use crate::failure::Failure;

/// A page that is written part by part, so that finished parts are there even if a later one fails.
pub struct Book {
    path: PathBuf,
    paper: String,
    made: Made,
}

impl Book {
    /// The page, and the paper's items that it has parts for: those of `items`, or all if none is named.
    pub fn open(path: &Path, paper: &Paper, items: &[String]) -> Result<(Book, Vec<String>), Failure> {
        if path == Path::new("-") {
            return Err(Failure::usage(
                "--write-book writes into the parts of a page: name its file, not -",
            ));
        }
        let book = Book {
            path: path.to_path_buf(),
            paper: paper.name.to_string(),
            made: made(path),
        };
        let text = book.text()?;
        let items = match items {
            [] => page::items(&text, paper.name),
            items => items.to_vec(),
        };
        for item in &items {
            if paper.items.iter().all(|known| known.name != *item) {
                let what = format!("{} has a part for {item}, which {} has not", path.display(), paper.name);
                return Err(Failure::usage(what));
            }
            page::has_part(&text, paper.name, item).map_err(|error| book.failed(&error))?;
        }
        if items.is_empty() {
            let part = format!(
                "<!-- domicile reproduce {} ITEM --> and <!-- end of ITEM -->",
                paper.name
            );
            return Err(Failure::usage(format!(
                "{} has no part of {}: put {part} where one belongs",
                path.display(),
                paper.name
            )));
        }
        Ok((book, items))
    }

    /// Writes one part. A section in which something failed is not written: the page keeps the old one.
    pub fn write(&self, section: &Section) -> Result<(), Failure> {
        if !section.failures.is_empty() {
            return Ok(());
        }
        let text = page::with(&self.text()?, &self.paper, section, &self.made).map_err(|error| self.failed(&error))?;
        Overwrite { force: true }
            .destination(&self.path, "the page")?
            .write_text(&text)
    }

    fn text(&self) -> Result<String, Failure> {
        let text = std::fs::read_to_string(&self.path);
        text.map_err(|error| Failure::work(format!("cannot read the page {}: {error}", self.path.display())))
    }

    fn failed(&self, error: &page::PageError) -> Failure {
        Failure::usage(format!("{}: {error}", self.path.display()))
    }
}

/// This run: the command as typed, the machine, the commit of the page's tree.
fn made(page: &Path) -> Made {
    let root = sys::Root::default();
    let model = sys::cpuinfo::processor(&root).unwrap_or_default().model;
    let kernel = root.text("proc/sys/kernel/osrelease").unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let folder = page.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    Made {
        command: command(std::env::args().skip(1)),
        date: said_by(folder, "date", &["-u", "+%F"]),
        machine: format!(
            "{}, {cpus} cpus, Linux {}",
            model.unwrap_or_else(|| std::env::consts::ARCH.to_string()),
            kernel.trim()
        ),
        commit: said_by(folder, "git", &["rev-parse", "--short=8", "HEAD"]),
    }
}

/// The command without the page's name and options that do not affect the numbers.
fn command(arguments: impl Iterator<Item = String>) -> String {
    let mut words = vec!["domicile".to_string()];
    let mut arguments = arguments.peekable();
    while let Some(word) = arguments.next() {
        match word.as_str() {
            "--write-book" => drop(arguments.next()),
            "--no-progress" | "--quiet" | "-q" => {}
            text if text.starts_with("--write-book=") => {}
            _ => words.push(word),
        }
    }
    words.join(" ")
}

/// The first line of a command's output.
fn said_by(folder: &Path, program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).current_dir(folder).output();
    let said = done.map_or_else(|_| Vec::new(), |done| done.stdout);
    let said = String::from_utf8_lossy(&said);
    said.lines().next().unwrap_or("unknown").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_what_was_typed_but_for_the_page() {
        let words = "reproduce lee12 figure9 --write-book docs/src/lee12.md --rounds 5 -q --write-book=x".split(' ');
        assert_eq!(
            command(words.map(String::from)),
            "domicile reproduce lee12 figure9 --rounds 5"
        );
    }
}
