//! The number of cases for a property.

/// The part of `full` cases that the current suite tries.
///
/// `PROPTEST_CASES` is used unchanged; `DOMICILE_CASES=all` (`make test-long`) selects all of them; otherwise an
/// eighth, but at least 16 unless `full` is less.
pub fn cases(full: u32) -> u32 {
    let number = std::env::var("PROPTEST_CASES").ok();
    part(full, number.as_deref(), all())
}

/// `few` repetitions of something slow, and `full` of them with `DOMICILE_CASES=all`.
pub fn repetitions(few: usize, full: usize) -> usize {
    if all() { full } else { few }
}

fn all() -> bool {
    std::env::var("DOMICILE_CASES").is_ok_and(|which| which == "all")
}

fn part(full: u32, number: Option<&str>, all: bool) -> u32 {
    match number {
        Some(number) => number
            .parse()
            .unwrap_or_else(|_| panic!("PROPTEST_CASES={number} is no number")),
        None if all => full,
        None => (full / 8).max(full.min(16)),
    }
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn the_short_suite_takes_an_eighth_and_the_environment_has_the_last_word() {
        assert_eq!(
            [part(400, None, false), part(64, None, false), part(3, None, false)],
            [50, 16, 3]
        );
        assert_eq!(part(400, None, true), 400);
        assert_eq!([part(400, Some("7"), true), part(3, Some("1000"), false)], [7, 1000]);
    }

    #[test]
    #[should_panic(expected = "PROPTEST_CASES=many is no number")]
    fn a_number_that_is_none_is_refused() {
        part(400, Some("many"), false);
    }
}
