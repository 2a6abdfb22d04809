//! The parts of README.md that commands write: the demonstration's output, the cost of recording, the results of the
//! truth table. Each stands between two marks.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub const FILE: &str = "README.md";
const TRUTH: &str = "docs/src/truth.md";
const RECORDING: &str = "docs/src/recording.md";
/// The folder of the demonstration's programs and its text.
const OUT: &str = "target/demo";

/// README.md with the sums of the truth table as the book has them.
pub fn with_truth(root: &Path) -> Result<String, String> {
    between(&read(root, FILE)?, "truth", &headline(&read(root, TRUTH)?)?)
}

/// README.md with a new run of the demonstration, and with the cost of recording here; the book's page with the latter,
/// too.
pub fn with_runs(root: &Path) -> Result<[(&'static str, String); 2], String> {
    let shown = printed(Command::new(root.join("demo/run")).current_dir(root))?;
    let text = between(&with_truth(root)?, "screen", &screen(&shown)?)?;
    let costs = slowdown(root, &domicile())?;
    Ok([
        (FILE, between(&text, "slowdown", &costs)?),
        (RECORDING, between(&read(root, RECORDING)?, "slowdown", &costs)?),
    ])
}

/// The command that is run: one that is built, or the one that `DOMICILE` names.
pub fn domicile() -> String {
    std::env::var("DOMICILE").unwrap_or_else(|_| "target/release/domicile".to_string())
}

fn read(root: &Path, file: &str) -> Result<String, String> {
    std::fs::read_to_string(root.join(file)).map_err(|error| format!("cannot read {file}: {error}"))
}

/// `text` with `body` between the marks of a part.
fn between(text: &str, part: &str, body: &str) -> Result<String, String> {
    let (begin, end) = (format!("<!-- {part}: "), format!("<!-- end of {part} -->"));
    let missing = || format!("there is no mark `{begin}` with `{end}` below it");
    let opened = text.find(&begin).ok_or_else(missing)?;
    let start = opened + text[opened..].find('\n').ok_or_else(missing)? + 1;
    let stop = start + text[start..].find(&end).ok_or_else(missing)?;
    Ok(format!("{}{}\n{}", &text[..start], body.trim_end(), &text[stop..]))
}

/// The lines of the truth tables that sum them up, each table after the machine that it is of.
fn headline(page: &str) -> Result<String, String> {
    let mut lines = Vec::new();
    for table in page.split("<!-- table of ").skip(1) {
        let run = table.lines().find(|line| line.starts_with("Run on "));
        // The processor and the kernel, without the versions of tools.
        let machine = run.and_then(|line| line.match_indices(", ").nth(1).map(|(end, _)| &line[..end]));
        lines.push(format!("- {}:", machine.ok_or_else(|| no_sums("a machine"))?));
        // A table of the built-in pairs has no half that is held.
        for (start, required) in [
            ("- all: ", true),
            ("- half held: ", false),
            ("- The clock beside itself: ", false),
            ("- range of gains: ", true),
        ] {
            match table.lines().find(|line| line.starts_with(start)) {
                Some(sum) => lines.push(format!("  {sum}")),
                None if required => return Err(no_sums(start)),
                None => {}
            }
        }
    }
    match lines.is_empty() {
        true => Err(no_sums("a table")),
        false => Ok(lines.join("\n")),
    }
}

fn no_sums(lacking: &str) -> String {
    format!("{TRUTH} lacks {lacking}: run `make truth TRUTH_FLAGS=--write-book`")
}

/// The command, its screen and its verdict of the demonstration, without the patch between them.
fn screen(shown: &str) -> Result<String, String> {
    let part = |from: &str, to: &str| {
        let start = shown.find(from)? + from.len();
        let rest = shown[start..].split_once('\n')?.1;
        Some(rest.split(to).next()?.trim())
    };
    let first = part("1. A program", "\n\n2. ");
    let verified = part("3. The time", "\n\n4. ");
    match (first, verified) {
        (Some(first), Some(verified)) if verified.starts_with("Verified: ") => {
            Ok(format!("```\n{first}\n{verified}\n```"))
        }
        _ => Err(format!("demo/run printed no screen:\n{shown}")),
    }
}

/// The slowdown by `domicile record` of a list that is walked, and of two programs of Debian.
fn slowdown(root: &Path, domicile: &str) -> Result<String, String> {
    let out = root.join(OUT);
    let book = read(root, &format!("{OUT}/book.txt"))?;
    let cannot = |error| format!("cannot write to {OUT}: {error}");
    std::fs::write(out.join("books.txt"), book.repeat(3)).map_err(cannot)?;
    let build = format!("gcc -g -O2 -DEVENTS=80000 -DWALKS=400 -o {OUT}/walks demo/events.c");
    printed(Command::new("sh").args(["-c", &build]).current_dir(root))?;
    let mut rows = String::from("| program | by itself | recorded | times as long |\n| --- | --- | --- | --- |\n");
    for (name, command) in [
        ("`demo/events.c`, ten times the work", format!("{OUT}/walks")),
        ("`gzip` of nine copies of the book", format!("gzip -c {OUT}/books.txt")),
        ("`bzip2` of the same", format!("bzip2 -c {OUT}/books.txt")),
    ] {
        let alone = quickest(root, &command)?;
        let recorded = quickest(
            root,
            &format!("{domicile} record --force -o {OUT}/walks.dtr -- {command}"),
        )?;
        let [alone, recorded] = [alone, recorded].map(|time| time.as_secs_f64());
        rows += &format!(
            "| {name} | {alone:.2} s | {recorded:.1} s | {:.0} |\n",
            recorded / alone
        );
    }
    Ok(rows)
}

/// The shortest of three runs: other work on the machine only adds time.
fn quickest(root: &Path, command: &str) -> Result<Duration, String> {
    let mut least = Duration::MAX;
    for _ in 0..3 {
        let begun = Instant::now();
        printed(
            Command::new("sh")
                .args(["-c", &format!("exec {command}")])
                .current_dir(root),
        )?;
        least = least.min(begun.elapsed());
    }
    Ok(least)
}

fn printed(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?} ended with {}: {said}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_replaced_and_all_else_stays() {
        let text = "a\n<!-- part: by -->\nold\nlines\n<!-- end of part -->\nb\n";
        let new = between(text, "part", "new\n").unwrap();
        assert_eq!(new, "a\n<!-- part: by -->\nnew\n<!-- end of part -->\nb\n");
        assert_eq!(between(&new, "part", "new").unwrap(), new);
        assert!(between(text, "other", "new").unwrap_err().contains("<!-- other: "));
    }

    #[test]
    fn the_screen_is_the_demonstration_without_its_patch() {
        let shown = "1. A program, why?\n   $ domicile advise\nscreen\n1. a.c:3 waits\n\n2. The advice\n\n+ line\n\n\
                     3. The time, by the clock:\n\nVerified: b\n  predicted\n\n4. A program\n";
        assert_eq!(
            screen(shown).unwrap(),
            "```\n$ domicile advise\nscreen\n1. a.c:3 waits\nVerified: b\n  predicted\n```"
        );
        assert!(screen("1. A program\n").is_err());
    }

    #[test]
    fn a_truth_table_without_sums_is_refused() {
        assert!(headline("Run on a day, gcc\n- all: 3 pairs\n").is_err());
        let table = "<!-- table of AMD: x -->\nRun on a day on AMD, Linux 6, gcc\n- all: 3 pairs\n- half held: 2\n- range of gains: 1\n";
        let shown = "- Run on a day on AMD, Linux 6:\n  - all: 3 pairs\n  - half held: 2\n  - range of gains: 1";
        assert_eq!(headline(table).unwrap(), shown);
        assert_eq!(
            headline(&table.replace("- half held", "- half")).unwrap(),
            shown.replace("  - half held: 2\n", "")
        );
        assert!(headline(&table.replace("- range", "- ")).is_err());
    }
}
