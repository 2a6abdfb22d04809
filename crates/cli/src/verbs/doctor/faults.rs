//! Moving pages while a program runs, and detecting accesses.

use std::io;

use sys::faults::{Door, Faults, Scope};
use sys::kernel::Kernel;
use sys::memory::{Area, PAGE, Size};

use super::{Facility, Works, why};

pub fn own() -> Facility {
    judge_own(Faults::open_for(Scope::UserOnly, false).map(|faults| faults.door()))
}

fn judge_own(opened: io::Result<Door>) -> Facility {
    let (works, found, change) = outcome(
        opened,
        "in a container, let it through: podman run --security-opt seccomp=unconfined",
    );
    Facility {
        facility: "userfaultfd".into(),
        works,
        found,
        purpose: "pages of a running program are taken out and put in while its threads that touch them wait".into(),
        change,
    }
}

pub fn kernel() -> Facility {
    judge_kernel(Faults::open_for(Scope::Kernel, false).map(|faults| faults.door()))
}

fn judge_kernel(opened: io::Result<Door>) -> Facility {
    let (works, found, change) = outcome(
        opened,
        "for all users: sudo sysctl vm.unprivileged_userfaultfd=1 (for good: echo vm.unprivileged_userfaultfd=1 | sudo tee \
         /etc/sysctl.d/90-domicile.conf); for this one: sudo setfacl -m \"u:$USER:rw\" /dev/userfaultfd",
    );
    Facility {
        facility: "userfaultfd, kernel".into(),
        works,
        found,
        purpose:
            "the same while system calls touch these pages too, as read(2) into one: live recoloring refuses without it"
                .into(),
        change,
    }
}

fn outcome(opened: io::Result<Door>, allowed_by: &str) -> (Works, String, Option<String>) {
    match opened {
        Ok(Door::SystemCall) => (Works::Yes, "opened by system call".into(), None),
        Ok(Door::Device) => (Works::Yes, "opened by /dev/userfaultfd".into(), None),
        Err(error) if error.raw_os_error() == Some(NO_SUCH_CALL) => (
            Works::No,
            "this kernel has none".into(),
            Some("a kernel with CONFIG_USERFAULTFD".into()),
        ),
        Err(error) => (Works::No, format!("refused: {}", why(&error)), Some(allowed_by.into())),
    }
}

/// ENOSYS.
const NO_SUCH_CALL: i32 = 38;

pub fn moving(root: &sys::Root) -> Facility {
    judge_moving(move_a_page(), Kernel::read(root).ok())
}

/// Moves a page from one area to another and checks its contents; `None` if the kernel cannot.
fn move_a_page() -> io::Result<Option<bool>> {
    let faults = Faults::open(false)?;
    if !faults.features().moves() {
        return Ok(None);
    }
    let (mut from, mut to) = (Area::map(PAGE, Size::Small)?, Area::map(PAGE, Size::Small)?);
    from.set_word(0, 7, 42);
    faults.register(to.span())?;
    let moved = faults.shift(&mut from, 0, &mut to, 0, 1);
    // An access would wait for ever without its page.
    faults.unregister(to.span())?;
    Ok(Some(moved.bytes == PAGE && to.word(0, 7) == 42))
}

fn judge_moving(moved: io::Result<Option<bool>>, kernel: Option<Kernel>) -> Facility {
    let old = kernel.as_ref().is_some_and(|kernel| !kernel.at_least(6, 8));
    let newer = || match &kernel {
        Some(kernel) if old => format!("Linux 6.8 or later; this is {}", kernel.text),
        _ => "Linux 6.8 or later".to_string(),
    };
    let (works, found, change) = match moved {
        Ok(Some(true)) => (Works::Yes, "a page was moved with its frame".to_string(), None),
        Ok(Some(false)) => (Works::No, "a page could not be moved".into(), Some(newer())),
        Ok(None) => (Works::No, "this kernel cannot".into(), Some(newer())),
        Err(error) => (
            Works::No,
            format!("not tried, for want of a userfaultfd: {}", why(&error)),
            Some("let userfaultfd work first, see there".into()),
        ),
    };
    Facility {
        facility: "moving pages".into(),
        works,
        found,
        purpose: "UFFDIO_MOVE: a page gets another frame without being copied; else pages are copied, or remapped"
            .into(),
        change,
    }
}

pub fn protection_keys() -> Facility {
    judge_protection_keys(sys::protection_keys::try_key())
}

fn judge_protection_keys(tried: io::Result<()>) -> Facility {
    let (works, found) = match &tried {
        Ok(()) => (Works::Yes, "a key was given".to_string()),
        Err(error) => (Works::No, format!("no key was given: {}", why(error))),
    };
    Facility {
        facility: "protection keys".into(),
        works,
        found,
        purpose: "noticing which thread touches which pages without a system call; else mprotect does it".into(),
        change: tried
            .err()
            .map(|_| "nothing: it takes a processor that has them (pku in /proc/cpuinfo)".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_can_be_allowed_and_what_is_absent_cannot() {
        let refused = judge_kernel(Err(io::ErrorKind::PermissionDenied.into()));
        assert!(refused.works == Works::No && refused.change.unwrap().contains("vm.unprivileged_userfaultfd=1"));
        let absent = judge_own(Err(io::Error::from_raw_os_error(NO_SUCH_CALL)));
        assert!(absent.change.unwrap().contains("CONFIG_USERFAULTFD"));
        let device = judge_kernel(Ok(Door::Device));
        assert!(device.works == Works::Yes && device.found.contains("/dev/userfaultfd") && device.change.is_none());
    }

    #[test]
    fn moving_takes_a_newer_kernel_where_it_is_old() {
        let kernel = |major, minor| {
            Some(Kernel {
                text: format!("{major}.{minor}"),
                major,
                minor,
            })
        };
        assert_eq!(judge_moving(Ok(Some(true)), kernel(6, 18)).works, Works::Yes);
        assert!(
            judge_moving(Ok(None), kernel(6, 1))
                .change
                .unwrap()
                .contains("this is 6.1")
        );
        assert!(judge_moving(Ok(Some(false)), None).change.is_some());
        let none = judge_moving(Err(io::ErrorKind::PermissionDenied.into()), kernel(6, 18));
        assert!(none.found.contains("userfaultfd"));
    }

    #[test]
    fn keys_need_a_processor() {
        assert!(judge_protection_keys(Ok(())).change.is_none());
        let none = judge_protection_keys(Err(io::Error::from_raw_os_error(28)));
        assert!(none.works == Works::No && none.change.unwrap().contains("pku"));
    }
}
