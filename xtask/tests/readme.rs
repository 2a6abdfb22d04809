//! README.md: short enough to be read in a minute, and with the parts that commands write. Pages of the book: the same of theirs.

use std::fs;
use std::path::Path;

/// What stands between the marks of a part.
fn part<'a>(text: &'a str, name: &str, command: &str) -> &'a str {
    let begin = format!("<!-- {name}: cargo xtask {command} -->\n");
    let (_, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("no mark {begin}"));
    let end = format!("<!-- end of {name} -->");
    let (inside, _) = rest.split_once(&end).unwrap_or_else(|| panic!("no mark {end}"));
    inside
}

#[test]
fn it_is_short_and_its_parts_are_those_of_commands() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = fs::read_to_string(root.join("README.md")).unwrap();
    assert!(text.lines().count() <= 120, "{} lines", text.lines().count());
    let screen = part(&text, "screen", "readme");
    for words in [
        "$ domicile advise",
        "\n1. ",
        "DO ",
        "\nVerified: ",
        "predicted: ",
        "measured: ",
    ] {
        assert!(screen.contains(words), "no {words:?} in\n{screen}");
    }
    // The screen is of the program that is in the tree.
    let line = screen
        .split("\n1. events.c:")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let line: usize = line
        .and_then(|number| number.parse().ok())
        .expect("a line of demo/events.c");
    let source = fs::read_to_string(root.join("demo/events.c")).unwrap();
    assert!(
        source
            .lines()
            .nth(line - 1)
            .is_some_and(|line| screen.contains(line.trim())),
        "demo/events.c has changed: run `cargo xtask readme`"
    );
    let slowdown = part(&text, "slowdown", "readme");
    assert!(slowdown.lines().count() > 3, "{slowdown}");
    // `cargo xtask check` compares these with the truth table.
    assert!(part(&text, "truth", "generate").contains("\n  - all: "));
}

/// Each output of the book stands behind its command, which is the first line of what is shown.
#[test]
fn outputs_of_the_book_are_those_of_their_commands() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut outputs = 0;
    for page in ["advice.md", "tutorial.md"] {
        let text = fs::read_to_string(root.join("docs/src").join(page)).unwrap();
        for piece in text.split("<!-- run: ").skip(1) {
            let (command, rest) = piece.split_once(" -->\n").unwrap();
            let (shown, _) = rest.split_once("<!-- end of run -->").unwrap();
            let command = command.split(" ## ").next().unwrap();
            let (first, printed) = shown.trim_start_matches("```\n").split_once('\n').unwrap();
            assert_eq!(first, format!("$ {command}"), "{page}: run `cargo xtask book`");
            assert!(
                printed.trim_end_matches("```\n").lines().count() > 2,
                "{page}: {command}"
            );
            outputs += 1;
        }
    }
    assert!(outputs > 5, "{outputs} outputs");
    let recording = fs::read_to_string(root.join("docs/src/recording.md")).unwrap();
    assert!(part(&recording, "slowdown", "readme").lines().count() > 3);
}
