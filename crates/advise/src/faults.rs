//! Page faults: repeated ones, of memory that a program gives back to the system and takes again, and first ones, which
//! huge pages reduce.

use results::{Advice, Outcome, ProgramChange, Time, Todo, count, percent};
use sim::{Config, Detail, SimError};
use trace::Trace;

use crate::basis;
use crate::settings::Settings;
use crate::words::NOTHING;

/// Makes the C library keep freed memory (glibc's manual, "Memory Allocation Tunables"). Otherwise blocks from its
/// `mmap` go back with every `free`, and so does the top of the heap beyond the trim threshold.
const KEEP: &str = "GLIBC_TUNABLES=glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=4294967296";

const KIND: &str = "page-faults";

/// The saving if memory is kept: the faults of pages that had been touched before.
pub fn todo(advice: &Advice, least: f64) -> Option<Todo> {
    let base = advice.base()?;
    let (again, gain) = (base.memory.page_faults?.again, share(base));
    (gain >= least).then(|| Todo {
        kind: KIND.to_string(),
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

/// From this share of the time on, huge pages are simulated because they save faults.
const WORTH: f64 = 0.05;

/// The saving of huge pages for all data, if first page faults take a considerable part of the time, and no cause has
/// that cure.
pub fn huge_pages(
    trace: &Trace,
    settings: &Settings,
    config: &Config,
    advice: &Advice,
) -> Result<Option<Todo>, SimError> {
    let Some((base, policy)) = advice.base().zip(config.detailed()) else {
        return Ok(None);
    };
    let first = base.memory.page_faults.map_or(0, |faults| faults.first);
    let share = first_share(base);
    let huge = |change: &ProgramChange| matches!(change, ProgramChange::HugePages { .. });
    let mut cures = advice
        .causes
        .iter()
        .filter(|cause| cause.gain.is_some_and(|gain| gain >= NOTHING));
    if share < WORTH || cures.any(|cause| cause.simulated.iter().any(huge)) {
        return Ok(None);
    }
    let changed = Config {
        changes: vec![ProgramChange::HugePages { data: None }],
        policies: vec![policy.clone()],
        detail: Detail::default(),
        detail_for: None,
        classes: false,
        ..config.clone()
    };
    let gain = match settings.simulate(trace, &changed) {
        Ok(runs) => runs.first().map_or(0.0, |run| basis::gain(base, &run.outcome)),
        Err(SimError::Change { .. } | SimError::ChangesUnder { .. }) => 0.0,
        Err(error) => return Err(error),
    };
    Ok((gain >= NOTHING).then(|| Todo {
        kind: KIND.to_string(),
        because: format!(
            "the first touches of {} pages take {} of the time in page faults",
            count(first),
            percent(share)
        ),
        action: "use huge pages: start it with `GLIBC_TUNABLES=glibc.malloc.hugetlb=1`, or give madvise(MADV_HUGEPAGE) to large \
                 data before its first use"
            .to_string(),
        share: share.max(gain),
        gain: Some(gain),
        ..Todo::default()
    }))
}

/// The time of a changed program. The simulation never unmaps memory that a change moves: the faults that this seems to
/// save still occur. Huge pages do save them.
pub fn wall_of(changed: &Time, base: &Time, changes: &[ProgramChange]) -> u64 {
    let moves = |change: &ProgramChange| !matches!(change, ProgramChange::HugePages { .. });
    let seems_saved = base.page_faults.saturating_sub(changed.page_faults);
    match changes.iter().any(moves) {
        // Of all cpus together.
        true => changed.wall + seems_saved / (base.total / base.wall.max(1)).max(1),
        false => changed.wall,
    }
}

/// The part of the time for faults of pages that had been touched before.
fn share(base: &Outcome) -> f64 {
    base.memory
        .page_faults
        .map_or(0.0, |faults| of_time(base, faults.again))
}

/// The same for first touches.
fn first_share(base: &Outcome) -> f64 {
    base.memory
        .page_faults
        .map_or(0.0, |faults| of_time(base, faults.first))
}

/// The part of the time that this many of all page faults take.
fn of_time(base: &Outcome, some: u64) -> f64 {
    let all = base.memory.page_faults.map_or(0, |faults| faults.first + faults.again);
    let time = base.time_ns.page_faults as f64 * some as f64 / all.max(1) as f64;
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
        // Two cpus fault in parallel.
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
