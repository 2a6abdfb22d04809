//! Bars made of characters.

/// A bar that fills `fraction` of `width` columns, in steps of an eighth; always `width` wide.
pub fn bar(fraction: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (fraction.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let mut text = "█".repeat(eighths / 8) + EIGHTHS[eighths % 8];
    let filled = text.chars().count();
    text.push_str(&" ".repeat(width.saturating_sub(filled)));
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn bars_are_as_wide_as_asked() {
        assert_eq!(super::bar(0.0, 4), "    ");
        assert_eq!(super::bar(0.5, 4), "██  ");
        assert_eq!(super::bar(0.53125, 4), "██▏ ");
        assert_eq!(super::bar(7.0, 4), "████");
        assert_eq!(super::bar(f64::NAN, 4), "    ");
    }
}
