//! What somebody may have meant.

use std::collections::BTreeSet;

/// Suggestions made.
const MOST: usize = 3;
/// Longer names are compared by their beginning.
const LONGEST: usize = 64;

/// The names most like `name`, best first; none that is quite unlike it.
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
pub fn told(near: &[String]) -> String {
    match near.split_last() {
        None => String::new(),
        Some((only, [])) => format!("; did you mean {only}?"),
        Some((last, first)) => format!("; did you mean {} or {last}?", first.join(", ")),
    }
}

/// Letters to insert, drop or change.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(LONGEST).collect();
    let b: Vec<char> = b.chars().take(LONGEST).collect();
    if a.len().abs_diff(b.len()) > 6 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = change.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_come_first_and_strangers_never() {
        let names = ["matrix_a", "matrix_b", "vector", "grid_", "ns::table"];
        let near = |name| nearest(name, names.into_iter());
        assert_eq!(near("matrxi_a"), ["matrix_a"]);
        assert_eq!(near("matrix"), ["matrix_a", "matrix_b"]);
        assert_eq!(near("GRID"), ["grid_"]);
        assert_eq!(near("table"), ["ns::table"]);
        assert_eq!(near("something else"), Vec::<String>::new());
        assert_eq!(told(&near("matrix")), "; did you mean matrix_a or matrix_b?");
    }
}
