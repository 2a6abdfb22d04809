//! Facilities of the machine besides pages: nodes, ways of caches, counters, notice of low memory.

use std::io;
use std::time::Duration;

use sys::perf::Event;
use sys::pressure::Alarm;
use sys::resctrl::Resctrl;

use super::{Facility, Works, why};

pub fn nodes(root: &sys::Root) -> Facility {
    let count = sys::nodes::nodes(root).map_or(0, |nodes| nodes.len());
    judge_nodes(count, sys::home::of_a_new_page())
}

fn judge_nodes(count: usize, asked: io::Result<u32>) -> Facility {
    let (works, found, change) = match (count, &asked) {
        (0, _) => (
            Works::No,
            "the kernel reports no nodes".to_string(),
            Some("a kernel with CONFIG_NUMA".into()),
        ),
        (_, Err(error)) => (
            Works::No,
            format!("asking for the node of a page is refused: {}", why(error)),
            Some("in a container, let move_pages through: podman run --cap-add SYS_NICE".into()),
        ),
        (1, Ok(_)) => (
            Works::Partly,
            "one node, and the page that was asked for is on it: all memory is equally near".into(),
            Some("nothing: homes of pages decide something on machines with several nodes".into()),
        ),
        (count, Ok(node)) => (
            Works::Yes,
            format!("{count} nodes; a new page was on node {node}"),
            None,
        ),
    };
    Facility {
        facility: "NUMA nodes".into(),
        works,
        found,
        purpose: "pages get homes near the threads that use them".into(),
        change,
    }
}

pub fn resctrl(root: &sys::Root) -> Facility {
    judge_resctrl(&sys::resctrl::resctrl(root))
}

fn judge_resctrl(state: &Resctrl) -> Facility {
    let (works, found, change) = match state {
        Resctrl::Absent => (
            Works::No,
            "this kernel and processor have none".to_string(),
            Some(
                "nothing: it takes a processor with Intel CAT, AMD's or Arm's like, not hidden by a hypervisor".into(),
            ),
        ),
        Resctrl::Unmounted => (
            Works::No,
            "not mounted".into(),
            Some("sudo mount -t resctrl resctrl /sys/fs/resctrl".into()),
        ),
        Resctrl::Mounted { at, caches, .. } if caches.is_empty() => (
            Works::No,
            format!(
                "{} is mounted, but the ways of no cache can be shared out",
                at.display()
            ),
            Some("nothing: this processor only measures".into()),
        ),
        Resctrl::Mounted { at, caches, writable } => {
            let caches: Vec<String> = caches
                .iter()
                .map(|(name, groups)| format!("{name} in {groups} groups"))
                .collect();
            let found = format!("{}: {}", at.display(), caches.join(", "));
            match writable {
                true => (Works::Yes, found, None),
                false => (
                    Works::No,
                    format!("{found}; this user may make none"),
                    Some(format!("run as root, or: sudo chown \"$USER\" {}", at.display())),
                ),
            }
        }
    };
    Facility {
        facility: "resctrl".into(),
        works,
        found,
        purpose: "slots by ways, for whole threads, where there are no page colors".into(),
        change,
    }
}

pub fn counters() -> Facility {
    let work = || {
        for step in 0..1000u64 {
            std::hint::black_box(step);
        }
    };
    judge_counters(
        sys::perf::count(Event::Instructions, work),
        sys::perf::count(Event::CacheMisses, work),
        sys::perf::count(Event::PageFaults, work),
    )
}

fn judge_counters(instructions: io::Result<u64>, misses: io::Result<u64>, faults: io::Result<u64>) -> Facility {
    let forbidden = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    let paranoid = || Some("sudo sysctl kernel.perf_event_paranoid=1".to_string());
    let hidden =
        || Some("nothing here: the hypervisor must give this guest the processor's counters (a virtual PMU)".into());
    let (works, found, change) = match (instructions, misses, faults) {
        (Ok(0), _, _) => (
            Works::No,
            "the counter of instructions stands still".to_string(),
            hidden(),
        ),
        (Ok(_), Ok(_), _) => (Works::Yes, "instructions and cache misses were counted".into(), None),
        (Ok(_), Err(error), _) => (
            Works::Partly,
            format!("instructions were counted; cache misses are not: {}", why(&error)),
            hidden(),
        ),
        (Err(error), _, _) if forbidden(&error) => (Works::No, "refused: this user may not".into(), paranoid()),
        (Err(error), _, Ok(_)) => (
            Works::Partly,
            format!(
                "the kernel's own events were counted; the processor's are not: {}",
                why(&error)
            ),
            hidden(),
        ),
        (Err(error), _, Err(_)) => (
            Works::No,
            format!("refused: {}", why(&error)),
            Some("a kernel with CONFIG_PERF_EVENTS; in a container: podman run --cap-add PERFMON".into()),
        ),
    };
    Facility {
        facility: "perf events".into(),
        works,
        found,
        purpose: "counting misses of the real caches, to see that a change helped".into(),
        change,
    }
}

pub fn pressure(root: &sys::Root) -> Facility {
    // Only privileged users may use windows that are not multiples of two seconds.
    let alarm = Alarm::set(Duration::from_millis(150), Duration::from_secs(2));
    judge_pressure(sys::pressure::stalled(root).ok(), alarm.map(|_| ()))
}

fn judge_pressure(stalled: Option<f64>, alarm: io::Result<()>) -> Facility {
    let (works, found, change) = match (stalled, alarm) {
        (None, _) => (
            Works::No,
            "/proc/pressure/memory reports nothing".to_string(),
            Some("boot with psi=1 on the kernel's command line".into()),
        ),
        (Some(percent), Ok(())) => (
            Works::Yes,
            format!("tasks waited for memory {percent} % of the last ten seconds; an alarm was set"),
            None,
        ),
        (Some(percent), Err(error)) => (
            Works::Partly,
            format!(
                "tasks waited for memory {percent} % of the last ten seconds; no alarm can be set: {}",
                why(&error)
            ),
            Some("Linux 6.6 or later lets any user set one; or run as root".into()),
        ),
    };
    Facility {
        facility: "memory pressure".into(),
        works,
        found,
        purpose: "frames that are held in store are given back before memory gets short".into(),
        change,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(number: i32) -> io::Error {
        io::Error::from_raw_os_error(number)
    }
    const EACCES: i32 = 13;
    const ENOENT: i32 = 2;

    #[test]
    fn one_node_is_no_choice() {
        assert_eq!(judge_nodes(2, Ok(1)).works, Works::Yes);
        assert_eq!(judge_nodes(1, Ok(0)).works, Works::Partly);
        assert!(judge_nodes(2, Err(error(1))).change.unwrap().contains("SYS_NICE"));
        assert!(judge_nodes(0, Ok(0)).change.unwrap().contains("CONFIG_NUMA"));
    }

    #[test]
    fn ways_can_be_shared_out_by_who_may_write() {
        let mounted = |writable, caches: &[(&str, u64)]| Resctrl::Mounted {
            at: "/sys/fs/resctrl".into(),
            caches: caches
                .iter()
                .map(|(name, groups)| (name.to_string(), *groups))
                .collect(),
            writable,
        };
        let works = judge_resctrl(&mounted(true, &[("L3", 16)]));
        assert!(works.works == Works::Yes && works.found.contains("L3 in 16 groups"));
        assert!(
            judge_resctrl(&mounted(false, &[("L3", 16)]))
                .change
                .unwrap()
                .contains("chown")
        );
        assert_eq!(judge_resctrl(&mounted(true, &[])).works, Works::No);
        assert!(
            judge_resctrl(&Resctrl::Unmounted)
                .change
                .unwrap()
                .starts_with("sudo mount")
        );
        assert!(judge_resctrl(&Resctrl::Absent).change.unwrap().starts_with("nothing"));
    }

    #[test]
    fn counters_may_be_forbidden_or_not_there() {
        assert_eq!(judge_counters(Ok(9), Ok(0), Ok(1)).works, Works::Yes);
        let forbidden = judge_counters(Err(error(EACCES)), Err(error(EACCES)), Err(error(EACCES)));
        assert!(forbidden.works == Works::No && forbidden.change.unwrap().contains("perf_event_paranoid"));
        let guest = judge_counters(Err(error(ENOENT)), Err(error(ENOENT)), Ok(1));
        assert!(guest.works == Works::Partly && guest.change.unwrap().contains("hypervisor"));
        assert_eq!(judge_counters(Ok(0), Ok(0), Ok(0)).works, Works::No);
    }

    #[test]
    fn pressure_is_read_and_reported() {
        assert_eq!(judge_pressure(Some(0.0), Ok(())).works, Works::Yes);
        assert_eq!(judge_pressure(Some(0.0), Err(error(EACCES))).works, Works::Partly);
        assert!(judge_pressure(None, Ok(())).change.unwrap().contains("psi=1"));
    }
}
