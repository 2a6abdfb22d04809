//! Numbers as people read them.

/// A count: exact below 10 000, then three digits and a power of a thousand.
pub fn count(value: u64) -> String {
    if value < 10_000 {
        return value.to_string();
    }
    scaled(value as f64, 1000.0, &["", " k", " M", " G", " T", " P", " E"])
}

/// A size in bytes, in powers of 1024.
pub fn bytes(value: u64) -> String {
    if value < 1024 {
        return format!("{value} B");
    }
    scaled(value as f64, 1024.0, &[" B", " KB", " MB", " GB", " TB", " PB", " EB"])
}

/// A time given in nanoseconds.
pub fn nanoseconds(value: f64) -> String {
    if value == 0.0 {
        return "0".to_string();
    }
    scaled(value, 1000.0, &[" ns", " us", " ms", " s", " ks"])
}

/// A time in whole nanoseconds.
pub fn time(ns: u64) -> String {
    nanoseconds(ns as f64)
}

/// A share, given as a fraction of 1. A share above 0 that rounds to 0 is not shown as 0.
pub fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent > 0.0 && percent < 0.05 {
        return "<0.1%".to_string();
    }
    format!("{percent:.1}%")
}

/// How one time compares with another: `-11.3%`, `+18.1%`, and from double on `3.40x`.
pub fn change(time: f64, base: f64) -> String {
    let ratio = if base > 0.0 { time / base } else { 1.0 };
    if ratio >= 2.0 {
        return scaled(ratio, 1e6, &["x", " Mx"]);
    }
    format!("{:+.1}%", (ratio - 1.0) * 100.0)
}

fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut unit = 0;
    // 999.95 would be written as 1000.
    while value >= step - 0.5 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let digits = match value {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!(count(0), "0");
        assert_eq!(count(9_999), "9999");
        assert_eq!(count(10_000), "10.0 k");
        assert_eq!(count(999_960), "1.00 M");
        assert_eq!(count(114_000_000), "114 M");
        assert_eq!(count(u64::MAX), "18.4 E");
        assert_eq!(bytes(24), "24 B");
        assert_eq!(bytes(24 * 1024), "24.0 KB");
        assert_eq!(bytes(2 * 1024 * 1024), "2.00 MB");
        assert_eq!(nanoseconds(0.0), "0");
        assert_eq!(nanoseconds(93.0), "93.0 ns");
        assert_eq!(nanoseconds(1_060.0), "1.06 us");
        assert_eq!(nanoseconds(12_345_678.0), "12.3 ms");
        assert_eq!(nanoseconds(999.96), "1.00 us");
        assert_eq!(percent(0.0), "0.0%");
        assert_eq!(percent(0.0001), "<0.1%");
        assert_eq!(percent(0.1234), "12.3%");
        assert_eq!(change(88.7, 100.0), "-11.3%");
        assert_eq!(change(118.1, 100.0), "+18.1%");
        assert_eq!(change(340.0, 100.0), "3.40x");
        assert_eq!(change(20.0, 0.1), "200x");
        assert_eq!(change(1.0, 0.0), "+0.0%");
    }
}
