//! The table of predictions held against the clock, as a part of the book, and the range of gains that comes of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use report::truth_text::{again, closed_by, is_missed, number, of_again, shared_cores, sides, sums};
use results::{Truth, TruthPair};

const PAGE: &str = "docs/src/truth.md";
const RANGE: &str = "truth/range.json";
const BY: &str = ": make truth TRUTH_FLAGS=--write-book -->";
/// For a table without a half that is held back.
const BUILT_IN: &str = "These are the pairs that the command has built in. The table of all pairs is still to be made on such a machine.\n\n";
const LIST: &str = "truth/pairs.toml";
/// This many pairs may fail, as some do beside busy neighbors: the page names them. Fewer pairs say nothing of the
/// others.
const FAILED_MOST: usize = 5;

/// Writes what `domicile truth --json` printed into the book, and the range to where `advise` has it from. `measured_again`: other
/// results of the same pairs on the same machine.
pub fn write(root: &Path, file: &Path, measured_again: &[String]) -> Result<String, String> {
    let mut truth = read(file)?;
    for other in measured_again {
        let of = |why: String| format!("{other}: {why}");
        truth.measured_again(&read(Path::new(other))?).map_err(of)?;
    }
    let list = std::fs::read_to_string(root.join(LIST)).map_err(|error| format!("cannot read {LIST}: {error}"))?;
    let all = list.lines().filter(|line| *line == "[[pair]]").count();
    let built_in = list.lines().filter(|line| *line == "quick = true").count();
    let run = truth.pairs.len();
    let asked = run + truth.failed.len();
    if truth.about.machine != "host" || (asked < all && asked != built_in) || run + FAILED_MOST < asked {
        return Err(format!(
            "{}: neither of all pairs nor of those that the command has built in, on `host`",
            file.display()
        ));
    }
    let range = truth.range.ok_or("no pair says how far predictions are off")?;
    let date = said_by(root, "date", &["-u", "+%F"]);
    let page = root.join(PAGE);
    let maker = maker(&truth.about.processor);
    let whole = std::fs::read_to_string(&page).map_err(|error| format!("cannot read {PAGE}: {error}"))?;
    let made = with_table(&whole, &maker, &part(root, &truth, &date));
    std::fs::write(&page, made).map_err(|error| format!("cannot write {PAGE}: {error}"))?;
    let file = root.join(RANGE);
    let ranges = std::fs::read_to_string(&file).map_err(|error| format!("cannot read {RANGE}: {error}"))?;
    let mut ranges: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(&ranges).map_err(|error| format!("{RANGE}: {error}"))?;
    let range = serde_json::json!({
        "date": date,
        "processor": truth.about.processor,
        "least": range.least,
        "most": range.most,
        "pairs": range.pairs,
        "held": range.held,
        "held_within": range.held_within,
    });
    ranges.insert(maker, range);
    let ranges = serde_json::to_string_pretty(&ranges).map_err(|error| error.to_string())? + "\n";
    std::fs::write(&file, ranges).map_err(|error| format!("cannot write {RANGE}: {error}"))?;
    Ok(format!("written: {PAGE}, {RANGE}"))
}

fn read(file: &Path) -> Result<Truth, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))
}

/// The maker of a processor, as its name begins: each has a table of its own, which stays where another's is written.
fn maker(processor: &str) -> String {
    let first = processor.split_whitespace().next().unwrap_or("unknown");
    first.replace("(R)", "")
}

/// The page with this table in the place of the same maker's, or below all others.
fn with_table(page: &str, maker: &str, table: &str) -> String {
    let begin = format!("<!-- table of {maker}{BY}\n");
    let end = format!("<!-- end of table of {maker} -->\n");
    let (before, after) = match (page.find(&begin), page.find(&end)) {
        (Some(start), Some(stop)) if start < stop => (page[..start].to_string(), &page[stop + end.len()..]),
        _ => (format!("{}\n\n", page.trim_end()), ""),
    };
    format!("{before}{begin}\n{table}\n{end}{after}")
}

/// The commit of the program that predicted: it was built before it ran, and others may have committed since.
fn commit(root: &Path) -> String {
    std::env::var("DOMICILE_COMMIT").unwrap_or_else(|_| said_by(root, "git", &["rev-parse", "--short", "HEAD"]))
}

/// The first line of a command's output.
fn said_by(root: &Path, program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).current_dir(root).output();
    let said = done.map_or_else(|_| Vec::new(), |done| done.stdout);
    String::from_utf8_lossy(&said)
        .lines()
        .next()
        .unwrap_or_default()
        .to_string()
}

fn part(root: &Path, truth: &Truth, date: &str) -> String {
    let about = &truth.about;
    let mut text = format!(
        "## Measured on {}\n\nRun on {} on {} with {} cpus, Linux {}, {}, {}, Domicile {}; machine `{}`, {} rounds{}{}{}.\n\n",
        about.processor.replace("(R)", ""),
        if about.date.is_empty() { date } else { &about.date },
        about.processor,
        about.cpus,
        about.kernel,
        about.compiler,
        said_by(root, "valgrind", &["--version"]),
        commit(root),
        about.machine,
        about.rounds,
        match about.load > 0.5 {
            true => format!("; {:.1} other processes were running as it began", about.load),
            false => String::new(),
        },
        match truth.pairs.iter().any(|pair| pair.beside.is_some()) {
            true => "",
            false => "; the machine was probed once, and not beside each pair",
        },
        match about.date.as_str() {
            "" => String::new(),
            measured if measured == date => String::new(),
            _ => format!(
                "; predicted from these times on {date}, with what is not measured beside each pair as it was probed last"
            ),
        }
    );
    if truth.pairs.iter().all(|pair| pair.half != "held") {
        text += BUILT_IN;
    }
    let clock = again(&truth.pairs);
    let [title, dashes] = if clock.is_some() {
        [" again |", " --- |"]
    } else {
        [""; 2]
    };
    text += &format!("| pair | change | whose | half | measured (95%) |{title} predicted | sign | within 20% |\n");
    text += &format!("| --- | --- | --- | --- | --- |{dashes} --- | --- | --- |\n");
    for pair in &truth.pairs {
        text += &row(pair, clock.is_some());
    }
    text += "\n";
    let mut kinds: Vec<&str> = truth.pairs.iter().map(|pair| pair.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let halves = ["all", "build", "held", "ours", "library", "foreign"];
    for group in halves.into_iter().chain(kinds.iter().copied()) {
        let wanted =
            |pair: &&TruthPair| group == "all" || [&pair.half, &pair.whose, &pair.kind].contains(&&group.to_string());
        let some: Vec<TruthPair> = truth.pairs.iter().filter(wanted).cloned().collect();
        // One pair says nothing of its kind.
        if some.len() < 2 {
            continue;
        }
        let title = match group {
            "build" | "held" => format!("half {group}"),
            kind if kinds.contains(&kind) => format!("change \"{kind}\""),
            _ => group.to_string(),
        };
        text += &format!("- {title}: {} pairs. {}\n", some.len(), sums(&some));
    }
    if let Some(clock) = clock {
        text += &format!("- {clock}\n");
    }
    if let Some(shared) = shared_cores(&truth.pairs) {
        text += &format!("- {shared}\n");
    }
    if let Some(range) = &truth.range {
        let ends = format!(
            "- range of gains: a ratio p is measured as p^{} to p^{}",
            range.least, range.most
        );
        text += &match range.held {
            0 => format!("{ends} in {} pairs, none of which is held back\n", range.pairs),
            held => format!(
                "{ends} in the {} pairs of half build; the measured interval meets that range in {} of {held} pairs of half held\n",
                range.pairs, range.held_within
            ),
        };
    }
    let missed: Vec<&TruthPair> = truth.pairs.iter().filter(|pair| is_missed(pair)).collect();
    if !missed.is_empty() {
        text += "\n### Missed, and why\n\n";
    }
    for pair in missed {
        let why = match (pair.explained.as_str(), closed_by(pair)) {
            ("", None) => "Not explained yet.".to_string(),
            ("", Some(experiment)) => experiment,
            (why, None) => why.to_string(),
            (why, Some(experiment)) => format!("{why} {experiment}"),
        };
        text += &format!("- `{}`: {}. {why}\n", pair.name, sides(pair));
    }
    if !truth.failed.is_empty() {
        text += "\n### Could not be run\n\n";
    }
    for failed in &truth.failed {
        let why = failed.why.lines().next().unwrap_or_default();
        text += &format!("- `{}`: {why}\n", failed.name);
    }
    text
}

fn row(pair: &TruthPair, again: bool) -> String {
    let measured = &pair.measured;
    let predicted = pair
        .predicted
        .as_ref()
        .map_or("-".to_string(), |predicted| number(predicted.ratio));
    let sign = match (pair.sign_right, &pair.predicted) {
        (_, None) => "-",
        (None, _) => "none measured",
        (Some(true), _) => "right",
        (Some(false), _) => "WRONG",
    };
    let within = match pair.off {
        None => "-",
        Some(_) if pair.is_within(TruthPair::NEAR) => "yes",
        Some(_) => "no",
    };
    format!(
        "| {} | {} | {}: {} | {} | {} ({}-{}) |{} {predicted} | {sign} | {within} |\n",
        pair.name,
        pair.kind,
        pair.whose,
        pair.of,
        pair.half,
        number(measured.ratio),
        number(measured.least),
        number(measured.most),
        if again {
            format!(" {} |", of_again(pair))
        } else {
            String::new()
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_the_place_of_the_same_makers_alone() {
        let one = with_table("# Page\n", &maker("AMD EPYC 9655"), "a");
        let two = with_table(&one, &maker("Intel(R) Xeon(R) Processor"), "b");
        let again = with_table(&two, "AMD", "c");
        assert_eq!(again, two.replace("\na\n", "\nc\n"));
        assert!(again.starts_with("# Page\n\n<!-- table of AMD: make truth"), "{again}");
        assert!(again.ends_with("\nb\n<!-- end of table of Intel -->\n"), "{again}");
    }
}
