//! How many rows of a list are printed.

use clap::Args;
use report::Top;

use crate::failure::Failure;

/// The option of verbs that print lists.
#[derive(Args, Clone, Copy, Debug)]
pub struct Shown {
    /// Number of rows to print of each list of data structures, lines, arrays or pages, or `all` [default: those that
    /// make a difference]
    #[arg(long, value_name = "N|all", value_parser = rows)]
    top: Option<Top>,
}

/// The option of verbs that print a screen, and tables on request.
#[derive(Args, Clone, Copy, Debug)]
pub struct Details {
    /// Print all tables, and the basis of the result; where lists are printed, `--top` also does so
    #[arg(long)]
    details: bool,
}

impl Details {
    pub fn given(self) -> bool {
        self.details
    }

    pub fn wanted(self, shown: Shown) -> bool {
        self.details || shown.top.is_some()
    }
}

impl Shown {
    pub fn given(self) -> bool {
        self.top.is_some()
    }

    /// How much to print. Error: the option was given, and `no_effect` says why it has none.
    pub fn top(self, no_effect: Option<&str>) -> Result<Top, Failure> {
        match (self.top, no_effect) {
            (Some(_), Some(why)) => Err(Failure::usage(format!("`--top` {why}"))),
            (top, _) => Ok(top.unwrap_or_default()),
        }
    }
}

/// Why the option has no effect where JSON is printed.
pub const OF_JSON: &str =
    "is of the lists that are printed as text, and JSON has all of what was found: leave out `--top` or `--json`";

fn rows(text: &str) -> Result<Top, String> {
    match text {
        "all" => Ok(Top::All),
        number => match results::quantities::count(number).map(usize::try_from) {
            Ok(Ok(most @ 1..)) => Ok(Top::Rows(most)),
            _ => Err("write a number of rows, from 1 on, or `all`".to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_a_number_or_all() {
        assert_eq!(rows("all"), Ok(Top::All));
        assert_eq!(rows("1"), Ok(Top::Rows(1)));
        assert_eq!(rows("5000"), Ok(Top::Rows(5000)));
        assert_eq!(rows("5K"), Ok(Top::Rows(5000)));
        for wrong in ["", "0", "-1", "ten", "1.5", "ALL", "99999999999999999999999"] {
            assert!(rows(wrong).is_err(), "{wrong}");
        }
    }
}
