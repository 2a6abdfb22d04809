//! The outputs that pages of the book show: each is of the command that stands in the mark before it.
//!
//! `<!-- run: domicile advise -- ./events -->` is that command. After ` ## ` stands a filter for its output, which the
//! page does not show. Everything up to `<!-- end of run -->` is rewritten. The commands of a page run in a folder of
//! their own, one after the other, with the programs of `demo/` beside them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PAGES: &str = "docs/src";
const BEGIN: &str = "<!-- run: ";
const END: &str = "<!-- end of run -->";
/// Programs that pages ask about, beside those of the demonstration.
const OTHERS: [&str; 2] = ["crates/cli/tests/causes/across.c", "workloads/memlat/memlat.c"];

/// The pages that show outputs, each with new ones; of the named pages alone where any are.
pub fn pages(root: &Path, domicile: &Path, only: &[String]) -> Result<Vec<(PathBuf, String)>, String> {
    let mut written = Vec::new();
    let is_wanted = |text: &str, file: &Path| {
        let name = file.file_stem().unwrap_or_default();
        text.contains(BEGIN) && (only.is_empty() || only.iter().any(|page| name == page.as_str()))
    };
    for file in listed(&root.join(PAGES), "md")? {
        let text = fs::read_to_string(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        if is_wanted(&text, &file) {
            let folder = folder(root, &file)?;
            let new = rewritten(&text, |command| ran(&folder, domicile, command))?;
            written.push((file, new));
        }
    }
    match only.iter().find(|page| {
        !written
            .iter()
            .any(|(file, _)| file.file_stem().is_some_and(|name| name == page.as_str()))
    }) {
        Some(page) => Err(format!("{PAGES}/{page}.md shows no output of a command")),
        None => Ok(written),
    }
}

fn listed(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|found| found == ending));
    files.sort();
    Ok(files)
}

/// An empty folder with the sources of the programs, in which the commands of a page run.
fn folder(root: &Path, page: &Path) -> Result<PathBuf, String> {
    let folder = root.join("target/book").join(page.file_stem().unwrap_or_default());
    let cannot = |error| format!("cannot fill {}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(cannot)?;
    }
    fs::create_dir_all(&folder).map_err(cannot)?;
    let mut sources = listed(&root.join("demo"), "c")?;
    sources.extend(OTHERS.map(|file| root.join(file)));
    for source in sources {
        fs::copy(&source, folder.join(source.file_name().unwrap_or_default())).map_err(cannot)?;
    }
    Ok(folder)
}

/// The page with the output of `run` for each command, a filter and all.
fn rewritten(page: &str, run: impl Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let mut pieces = page.split(BEGIN);
    let mut text = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        let no_end = || {
            format!(
                "`{BEGIN}{}` is not followed by `{END}`",
                piece.lines().next().unwrap_or_default()
            )
        };
        let (command, rest) = piece.split_once(" -->\n").ok_or_else(no_end)?;
        let (_, after) = rest.split_once(END).ok_or_else(no_end)?;
        let shown = command.split(" ## ").next().unwrap_or_default();
        let printed = run(command)?;
        text += &format!(
            "{BEGIN}{command} -->\n```\n$ {shown}\n{}\n```\n{END}{after}",
            printed.trim_end()
        );
    }
    Ok(text)
}

fn ran(folder: &Path, domicile: &Path, command: &str) -> Result<String, String> {
    let (command, filter) = command.split_once(" ## ").unwrap_or((command, "cat"));
    let path = std::env::var("PATH").unwrap_or_default();
    let status = std::env::temp_dir().join(format!("domicile-book-{}", std::process::id()));
    let output = Command::new("sh")
        .args([
            "-c",
            &format!("{{ {command}; echo $? > \"$STATUS\"; }} 2>&1 | {filter}"),
        ])
        .current_dir(folder)
        .env("STATUS", &status)
        .env("PATH", format!("{}:{path}", domicile.display()))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start a shell: {error}"))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let ended = fs::read_to_string(&status).unwrap_or_default();
    let _ = fs::remove_file(&status);
    // The work failed (1, which is a difference to `diff`), the command line was wrong (2), or the program is not there (127).
    let refused = match ended.trim() {
        "1" => !command.starts_with("diff "),
        status => ["", "2", "127"].contains(&status),
    };
    match printed.trim().is_empty() || refused {
        true => Err(format!("`{command}` printed:\n{printed}")),
        false => Ok(printed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_and_its_output_take_the_place_of_the_old_ones() {
        let page =
            "a\n<!-- run: b -- c ## head -->\nold\n<!-- end of run -->\nd\n<!-- run: e -->\n<!-- end of run -->\n";
        let run = |command: &str| Ok(format!("<{command}>\n"));
        let new = rewritten(page, run).unwrap();
        assert_eq!(
            new,
            "a\n<!-- run: b -- c ## head -->\n```\n$ b -- c\n<b -- c ## head>\n```\n<!-- end of run -->\nd\n\
             <!-- run: e -->\n```\n$ e\n<e>\n```\n<!-- end of run -->\n"
        );
        assert_eq!(rewritten(&new, run).unwrap(), new);
        assert!(
            rewritten("<!-- run: b -->\n", run)
                .unwrap_err()
                .contains("is not followed by")
        );
    }

    #[test]
    fn what_prints_nothing_or_fails_is_an_error() {
        let here = Path::new(".");
        assert_eq!(ran(here, here, "echo a; echo b ## tail -n 1").unwrap(), "b\n");
        assert!(ran(here, here, "true").is_err());
        assert!(ran(here, here, "echo refused; (exit 1) ## cat").is_err());
        assert!(ran(here, here, "echo compared; (exit 3)").is_ok());
    }
}
