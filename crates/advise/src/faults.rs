//! Memory that a program gives back to the system and takes again: each of its pages faults once more.

use results::{Advice, Outcome, ProgramChange, Time, Todo, percent};

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

/// How long a changed program takes. Memory that a change moves is never unmapped in the simulation: the faults that this seems to save are still
/// there. Huge pages do save them.
pub fn wall_of(changed: &Time, base: &Time, changes: &[ProgramChange]) -> u64 {
    let moves = |change: &ProgramChange| !matches!(change, ProgramChange::HugePages { .. });
    let seems_saved = base.page_faults.saturating_sub(changed.page_faults);
    match changes.iter().any(moves) {
        // Of all cpus together.
        true => changed.wall + seems_saved / (base.total / base.wall.max(1)).max(1),
        false => changed.wall,
    }
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
    use results::{Memory, PageFaults};

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
    fn moved_data_saves_no_faults_and_huge_pages_do() {
        let time = |wall, page_faults| Time {
            total: 2 * wall,
            wall,
            page_faults,
            ..Time::default()
        };
        let (base, changed) = (time(1000, 400), time(700, 100));
        let shift = ProgramChange::Shift {
            data: "a".to_string(),
            bytes: 64,
        };
        // Two cpus fault side by side.
        assert_eq!(wall_of(&changed, &base, &[shift]), 850);
        assert_eq!(
            wall_of(&changed, &base, &[ProgramChange::HugePages { data: None }]),
            700
        );
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
