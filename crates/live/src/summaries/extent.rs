//! The size of an array of which only the start is known.

use policy::cdpc::{Communication, Summary};
use sys::mappings;
use sys::memory::Span;

/// Bytes from the array's start to the end of its summary's reach, but not beyond its mapping; 0 if nothing is mapped
/// there. (A block of the heap may be longer: pages that no loop touches need no color.)
pub fn bytes(summary: &Summary, iterations: u64) -> u64 {
    let reached = reached(summary, iterations);
    if reached <= 0 {
        return 0;
    }
    let Ok(start) = usize::try_from(summary.start) else {
        return 0;
    };
    let found = mappings::within(Span::new(start, 1)).unwrap_or_default();
    let room = found.first().map_or(0, |mapping| mapping.span.end() - start) as u64;
    u64::try_from(reached).unwrap_or(u64::MAX).min(room)
}

/// The end of the touched part, from the start of the array.
fn reached(summary: &Summary, iterations: u64) -> i128 {
    let steps = |stride: i64, count: u64| (i128::from(stride) * (i128::from(count) - 1)).max(0);
    let inner: i128 = summary.inner.iter().map(|inner| steps(inner.stride, inner.count)).sum();
    let shift = match summary.communication {
        Communication::Shift(distance) => i128::from(distance.max(0)),
        _ => 0,
    };
    i128::from(summary.offset) + steps(summary.unit, iterations.max(1)) + inner + i128::from(summary.span) + shift
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::cdpc::{Access, Inner};

    fn summary(start: u64) -> Summary {
        Summary {
            name: "a".into(),
            start,
            bytes: 0,
            offset: 8,
            unit: 800,
            span: 80,
            inner: vec![Inner { stride: -100, count: 3 }],
            communication: Communication::Shift(800),
            access: Access::Read,
        }
    }

    #[test]
    fn an_array_ends_where_the_last_iteration_does() {
        assert_eq!(reached(&summary(0), 10), 8 + 9 * 800 + 80 + 800);
        assert_eq!(reached(&summary(0), 0), 8 + 80 + 800);
    }

    #[cfg(not(miri))]
    #[test]
    fn nothing_beyond_the_mapping_belongs_to_it() {
        let block = vec![0u8; 1 << 20];
        let start = block.as_ptr() as u64;
        assert_eq!(bytes(&summary(start), 10), 8 + 9 * 800 + 80 + 800);
        let cut = bytes(&summary(start), 1 << 40);
        assert!((1 << 20..1 << 46).contains(&cut), "{cut}");
        assert_eq!(bytes(&summary(64), 10), 0);
    }
}
