//! The clocks that this processor takes for the instructions that programs wait for most.
//!
//! The tool follows the dependences between instructions (`latency.c`); the clocks of each instruction differ between
//! processors (a floating-point addition: four on Intel's Skylake, three on AMD's Zen 4, two on Zen 5). A chain of each
//! class is timed against one of integer additions, which take one clock on all of them. A loop whose code crosses a
//! line is timed against the same loop within one.

/// How often the chains are timed if another program uses the core, and the time between.
#[cfg(target_arch = "x86_64")]
const TRIES: usize = 8;
#[cfg(target_arch = "x86_64")]
const LATER: std::time::Duration = std::time::Duration::from_millis(2);

/// No processor loads in fewer clocks.
#[cfg(target_arch = "x86_64")]
const LOAD_LEAST: u64 = 3;

/// Clocks by class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    pub load: u64,
    pub multiply: u64,
    pub float_add: u64,
    pub float_multiply: u64,
    pub locked: u64,
}

impl Clocks {
    /// Those of this processor, in some milliseconds; none if the chains are not written for it, or if something else
    /// runs on the core all the time.
    #[cfg(target_arch = "x86_64")]
    pub fn here() -> Option<Clocks> {
        for _ in 0..TRIES {
            let clocks = Clocks::timed()?;
            if clocks.is_plausible() {
                return Some(clocks);
            }
            std::thread::sleep(LATER);
        }
        None
    }

    #[cfg(target_arch = "x86_64")]
    fn timed() -> Option<Clocks> {
        use sys::instructions::Chain;
        Some(Clocks {
            load: clocks(Chain::Load)?,
            multiply: clocks(Chain::Multiply)?,
            float_add: clocks(Chain::FloatAdd)?,
            float_multiply: clocks(Chain::FloatMultiply)?,
            locked: clocks(Chain::Locked)?,
        })
    }

    /// The most clocks that a processor may take. Another program on the core's other thread makes a chain of
    /// additions, which needs a unit in each clock, take twice as long and the others hardly longer: all of these then
    /// seem to take half as many clocks.
    fn is_plausible(self) -> bool {
        self.load >= LOAD_LEAST && self.multiply >= 3 && self.float_multiply >= 2 && self.locked >= 4
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub fn here() -> Option<Clocks> {
        None
    }

    /// For the tool.
    pub fn arguments(self) -> [String; 5] {
        [
            format!("--domicile-clocks-load={}", self.load),
            format!("--domicile-clocks-multiply={}", self.multiply),
            format!("--domicile-clocks-float-add={}", self.float_add),
            format!("--domicile-clocks-float-multiply={}", self.float_multiply),
            format!("--domicile-clocks-locked={}", self.locked),
        ]
    }
}

/// The aligned line of code of which this processor fetches one in a clock, in bytes: a loop whose code lies in two of them
/// takes two clocks a round at least. `None` if such a loop takes one, or cannot be timed.
///
/// Processors keep decoded instructions by lines of code: 32 bytes up to Intel's Skylake, 64 in AMD's Zen and later ones of Intel.
#[cfg(target_arch = "x86_64")]
pub fn code_line() -> Option<u64> {
    use std::sync::OnceLock;
    use sys::instructions::{Placed, placed_loop};
    static LINE: OnceLock<Option<u64>> = OnceLock::new();
    const ROUNDS: u64 = 2000;
    let once = |placed| seconds(|| placed_loop(placed, ROUNDS));
    let times = |placed| median_of_pairs(|| once(placed) / once(Placed::Whole));
    *LINE.get_or_init(|| line_of(times(Placed::Across32), times(Placed::Across64)))
}

/// The line, by how many times as long a loop takes across one of 32 bytes, and across one of 64.
#[cfg(target_arch = "x86_64")]
fn line_of(across_32: f64, across_64: f64) -> Option<u64> {
    let slower = |times: f64| times.is_finite() && times > 1.5;
    match (slower(across_32), slower(across_64)) {
        (true, _) => Some(32),
        (false, true) => Some(64),
        (false, false) => None,
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub fn code_line() -> Option<u64> {
    None
}

/// Clocks that a load waits for the store of its word, once the value is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The store writes the same place repeatedly: some processors then forward the value as in registers.
    pub in_place: u64,
    pub elsewhere: u64,
}

impl Forward {
    /// As Intel's Skylake and AMD's Zen have it (Agner Fog, "The microarchitecture of Intel, AMD and VIA CPUs").
    const USUAL: Forward = Forward {
        in_place: 4,
        elsewhere: 4,
    };

    /// Those of this processor; the usual ones if the chains are not written for it, or if something else runs on the
    /// core all the time.
    #[cfg(target_arch = "x86_64")]
    pub fn here() -> Forward {
        use std::sync::OnceLock;
        static FORWARD: OnceLock<Forward> = OnceLock::new();
        *FORWARD.get_or_init(|| (0..TRIES).find_map(|_| Forward::timed()).unwrap_or(Self::USUAL))
    }

    /// None if another program on the core's other thread makes all chains look shorter: the chain of loads shows that.
    #[cfg(target_arch = "x86_64")]
    fn timed() -> Option<Forward> {
        use sys::instructions::Chain;
        // One clock is the addition's.
        let in_place = clocks(Chain::InPlace)? - 1;
        let elsewhere = clocks(Chain::AlongMemory)?;
        if clocks(Chain::Load)? < LOAD_LEAST {
            std::thread::sleep(LATER);
            return None;
        }
        Some(Forward { in_place, elsewhere })
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub fn here() -> Forward {
        Self::USUAL
    }
}

#[cfg(target_arch = "x86_64")]
fn seconds(run: impl FnOnce()) -> f64 {
    let begin = std::time::Instant::now();
    run();
    begin.elapsed().as_secs_f64()
}

/// The median of pairs: frequency and the other thread change over a recording's first milliseconds, but hardly within
/// a pair.
#[cfg(target_arch = "x86_64")]
fn median_of_pairs(pair: impl Fn() -> f64) -> f64 {
    const PAIRS: usize = 31;
    let mut ratios: Vec<f64> = (0..PAIRS).map(|_| pair()).collect();
    ratios.sort_by(f64::total_cmp);
    ratios[PAIRS / 2]
}

/// The largest number of clocks that the tool accepts.
#[cfg(target_arch = "x86_64")]
const MOST: u64 = 999;

/// How many times as long a chain takes as one of additions.
#[cfg(target_arch = "x86_64")]
fn clocks(kind: sys::instructions::Chain) -> Option<u64> {
    use sys::instructions::{Chain, chain};
    const ROUNDS: u64 = 500;
    let once = |kind| seconds(|| chain(kind, ROUNDS));
    let median = median_of_pairs(|| once(kind) / once(Chain::Add));
    median.is_finite().then(|| (median.round() as u64).clamp(1, MOST))
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// Figures that another program on the core disturbed are distinguished from figures that processors have.
    #[test]
    fn figures_that_no_processor_has_are_not_taken() {
        let of = |[load, multiply, float_add, float_multiply, locked]: [u64; 5]| Clocks {
            load,
            multiply,
            float_add,
            float_multiply,
            locked,
        };
        for processor in [[5, 3, 2, 3, 18], [4, 3, 3, 3, 8], [4, 3, 4, 4, 18]] {
            assert!(of(processor).is_plausible(), "{processor:?}");
        }
        for halved in [[2, 1, 1, 1, 9], [1, 1, 1, 1, 4]] {
            assert!(!of(halved).is_plausible(), "{halved:?}");
        }
        assert_eq!(
            [line_of(2.0, 2.1), line_of(1.1, 1.9), line_of(1.0, 1.2)],
            [Some(32), Some(64), None]
        );
        assert_eq!(line_of(f64::NAN, f64::INFINITY), None);
        let here = Clocks::here();
        assert!(here.is_none_or(Clocks::is_plausible), "{here:?}");
        let forward = Forward::here();
        assert!(
            forward.in_place <= 20 && (1..=30).contains(&forward.elsewhere),
            "{forward:?}"
        );
        assert_eq!(of([5, 3, 2, 3, 18]).arguments()[0], "--domicile-clocks-load=5");
    }
}
