//! How many clocks this processor takes for the instructions that programs wait for most.
//!
//! The tool follows which instructions wait for which (`latency.c`); what each takes differs from processor to processor
//! (a floating-point addition: four clocks on Intel's Skylake, three on AMD's Zen 4, two on Zen 5). A chain of each class
//! is timed against one of integer additions, which take one clock on all of them.

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
    /// Of this processor, in about a millisecond; none where the chains are not written for it.
    #[cfg(target_arch = "x86_64")]
    pub fn here() -> Option<Clocks> {
        use sys::instructions::Chain;
        let clock = time(Chain::Add);
        let of = |kind| ((time(kind) / clock).round() as u64).clamp(1, MOST);
        (clock > 0.0).then(|| Clocks {
            load: of(Chain::Load),
            multiply: of(Chain::Multiply),
            float_add: of(Chain::FloatAdd),
            float_multiply: of(Chain::FloatMultiply),
            locked: of(Chain::Locked),
        })
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

/// What the tool takes as a number of clocks.
#[cfg(target_arch = "x86_64")]
const MOST: u64 = 999;

/// Seconds of a chain: the least of many tries, which nobody interrupted.
#[cfg(target_arch = "x86_64")]
fn time(kind: sys::instructions::Chain) -> f64 {
    const TRIES: usize = 15;
    const ROUNDS: u64 = 1000;
    let once = |_| {
        let begin = std::time::Instant::now();
        sys::instructions::chain(kind, ROUNDS);
        begin.elapsed().as_secs_f64()
    };
    (0..TRIES).map(once).fold(f64::INFINITY, f64::min)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn this_processor_takes_what_processors_take() {
        let clocks = Clocks::here().expect("the chains are written for it");
        let first = clocks.arguments()[0].clone();
        assert_eq!(first, format!("--domicile-clocks-load={}", clocks.load));
        // No processor multiplies floating-point numbers in one clock; all have a locked addition take more than a plain one.
        assert!(clocks.float_multiply >= 2 && clocks.locked >= 2, "{clocks:?}");
    }
}
