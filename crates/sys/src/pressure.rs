//! How short of memory the machine is.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use crate::{Root, SysError};

/// The figures of `/proc/meminfo`, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// All that the kernel manages.
    pub total: u64,
    /// The memory available without swapping, as the kernel estimates it.
    pub available: u64,
}

impl Memory {
    pub fn read(root: &Root) -> Result<Memory, SysError> {
        const PATH: &str = "proc/meminfo";
        let text = root.text(PATH)?;
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            let kibibytes = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
            kibibytes
                .and_then(|number| number.checked_mul(1024))
                .ok_or_else(|| root.malformed(PATH, line.unwrap_or("nothing"), "MemTotal and MemAvailable in kB"))
        };
        Ok(Memory {
            total: field("MemTotal")?,
            available: field("MemAvailable")?,
        })
    }
}

/// Bytes of memory that this process has, with all that it holds for others.
pub fn own(root: &Root) -> Result<u64, SysError> {
    const PATH: &str = "proc/self/statm";
    let text = root.text(PATH)?;
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages
        .and_then(|pages| pages.checked_mul(crate::memory::PAGE as u64))
        .ok_or_else(|| root.malformed(PATH, &text, "pages in all, pages in memory"))
}

/// Percent of the last ten seconds in which some task waited for memory (PSI, Linux 4.20 and later).
pub fn stalled(root: &Root) -> Result<f64, SysError> {
    const PATH: &str = "proc/pressure/memory";
    let text = root.text(PATH)?;
    let line = text.lines().find_map(|line| line.strip_prefix("some "));
    let number = line.and_then(|rest| {
        rest.split(' ')
            .find_map(|word| word.strip_prefix("avg10=")?.parse().ok())
    });
    match number {
        Some(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err(root.malformed(PATH, line.unwrap_or(&text), "some avg10=PERCENT")),
    }
}

/// The kernel's word, at the moment that it happens, that tasks wait for memory.
pub struct Alarm(File);

impl Alarm {
    /// An alarm for when tasks waited `stall` within any `window`, of the running system.
    ///
    /// Needs: Linux 5.2 with PSI; windows of 0.5 to 10 seconds; without CAP_SYS_RESOURCE the window must be a
    /// multiple of 2 seconds. The kernel raises it once a window at most, as [`crate::ready::Wanted::Event`].
    pub fn set(stall: Duration, window: Duration) -> io::Result<Alarm> {
        let mut file = File::options().read(true).write(true).open("/proc/pressure/memory")?;
        // The kernel takes the whole text in one write, with a zero byte behind it.
        let text = format!("some {} {}\0", stall.as_micros(), window.as_micros());
        file.write_all(text.as_bytes())?;
        Ok(Alarm(file))
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(meminfo: &str, pressure: &str) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("proc/pressure")).unwrap();
        std::fs::write(folder.path().join("proc/meminfo"), meminfo).unwrap();
        std::fs::write(folder.path().join("proc/pressure/memory"), pressure).unwrap();
        let root = Root::new(folder.path());
        (folder, root)
    }

    #[test]
    fn reads_what_linux_writes() {
        let (_folder, root) = tree(
            "MemTotal:       24689288 kB\nMemFree:        18970028 kB\nMemAvailable:   23520476 kB\n",
            "some avg10=1.25 avg60=0.00 avg300=0.00 total=1173\nfull avg10=9.00 avg60=0.00 avg300=0.00 total=1173\n",
        );
        let memory = Memory::read(&root).unwrap();
        assert_eq!((memory.total, memory.available), (24_689_288 << 10, 23_520_476 << 10));
        assert_eq!(stalled(&root).unwrap(), 1.25);
    }

    #[test]
    fn says_what_is_wrong() {
        let (_folder, root) = tree(
            "MemTotal: 1 kB\nMemAvailable: 99999999999999999999 kB\n",
            "some avg10=nan\n",
        );
        let said = Memory::read(&root).unwrap_err().to_string();
        assert!(
            said.contains("/proc/meminfo") && said.contains("MemAvailable"),
            "{said}"
        );
        assert!(stalled(&root).is_err());
        assert!(Memory::read(&Root::new("/no such")).is_err());
    }

    #[test]
    fn this_machine_can_be_read() {
        let memory = Memory::read(&Root::default()).unwrap();
        assert!(memory.total >= memory.available && memory.available > 0);
        let own = own(&Root::default()).unwrap();
        assert!(own > 0 && own < memory.total);
        match Alarm::set(Duration::from_millis(200), Duration::from_secs(2)) {
            Ok(alarm) => {
                assert!(crate::packet::wait(&[alarm.as_fd()], 0).is_ok());
                // More waiting than there is time.
                assert!(Alarm::set(Duration::from_secs(3), Duration::from_secs(2)).is_err());
            }
            Err(error) => harness::not_here(format_args!("no alarm of pressure (/proc/pressure/memory): {error}")),
        }
    }
}
