//! When the stock gives up memory, and when it may grow again (Ding11, section 3.4).
//!
//! Pure functions: they turn the machine's reports into actions. Giving up begins at a low mark of available
//! memory, or when tasks had to wait for memory, and goes on up to a high mark; collecting begins only some time
//! after the last such moment, and above the high mark.

use std::time::{Duration, Instant};

use sys::pressure::Memory;

/// The machine's report of its memory.
#[derive(Clone, Debug)]
pub struct Signs {
    /// The memory of the machine.
    pub memory: Memory,
    /// The memory of the control groups that the daemon is in, as far as they have limits.
    pub groups: Vec<Memory>,
    /// Percent of the last ten seconds in which some task waited for memory; 0 if the kernel does not report it.
    pub stalled: f64,
    /// True if the kernel has just raised its alarm.
    pub alarm: bool,
}

/// The response to it, in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PressureAction {
    /// Give so many back to the kernel.
    GiveUp(usize),
    /// So many frames may be collected until the next look; 0 while memory is scarce or was a
    /// moment ago.
    Collect(usize),
}

/// Percent of waiting that counts as pressure.
const STALLED: f64 = 10.0;
/// The part of a stock under pressure that is given up at a time.
const PART: usize = 4;
/// The least that goes at a time, in frames: 16 MiB.
const LEAST: usize = 4096;
/// How long memory must have been at ease before more is collected.
const EASE: Duration = Duration::from_secs(10);
/// The pause between two releases because of waiting: the effect of the last one must show first, in the average
/// over ten seconds later than at the next alarm.
const TURN: Duration = Duration::from_secs(5);
const TURN_OF_ALARM: Duration = Duration::from_millis(500);

/// Looks at the machine's memory again and again.
#[derive(Debug, Default)]
pub struct Watch {
    last: Option<Instant>,
}

impl Watch {
    /// Below a twentieth of all memory available, memory is given up; above a tenth, it may be collected. A control group
    /// is a small machine: the same goes for what its limit leaves.
    ///
    /// With three quarters available, tasks that wait do so for something that frames here and there do not give: a whole
    /// huge page, or the limit of their own group.
    pub fn look(&mut self, now: Instant, signs: &Signs, stock: usize) -> PressureAction {
        let memories = || std::iter::once(&signs.memory).chain(&signs.groups);
        let since = self.last.map(|last| now.saturating_duration_since(last));
        let lacking = memories().filter(|memory| memory.available < memory.total / 20);
        if let Some(lacking) = lacking.map(|memory| memory.total / 10 - memory.available).max() {
            self.last = Some(now);
            return PressureAction::GiveUp(frames(lacking).max(LEAST).min(stock));
        }
        let plenty = memories().all(|memory| memory.available > memory.total / 4 * 3);
        if (signs.alarm || signs.stalled > STALLED) && !plenty {
            let turn = if signs.alarm { TURN_OF_ALARM } else { TURN };
            if since.is_some_and(|since| since < turn) {
                return PressureAction::Collect(0);
            }
            self.last = Some(now);
            return PressureAction::GiveUp((stock / PART).max(LEAST).min(stock));
        }
        if since.is_some_and(|since| since < EASE) {
            return PressureAction::Collect(0);
        }
        let room = memories().map(|memory| memory.available.saturating_sub(memory.total / 10));
        PressureAction::Collect(frames(room.min().unwrap_or(0)))
    }
}

/// The one with the least left.
pub fn least(groups: &[Memory]) -> Option<Memory> {
    groups.iter().copied().min_by_key(|group| group.available)
}

fn frames(bytes: u64) -> usize {
    usize::try_from(bytes / 4096).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn signs(available: u64, stalled: f64, alarm: bool) -> Signs {
        let memory = Memory {
            total: 20 * GIB,
            available,
        };
        Signs {
            memory,
            groups: Vec::new(),
            stalled,
            alarm,
        }
    }

    #[test]
    fn scarce_memory_is_given_up_to_the_high_mark_and_not_collected_at_once() {
        let (mut watch, start) = (Watch::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(
            watch.look(at(0), &signs(12 * GIB, 0.0, false), 1 << 20),
            PressureAction::Collect(10 << 18)
        );
        // 1 GiB is the low mark, 2 GiB the high one.
        assert_eq!(
            watch.look(at(1), &signs(GIB / 2, 0.0, false), 1 << 20),
            PressureAction::GiveUp(3 << 17)
        );
        assert_eq!(
            watch.look(at(2), &signs(GIB / 2, 0.0, false), 100),
            PressureAction::GiveUp(100)
        );
        // Between the marks nothing happens; above, only after a while.
        assert_eq!(
            watch.look(at(3), &signs(3 * GIB, 0.0, false), 0),
            PressureAction::Collect(0)
        );
        assert_eq!(
            watch.look(at(13), &signs(3 * GIB / 2, 0.0, false), 0),
            PressureAction::Collect(0)
        );
        assert_eq!(
            watch.look(at(13), &signs(3 * GIB, 0.0, false), 0),
            PressureAction::Collect(1 << 18)
        );
    }

    #[test]
    fn who_waits_amid_plenty_does_not_wait_for_the_stock() {
        let mut watch = Watch::default();
        let action = watch.look(Instant::now(), &signs(18 * GIB, 50.0, true), 80_000);
        assert_eq!(action, PressureAction::Collect(16 << 18));
    }

    #[test]
    fn waiting_tasks_get_a_part_at_a_time() {
        let (mut watch, start) = (Watch::default(), Instant::now());
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        assert_eq!(
            watch.look(at(0), &signs(12 * GIB, 0.0, true), 80_000),
            PressureAction::GiveUp(20_000)
        );
        assert_eq!(
            watch.look(at(10), &signs(12 * GIB, 50.0, true), 60_000),
            PressureAction::Collect(0)
        );
        assert_eq!(
            watch.look(at(600), &signs(12 * GIB, 50.0, true), 60_000),
            PressureAction::GiveUp(15_000)
        );
        // The average lags behind: without an alarm it takes longer.
        assert_eq!(
            watch.look(at(1200), &signs(12 * GIB, 50.0, false), 5000),
            PressureAction::Collect(0)
        );
        assert_eq!(
            watch.look(at(5700), &signs(12 * GIB, 50.0, false), 5000),
            PressureAction::GiveUp(4096)
        );
        assert_eq!(
            watch.look(at(11_000), &signs(12 * GIB, 50.0, false), 904),
            PressureAction::GiveUp(904)
        );
        assert_eq!(
            watch.look(at(15_000), &signs(12 * GIB, 9.0, false), 0),
            PressureAction::Collect(0)
        );
    }

    #[test]
    fn a_control_group_is_a_small_machine() {
        let (mut watch, start) = (Watch::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        const MIB: u64 = 1 << 20;
        let with = |available: u64| Signs {
            groups: vec![
                Memory {
                    total: GIB,
                    available: GIB / 2,
                },
                Memory {
                    total: 160 * MIB,
                    available,
                },
            ],
            ..signs(12 * GIB, 0.0, false)
        };
        // 8 MiB is the low mark, 16 MiB the high one.
        assert_eq!(watch.look(at(0), &with(96 * MIB), 0), PressureAction::Collect(80 * 256));
        assert_eq!(watch.look(at(1), &with(12 * MIB), 20_000), PressureAction::Collect(0));
        assert_eq!(watch.look(at(2), &with(7 * MIB), 20_000), PressureAction::GiveUp(4096));
        assert_eq!(watch.look(at(3), &with(7 * MIB), 100), PressureAction::GiveUp(100));
        assert_eq!(watch.look(at(4), &with(96 * MIB), 0), PressureAction::Collect(0));
        // A group with nothing else in it is content when it is full, and does not go up and down.
        assert_eq!(watch.look(at(20), &with(16 * MIB), 20_000), PressureAction::Collect(0));
    }
}
