//! Step 5: colors in turn (Bugnion96, section 5.2).

use super::hints::{Hint, Placed};

/// The pages in coloring order, each with its position modulo the colors. No two colors differ by more than one page.
pub(super) fn in_turn(segments: &[Placed], colors: u32) -> Vec<Hint> {
    let total = segments
        .iter()
        .map(|segment| segment.pages.end - segment.pages.start)
        .sum::<u64>();
    let mut pages = Vec::with_capacity(total as usize);
    let mut color = 0;
    for segment in segments {
        for page in (segment.begin..segment.pages.end).chain(segment.pages.start..segment.begin) {
            pages.push(Hint { page, color });
            color += 1;
            if color == colors {
                color = 0;
            }
        }
    }
    pages
}
