//! Page faults: the system's time to map a page that is touched for the first time.

use std::hint::black_box;

use machine::HostReport;
use serde::{Deserialize, Serialize};
use sys::clock::thread_time;
use sys::memory::{Area, HUGE, PAGE, Size};

use super::{Effort, median, rounds};

/// The cost of first touches beyond that of the following ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Faults {
    /// For a page of 4 KiB; 0 if there was no memory to try it on.
    pub fault_ns: f64,
    /// The cost that each further 4 KiB of a huge page adds. If the system has none to give, it is about `fault_ns`.
    pub clear_ns: f64,
}

const LINE: usize = 64;
/// Twice the last cache, so that the second walk finds no more in it than the first; but no more than a small machine has.
const LEAST: u64 = 16 << 20;
const MOST: u64 = 64 << 20;

pub fn faults(host: &HostReport, effort: Effort) -> Faults {
    let last = host.machine.outermost().map_or(0, |cache| cache.bytes);
    let bytes = (2 * last).clamp(LEAST, MOST) as usize;
    let Some(small) = first_touch_ns(bytes, Size::Small, PAGE, effort) else {
        return Faults::default();
    };
    let huge = first_touch_ns(bytes, Size::Huge, HUGE, effort);
    let further = (HUGE / PAGE - 1) as f64;
    Faults {
        fault_ns: small.max(0.0),
        clear_ns: huge.map_or(small, |huge| (huge - small) / further).max(0.0),
    }
}

/// How much longer a walk over fresh memory takes than one over the same memory once more, for each page of `page`
/// bytes.
///
/// The walks write a byte of each line, so that both include the work of the caches.
fn first_touch_ns(bytes: usize, size: Size, page: usize, effort: Effort) -> Option<f64> {
    let mut area = Area::map(bytes, size).ok()?;
    let pages = area.pages();
    let mut seen = Vec::new();
    for _ in 0..rounds(effort) {
        area.discard(0, pages).ok()?;
        let [first, second] = [(); 2].map(|()| walk(&mut area));
        seen.push((first - second) * 1e9 / (area.bytes() / page) as f64);
    }
    Some(median(seen))
}

/// Seconds, those of the system included.
fn walk(area: &mut Area) -> f64 {
    let begin = thread_time();
    for line in area.as_mut_slice().chunks_mut(LINE) {
        line[0] = black_box(1);
    }
    (thread_time() - begin).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_touches_are_measured_on_any_machine() {
        let host = machine::host(&sys::Root::default()).unwrap();
        let Faults { fault_ns, clear_ns } = faults(&host, Effort::Quick);
        assert!(fault_ns.is_finite() && fault_ns >= 0.0, "{fault_ns}");
        assert!(clear_ns.is_finite() && clear_ns >= 0.0, "{clear_ns}");
    }
}
