//! Numbers, sizes and times as people write them on a command line or into a file: `100M`, `1e9`, `2GiB`, `500ms`.
//!
//! Counts have units of 1000 (K, M, G, T), sizes those of 1024 (K or KiB, and so on). All of them may have a fraction and
//! an exponent, and must come out whole: nothing is rounded.

use std::ops::RangeInclusive;
use std::time::Duration;

/// A number of things.
pub fn count(text: &str) -> Result<u64, String> {
    scaled(
        text,
        &[("k", THOUSAND), ("m", MILLION), ("g", BILLION), ("t", TRILLION)],
    )
    .map_err(|wrong| wrong.of("number", "a whole one, such as 250000, 100M or 1e9"))
}

/// A number of things within bounds.
pub fn count_in(bounds: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| {
        let number = count(text)?;
        match bounds.contains(&number) {
            true => Ok(number),
            false => Err(outside(number, &bounds)),
        }
    }
}

/// The same, for what has fewer.
pub fn small_in(bounds: RangeInclusive<u32>) -> impl Fn(&str) -> Result<u32, String> + Clone {
    let wide = count_in(u64::from(*bounds.start())..=u64::from(*bounds.end()));
    move |text| u32::try_from(wide(text)?).map_err(|error| error.to_string())
}

/// An amount of memory.
pub fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u128); 9] = [
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
        ("tib", 1 << 40),
        ("k", 1 << 10),
        ("m", 1 << 20),
        ("g", 1 << 30),
        ("t", 1 << 40),
        ("b", 1),
    ];
    if text.len() > 2 && ["kb", "mb", "gb", "tb"].iter().any(|unit| ends_with(text, unit)) {
        return Err("bytes are counted by 1024 here: write K or KiB, M or MiB, G or GiB".to_string());
    }
    scaled(text, &UNITS).map_err(|wrong| wrong.of("amount", "bytes, such as 67108864, 512M or 2GiB"))
}

/// An amount of memory within bounds.
pub fn bytes_in(bounds: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| {
        let number = bytes(text)?;
        match bounds.contains(&number) {
            true => Ok(number),
            false => Err(outside(number, &bounds)),
        }
    }
}

/// A time that is more than none; seconds where no unit is given.
pub fn duration(text: &str) -> Result<Duration, String> {
    let what = |wrong: Wrong| wrong.of("time", "seconds, or such as 500ms, 60s or 5m");
    let nanoseconds = time(text, BILLION).map_err(what)?;
    match nanoseconds {
        0 => Err("it must be more than no time".to_string()),
        nanoseconds => Ok(Duration::from_nanos(nanoseconds)),
    }
}

/// A time in nanoseconds, which are meant where no unit is given.
pub fn nanoseconds(text: &str) -> Result<u32, String> {
    let nanoseconds = time(text, 1).map_err(|wrong| wrong.of("time", "nanoseconds, or such as 2us"))?;
    u32::try_from(nanoseconds).map_err(|_| format!("{text:?} is too long a time: at most {} ns", u32::MAX))
}

const THOUSAND: u128 = 1000;
const MILLION: u128 = 1_000_000;
const BILLION: u128 = 1_000_000_000;
const TRILLION: u128 = 1_000_000_000_000;

fn time(text: &str, usual: u128) -> Result<u64, Wrong> {
    let units = [
        ("ns", 1),
        ("us", THOUSAND),
        ("ms", MILLION),
        ("s", BILLION),
        ("min", 60 * BILLION),
        ("m", 60 * BILLION),
        ("h", 3600 * BILLION),
        ("", usual),
    ];
    scaled(text, &units)
}

/// Why a text is no number.
struct Wrong {
    text: String,
    why: Why,
}

enum Why {
    Unreadable,
    Fraction,
    Large,
}

impl Wrong {
    fn of(&self, what: &str, write: &str) -> String {
        let text = &self.text;
        match self.why {
            Why::Unreadable => format!("{text:?} is no {what}; write {write}"),
            Why::Fraction => format!("{text:?} does not come out whole; write {write}"),
            Why::Large => format!("{text:?} is too large"),
        }
    }
}

fn outside(number: u64, bounds: &RangeInclusive<u64>) -> String {
    match (*bounds.start(), *bounds.end()) {
        (least, _) if number < least => format!("{number} is too small: {least} is the least"),
        (_, most) => format!("{number} is too large: {most} is the most"),
    }
}

fn ends_with(text: &str, unit: &str) -> bool {
    let at = text.len().checked_sub(unit.len());
    at.and_then(|at| text.get(at..))
        .is_some_and(|end| end.eq_ignore_ascii_case(unit))
}

/// A decimal number, then one of the units (the first that fits; without one, 1).
fn scaled(text: &str, units: &[(&str, u128)]) -> Result<u64, Wrong> {
    let wrong = |why| Wrong {
        text: text.to_string(),
        why,
    };
    let unit = units.iter().find(|(unit, _)| ends_with(text, unit));
    let (name, unit) = unit.copied().unwrap_or(("", 1));
    let number = text[..text.len() - name.len()].trim_end();
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| wrong(Why::Unreadable))?),
        None => (number, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    if whole.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(wrong(Why::Unreadable));
    }
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Ok(0);
    }
    let digits: u128 = digits.parse().map_err(|_| wrong(Why::Large))?;
    let large = || wrong(Why::Large);
    let ten = |exponent: i64| 10u128.checked_pow(u32::try_from(exponent).ok()?);
    let product = digits.checked_mul(unit).ok_or_else(large)?;
    let shift = i64::from(exponent) - fraction.len() as i64;
    let number = match shift {
        0.. => ten(shift)
            .and_then(|power| product.checked_mul(power))
            .ok_or_else(large)?,
        _ => match ten(-shift) {
            Some(power) if product.is_multiple_of(power) => product / power,
            _ => return Err(wrong(Why::Fraction)),
        },
    };
    u64::try_from(number).map_err(|_| wrong(Why::Large))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_people_write_them() {
        let good = [
            ("0", 0),
            ("250000", 250_000),
            ("100M", 100_000_000),
            ("100m", 100_000_000),
            ("1.5k", 1500),
            ("1e9", 1_000_000_000),
            ("2.5E3", 2500),
            ("2500e-2", 25),
            ("1e3K", 1_000_000),
            ("3G", 3_000_000_000),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, number) in good {
            assert_eq!(count(text), Ok(number), "{text}");
        }
        let bad = [
            "",
            "M",
            "-1",
            "+1",
            "1.5",
            "1e-1",
            "ten",
            "1 2",
            ".5",
            "1e",
            "1e9e9",
            "2GiB",
            "18446744073709551616",
            "1e20",
            "1e4000000000",
            "99999999999999999999999999999999999999999",
            "µ",
            "1µ",
        ];
        for text in bad {
            assert!(count(text).is_err(), "{text}");
        }
        assert_eq!(
            count("1.5"),
            Err("\"1.5\" does not come out whole; write a whole one, such as 250000, 100M or 1e9".into())
        );
    }

    #[test]
    fn sizes_have_units_of_1024() {
        let good = [
            ("4096", 4096),
            ("64K", 65_536),
            ("64KiB", 65_536),
            ("64 KiB", 65_536),
            ("512M", 512 << 20),
            ("2GiB", 2 << 30),
            ("1.5g", 3 << 29),
            ("1T", 1 << 40),
            ("1e6", 1_000_000),
            ("100B", 100),
        ];
        for (text, number) in good {
            assert_eq!(bytes(text), Ok(number), "{text}");
        }
        for text in ["", "2GB", "1.0001K", "16777216T", "G", "%", "lots"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert!(bytes("2GB").unwrap_err().contains("GiB"));
    }

    #[test]
    fn times_have_units() {
        let ms = Duration::from_millis;
        let good = [
            ("60s", ms(60_000)),
            ("60", ms(60_000)),
            ("5m", ms(300_000)),
            ("5min", ms(300_000)),
            ("1h", ms(3_600_000)),
            ("500ms", ms(500)),
            ("0.5s", ms(500)),
            ("1.5", ms(1500)),
        ];
        for (text, time) in good {
            assert_eq!(duration(text), Ok(time), "{text}");
        }
        for text in ["", "0", "0s", "s", "5 minutes", "-1s", "1d", "1e30"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(nanoseconds("500"), Ok(500));
        assert_eq!(nanoseconds("2us"), Ok(2000));
        assert!(nanoseconds("5s").is_err());
    }

    #[test]
    fn bounds_are_named() {
        assert_eq!(count_in(1..=10)("10"), Ok(10));
        assert_eq!(count_in(1..=10)("0"), Err("0 is too small: 1 is the least".into()));
        assert_eq!(count_in(1..=10)("1K"), Err("1000 is too large: 10 is the most".into()));
        assert_eq!(small_in(1..=u32::MAX)("4e9"), Ok(4_000_000_000));
        assert!(small_in(1..=u32::MAX)("5e9").is_err());
        assert_eq!(bytes_in(65_536..=1 << 40)("64K"), Ok(65_536));
        assert!(bytes_in(65_536..=1 << 40)("63K").is_err());
    }
}
