//! Frames: seeing them, getting them in huge pages, keeping them.

use std::io;

use live::discovery::{Unknown, discover};
use live::{Colors, Source};
use sys::frames::Pagemap;
use sys::mappings::details;
use sys::memory::{Area, HUGE, PAGE, Size, lock, lock_limit, populate, unlock};
use sys::pages::HugePages;

use super::{Facility, Works, why};

pub fn page_map() -> Facility {
    judge_page_map(Pagemap::own().map(|_| Pagemap::own_numbers_visible()))
}

fn judge_page_map(seen: io::Result<bool>) -> Facility {
    let (works, found) = match seen {
        Ok(true) => (Works::Yes, "/proc/self/pagemap shows frame numbers".to_string()),
        Ok(false) => (
            Works::No,
            "/proc/self/pagemap hides frame numbers from this user".to_string(),
        ),
        Err(error) => (
            Works::No,
            format!("/proc/self/pagemap cannot be opened: {}", why(&error)),
        ),
    };
    Facility {
        facility: "page map".into(),
        works,
        found,
        purpose: "which frame is behind a page: colors of any page. Without it, those of pages inside huge pages".into(),
        change: (works != Works::Yes).then(|| {
            "run as root, or let the command see frames: sudo setcap cap_sys_admin+ep \"$(command -v domicile)\"; or let \
             the daemon do it: sudo domicile daemon"
                .into()
        }),
    }
}

pub fn huge_pages(root: &sys::Root) -> Facility {
    let switches = sys::pages::huge_pages(root).ok();
    let tried = Area::map(2 * HUGE, Size::Huge).and_then(|area| {
        populate(area.span())?;
        let huge: u64 = details(area.span())?.iter().map(|details| details.huge_bytes).sum();
        Ok(huge)
    });
    judge_huge_pages(switches.as_ref(), tried)
}

fn judge_huge_pages(switches: Option<&HugePages>, tried: io::Result<u64>) -> Facility {
    let set = switches.map_or("not in this kernel".to_string(), |switches| switches.enabled.clone());
    let (works, found) = match tried {
        Ok(huge) if huge > 0 => (Works::Yes, format!("a huge page was given (the switch says {set})")),
        Ok(_) => (Works::No, format!("no huge page was given (the switch says {set})")),
        Err(error) => (Works::No, format!("memory for a try could not be had: {}", why(&error))),
    };
    let change = (works != Works::Yes).then(|| match switches {
        None => "a kernel with CONFIG_TRANSPARENT_HUGEPAGE".into(),
        Some(switches) if switches.enabled == "never" => {
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled".into()
        }
        Some(_) => "make room for whole huge pages: echo 1 | sudo tee /proc/sys/vm/compact_memory".into(),
    });
    Facility {
        facility: "huge pages".into(),
        works,
        found,
        purpose: "2 MiB whose frames are known in order, for any user; and less translation".into(),
        change,
    }
}

pub fn colors() -> Facility {
    judge_colors(
        discover(Unknown::Refuse),
        measured::kept_colors(measured::Effort::Quick).is_some(),
    )
}

fn judge_colors(found: Result<Colors, live::Error>, looked: bool) -> Facility {
    let (works, text, change) = match found {
        Ok(colors) => {
            let who = match colors.source {
                Source::Validated => "validated by timing",
                Source::Forced => "FORCED by DOMICILE_COLORS, whatever the probe says",
            };
            let text = format!(
                "{} colors of {} each, bits {} to {} of a frame's address, {}: {who}",
                colors.count(),
                report::bytes(colors.color_bytes),
                colors.first_bit,
                colors.first_bit + colors.bits - 1,
                colors.cache,
            );
            (Works::Yes, text, None)
        }
        Err(error) if looked => (
            Works::No,
            reason(error),
            Some("nothing, if the machine is as the reason says; else look again, longer: domicile probe --careful --fresh".into()),
        ),
        Err(error) => (Works::No, reason(error), Some("domicile probe".into())),
    };
    Facility {
        facility: "page colors".into(),
        works,
        found: text,
        purpose: "slots: parts of a cache for chosen data".into(),
        change,
    }
}

fn reason(error: live::Error) -> String {
    match error {
        live::Error::Unavailable { why, .. } | live::Error::NoColors { why } => why,
        other => other.to_string(),
    }
}

/// The size of a pool of frames for a large data set.
const LOCKED: usize = 64 << 20;

pub fn locked_memory() -> Facility {
    let tried = |bytes: usize| -> io::Result<()> {
        let area = Area::map(bytes, Size::Huge)?;
        lock(area.span())?;
        unlock(area.span())
    };
    judge_locked_memory(lock_limit(), tried(LOCKED), tried(PAGE))
}

fn judge_locked_memory(limit: Option<u64>, much: io::Result<()>, little: io::Result<()>) -> Facility {
    let limit = limit.map_or("no limit".to_string(), |limit| {
        format!("the limit is {}", report::bytes(limit))
    });
    let (works, found) = match (much, little) {
        (Ok(()), _) => (
            Works::Yes,
            format!("{} were locked ({limit})", report::bytes(LOCKED as u64)),
        ),
        (Err(error), Ok(())) => (
            Works::Partly,
            format!(
                "{} could not be locked: {} ({limit})",
                report::bytes(LOCKED as u64),
                why(&error)
            ),
        ),
        (_, Err(error)) => (
            Works::No,
            format!("not even a page could be locked: {} ({limit})", why(&error)),
        ),
    };
    Facility {
        facility: "locked memory".into(),
        works,
        found,
        purpose: "for programs that lock their pages (nothing is locked unasked): these keep their frames while memory is short".into(),
        change: (works != Works::Yes).then(|| {
            "ulimit -l unlimited, where the hard limit allows it; for good: echo \"$USER - memlock unlimited\" | sudo tee \
             /etc/security/limits.d/domicile.conf, and log in again; LimitMEMLOCK=infinity in a systemd unit"
                .into()
        }),
    }
}

/// Mappings for 200 MiB moved page by page, each page its own mapping, and as many that close the gaps.
const MAPPINGS: usize = 102_400;

pub fn mappings() -> Facility {
    judge_mappings(sys::mappings::limit(), sys::mappings::count().ok())
}

fn judge_mappings(limit: usize, count: Option<usize>) -> Facility {
    let works = if limit >= MAPPINGS { Works::Yes } else { Works::Partly };
    let now = count.map_or(String::new(), |count| format!("; this process has {count}"));
    Facility {
        facility: "mappings".into(),
        works,
        found: format!("a process may have {limit} mappings{now}"),
        purpose: "coloring by mremap, where pages cannot be moved otherwise, takes a mapping or two for each page"
            .into(),
        change: (works != Works::Yes)
            .then(|| "nothing where moving pages works; else: sudo sysctl vm.max_map_count=1048576".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> io::Error {
        io::ErrorKind::PermissionDenied.into()
    }

    #[test]
    fn hidden_frames_can_be_shown() {
        assert_eq!(judge_page_map(Ok(true)).works, Works::Yes);
        assert!(judge_page_map(Ok(true)).change.is_none());
        let hidden = judge_page_map(Ok(false));
        assert!(hidden.works == Works::No && hidden.change.unwrap().contains("setcap"));
        assert!(judge_page_map(Err(refused())).found.ends_with("this user may not"));
    }

    #[test]
    fn huge_pages_count_when_one_was_given() {
        let switches = |enabled: &str| HugePages {
            enabled: enabled.into(),
            defrag: None,
        };
        assert_eq!(
            judge_huge_pages(Some(&switches("madvise")), Ok(HUGE as u64)).works,
            Works::Yes
        );
        let never = judge_huge_pages(Some(&switches("never")), Ok(0));
        assert!(never.works == Works::No && never.change.unwrap().contains("transparent_hugepage/enabled"));
        assert!(
            judge_huge_pages(Some(&switches("madvise")), Ok(0))
                .change
                .unwrap()
                .contains("compact_memory")
        );
        assert!(judge_huge_pages(None, Ok(0)).change.unwrap().contains("CONFIG_"));
    }

    #[test]
    fn colors_are_what_the_engine_would_use() {
        let colors = Colors {
            first_bit: 12,
            bits: 4,
            color_bytes: 65536,
            cache: "L2".into(),
            source: Source::Validated,
        };
        let judged = judge_colors(Ok(colors.clone()), true);
        assert!(
            judged.works == Works::Yes && judged.found.contains("16 colors") && judged.found.contains("bits 12 to 15")
        );
        let forced = Colors {
            source: Source::Forced,
            ..colors
        };
        assert!(judge_colors(Ok(forced), false).found.contains("FORCED"));
        let error = || live::Error::Unavailable {
            what: "page colors".into(),
            why: "w".into(),
        };
        assert_eq!(
            judge_colors(Err(error()), false).change.as_deref(),
            Some("domicile probe")
        );
        assert!(judge_colors(Err(error()), true).change.unwrap().contains("--fresh"));
    }

    #[test]
    fn a_limit_below_what_is_wanted_is_partly() {
        let part = judge_locked_memory(Some(8 << 20), Err(refused()), Ok(()));
        assert!(part.works == Works::Partly && part.change.unwrap().contains("limits.d"));
        assert_eq!(judge_locked_memory(None, Ok(()), Ok(())).works, Works::Yes);
        assert_eq!(
            judge_locked_memory(Some(0), Err(refused()), Err(refused())).works,
            Works::No
        );
        assert_eq!(judge_mappings(65_530, Some(100)).works, Works::Partly);
        assert_eq!(judge_mappings(1 << 20, None).works, Works::Yes);
    }
}
