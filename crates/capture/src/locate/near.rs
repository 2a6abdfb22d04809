//! Names that the user may have meant.

use std::collections::BTreeSet;

/// Suggestions made.
const MOST: usize = 3;
/// Longer names are compared by their beginning.
const LONGEST: usize = 64;

/// The names most similar to `name`, best first; no dissimilar ones.
pub fn nearest<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> Vec<String> {
    let all: BTreeSet<&str> = all.collect();
    let far = (name.chars().count() / 3).clamp(1, 6);
    let mut ranked: Vec<(usize, &str)> = all
        .into_iter()
        .filter_map(|other| {
            let plain = other.trim_start_matches('_').trim_end_matches('_');
            let same = plain.eq_ignore_ascii_case(name) || other.rsplit("::").next() == Some(name);
            let distance = if same { 0 } else { distance(name, other) };
            (distance <= far).then_some((distance, other))
        })
        .collect();
    ranked.sort();
    ranked.truncate(MOST);
    ranked.into_iter().map(|(_, other)| other.to_string()).collect()
}

/// Suggestions as the end of a sentence.
pub fn in_words(near: &[String]) -> String {
    match near.split_last() {
        None => String::new(),
        Some((only, [])) => format!("; did you mean {only}?"),
        Some((last, first)) => format!("; did you mean {} or {last}?", first.join(", ")),
    }
}

/// Letters to insert, drop, change or exchange with the next.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(LONGEST).collect();
    let b: Vec<char> = b.chars().take(LONGEST).collect();
    if a.len().abs_diff(b.len()) > 6 {
        return usize::MAX;
    }
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            if i == 0 || j == 0 {
                rows[i][j] = i + j;
                continue;
            }
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = change.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_come_first_and_strangers_never() {
        let names = ["matrix_a", "matrix_b", "vector", "grid_", "ns::table"];
        let near = |name| nearest(name, names.into_iter());
        assert_eq!(near("matrxi_a"), ["matrix_a", "matrix_b"]);
        assert_eq!(near("vectro"), ["vector"]);
        assert_eq!(near("matrix"), ["matrix_a", "matrix_b"]);
        assert_eq!(near("GRID"), ["grid_"]);
        assert_eq!(near("table"), ["ns::table"]);
        assert_eq!(near("something else"), Vec::<String>::new());
        assert_eq!(in_words(&near("matrix")), "; did you mean matrix_a or matrix_b?");
    }
}
