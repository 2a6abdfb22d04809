//! Pairs of programs before and after a change, as a list has them; `truth/README.md` explains the fields.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::TruthError;

/// The list that this is built with.
const LIST: &str = include_str!("../../../truth/pairs.toml");

/// The origin of the code that does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Whose {
    Ours,
    /// Others', and a few lines of ours call it.
    Library,
    /// Others' altogether.
    Foreign,
}

impl Whose {
    pub fn name(self) -> &'static str {
        match self {
            Whose::Ours => "ours",
            Whose::Library => "library",
            Whose::Foreign => "foreign",
        }
    }
}

/// The quantity that a side is measured by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// The processor time of all its threads and processes.
    #[default]
    Cpu,
    /// For several threads.
    Wall,
}

/// Variables of the environment.
pub type Environment = BTreeMap<String, String>;

/// A program before and after a change. `{program}` in commands is the program built from `source`, `{truth}` the
/// list's folder.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    pub name: String,
    /// The kind of change.
    pub kind: String,
    pub whose: Whose,
    /// The language, the library or the program.
    pub of: String,
    pub before: Vec<String>,
    pub after: Vec<String>,
    /// In the folder `programs` beside the list.
    pub source: Option<String>,
    /// The pkg-config names of the linked libraries.
    #[serde(default)]
    pub libraries: Vec<String>,
    /// Run once, before anything is measured.
    pub prepare: Option<Vec<String>>,
    /// Its time is taken off both sides.
    pub start_up: Option<Vec<String>>,
    #[serde(default)]
    pub before_env: Environment,
    #[serde(default)]
    pub after_env: Environment,
    /// `after` has huge pages.
    #[serde(default)]
    pub huge_pages: bool,
    /// Software prefetches are recorded.
    #[serde(default)]
    pub prefetches: bool,
    #[serde(default)]
    pub clock: Clock,
    #[serde(default = "yes")]
    pub same_output: bool,
    /// It is one of those that need a C compiler and little time.
    #[serde(default)]
    pub quick: bool,
    /// The half that it is in, regardless of the hash of its name: `true` if it was added to test the models, `false`
    /// if its prediction was seen while they were made.
    pub held: Option<bool>,
    /// Why the prediction misses, where that was found out.
    #[serde(default)]
    pub explained: String,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
struct List {
    #[serde(rename = "pair", default)]
    pairs: Vec<Pair>,
}

impl Pair {
    /// `build` or `held`: where the pair does not say, by a rule that nobody chose pair by pair.
    pub fn half(&self) -> &'static str {
        let by_name = || Sha256::digest(self.name.as_bytes())[0] % 2 == 1;
        match self.held.unwrap_or_else(by_name) {
            true => "held",
            false => "build",
        }
    }
}

/// The pairs that need nothing but a C compiler. Errors: none; the list is built in.
pub fn quick() -> Result<Vec<Pair>, TruthError> {
    let pairs = parse(LIST, "pairs.toml")?;
    Ok(pairs.into_iter().filter(|pair| pair.quick).collect())
}

/// The pairs of a list (TOML). Errors: it cannot be read, or a pair is impossible.
pub fn read(list: &Path) -> Result<Vec<Pair>, TruthError> {
    let name = list.display().to_string();
    let text = std::fs::read_to_string(list).map_err(|error| TruthError::file(list, error))?;
    parse(&text, &name)
}

fn parse(text: &str, name: &str) -> Result<Vec<Pair>, TruthError> {
    let list: List = toml::from_str(text).map_err(|error| TruthError::List(format!("{name}: {error}")))?;
    if list.pairs.is_empty() {
        return Err(TruthError::List(format!(
            "{name}: has no pairs; begin each with a line `[[pair]]`"
        )));
    }
    let wrong = |pair: &Pair, what| Err(TruthError::List(format!("{name}: pair `{}` {what}", pair.name)));
    for (at, pair) in list.pairs.iter().enumerate() {
        if list.pairs[..at].iter().any(|other| other.name == pair.name) {
            return wrong(pair, "is there twice; rename one");
        }
        if pair.source.is_none() != (pair.whose == Whose::Foreign) {
            return wrong(
                pair,
                "needs a `source`, or to be `foreign`; a foreign one has no source",
            );
        }
        let others = [&pair.prepare, &pair.start_up].into_iter().flatten();
        if others.chain([&pair.before, &pair.after]).any(Vec::is_empty) {
            return wrong(pair, "has a command without words; it needs two, `before` and `after`");
        }
        // Both are names of files.
        let is_plain = |name: &str| !name.is_empty() && !name.starts_with('.') && !name.contains('/');
        if !is_plain(&pair.name) || pair.source.as_deref().is_some_and(|source| !is_plain(source)) {
            return wrong(pair, "and its source need names without `/` that do not begin with `.`");
        }
    }
    Ok(list.pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_and_half_of_them_held_back() {
        let pairs = parse(LIST, "pairs.toml").unwrap();
        let of = |whose| pairs.iter().filter(|pair| pair.whose == whose).count();
        assert!(pairs.len() >= 25 && of(Whose::Foreign) >= 10, "{}", pairs.len());
        let (hashed, told): (Vec<&Pair>, Vec<&Pair>) = pairs.iter().partition(|pair| pair.held.is_none());
        let held = hashed.iter().filter(|pair| pair.half() == "held").count();
        assert!((2 * held).abs_diff(hashed.len()) <= hashed.len() / 4, "{held}");
        // The pairs added to test the models are of others.
        let added: Vec<&&Pair> = told.iter().filter(|pair| pair.held == Some(true)).collect();
        assert!(added.len() >= 20 && added.iter().all(|pair| pair.whose != Whose::Ours));
        // The built-in ones are seen whenever the command runs.
        assert!(pairs.iter().all(|pair| !pair.quick || pair.half() == "build"));
        // SHA-256 of the names, by another tool: `printf NAME | sha256sum`.
        let half = |name: &str| pairs.iter().find(|pair| pair.name == name).unwrap().half();
        assert_eq!([half("walk-order-c"), half("hot-cold-split")], ["build", "held"]);
    }

    #[test]
    fn ten_need_a_c_compiler_only() {
        let quick = quick().unwrap();
        assert_eq!(quick.len(), 10);
        for pair in quick {
            let source = pair.source.unwrap();
            assert!(
                source.ends_with(".c") && pair.libraries.is_empty() && pair.prepare.is_none(),
                "{source}"
            );
        }
    }

    #[test]
    fn what_is_no_pair_is_refused() {
        let pair = "[[pair]]\nname = \"a\"\nkind = \"k\"\nof = \"C\"\nbefore = [\"x\"]\nafter = [\"y\"]\n";
        let said = |text: String| parse(&text, "list.toml").unwrap_err().to_string();
        assert!(said(format!("{pair}whose = \"ours\"\n")).contains("list.toml: pair `a` needs a `source`"));
        let foreign = format!("{pair}whose = \"foreign\"\n");
        assert_eq!(parse(&foreign, "list.toml").unwrap().len(), 1);
        assert!(said(format!("{foreign}{foreign}")).contains("is there twice"));
        assert!(said(format!("{foreign}speed = 1\n")).contains("speed"));
        assert!(said(foreign.replace("[\"x\"]", "[]")).contains("command without words"));
        assert!(said(format!("{foreign}start_up = []\n")).contains("command without words"));
        assert!(said(foreign.replace("\"a\"", "\"../a\"")).contains("need names without `/`"));
        assert!(said("pair = []".to_string()).contains("has no pairs"));
        let half = |text: String| parse(&text, "list.toml").unwrap()[0].half();
        let built = foreign.replace("\"a\"", "\"walk-order-c\"");
        assert_eq!(
            [half(built.clone()), half(format!("{built}held = true\n"))],
            ["build", "held"]
        );
        assert_eq!(half(format!("{foreign}held = false\n")), "build");
    }
}
