//! Memory that a program gives back to the system and takes again: each of its pages faults once more.

use results::{Advice, Outcome, Todo, percent};

/// Has the C library keep what is freed (glibc's manual, "Memory Allocation Tunables"). Blocks from its `mmap` go back with
/// every `free`, and so does the top of the heap beyond the trim threshold.
const KEEP: &str = "GLIBC_TUNABLES=glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=4294967296";

/// What keeping it would save: the faults of pages that had been touched before.
pub fn todo(advice: &Advice, least: f64) -> Option<Todo> {
    let base = advice.base()?;
    let (again, gain) = (base.memory.page_faults?.again, share(base));
    (gain >= least).then(|| Todo {
        kind: "page-faults".to_string(),
        because: format!(
            "{again} pages are given back to the system and touched again: their page faults take {} of the time",
            percent(gain)
        ),
        action: format!("start it with `{KEEP}`, or allocate once what a loop allocates anew"),
        share: gain,
        gain: Some(gain),
        ..Todo::default()
    })
}

/// The part of the time that faults of pages take which had been touched before.
fn share(base: &Outcome) -> f64 {
    let Some(faults) = base.memory.page_faults else {
        return 0.0;
    };
    let all = (faults.first + faults.again).max(1) as f64;
    let time = base.time_ns.page_faults as f64 * faults.again as f64 / all;
    time / base.time_ns.worked().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{Memory, PageFaults, Time};

    fn advice(first: u64, again: u64) -> Advice {
        let base = Outcome {
            policy: "a".to_string(),
            memory: Memory {
                page_faults: Some(PageFaults { first, again }),
                ..Memory::default()
            },
            time_ns: Time {
                total: 1000,
                page_faults: 400,
                ..Time::default()
            },
            ..Outcome::default()
        };
        Advice {
            baseline: "a".to_string(),
            policies: vec![base],
            ..Advice::default()
        }
    }

    #[test]
    fn only_what_was_there_before_can_be_kept() {
        assert_eq!(todo(&advice(10, 0), 0.01), None);
        let todo = todo(&advice(10, 30), 0.01).unwrap();
        assert_eq!((todo.gain, todo.kind.as_str()), (Some(0.3), "page-faults"));
        assert!(
            todo.because.contains("30 pages") && todo.because.contains("30.0%"),
            "{}",
            todo.because
        );
    }
}
