//! The threads of a process: which of them have run, and where (`/proc/PID/task`).

use crate::cpus::{CpuSet, parse_list};
use crate::{Root, SysError};

/// The kernel's report of one thread at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The kernel's number of the thread.
    pub number: u32,
    /// The cpu that it runs on, or ran on last.
    pub cpu: u32,
    /// True if it runs or waits for its cpu just now.
    pub runs: bool,
    /// Time that it has had a cpu: in nanoseconds where the kernel counts them, else in clock ticks.
    pub time: u64,
}

/// The threads of a process, ascending by number. One that ends meanwhile may be missing.
///
/// Errors: [`Problem::Absent`](crate::Problem::Absent) if there is no such process.
pub fn of(root: &Root, process: u32) -> Result<Vec<Task>, SysError> {
    let folder = format!("proc/{process}/task");
    let numbers = root.numbered(&folder, "")?;
    let task = |number: u32| {
        let text = root.text(&format!("{folder}/{number}/stat")).ok()?;
        let mut task = parse(number, &text)?;
        if let Some(time) = run_time(root, &format!("{folder}/{number}/schedstat")) {
            task.time = time;
        }
        Some(task)
    };
    Ok(numbers.into_iter().filter_map(task).collect())
}

/// When a process began, in clock ticks since the machine's start: tells it from a later one of the same number.
pub fn began(root: &Root, process: u32) -> Result<u64, SysError> {
    const BEGAN: usize = 22;
    let path = format!("proc/{process}/stat");
    let text = root.text(&path)?;
    field(&text, BEGAN).ok_or_else(|| root.malformed(&path, &text, "a process with the time of its beginning"))
}

/// A thread, and the time that it has had a cpu and waited for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The kernel's number of the thread.
    pub number: u32,
    /// When it began, in clock ticks since the machine's start.
    pub began: u64,
    /// The cpu that it runs on, or ran on last.
    pub cpu: u32,
    /// In nanoseconds.
    pub ran: u64,
    /// Time in which it could have run and had no cpu, in nanoseconds; 0 if the kernel does not count it.
    pub waited: u64,
}

/// The demand of each thread of a process, ascending by number. One that ends meanwhile may be missing.
///
/// Errors: [`Problem::Absent`](crate::Problem::Absent) if there is no such process.
pub fn demand(root: &Root, process: u32) -> Result<Vec<Demand>, SysError> {
    /// Clock ticks of `stat` are hundredths of a second on every architecture that has caches to pair.
    const TICK_NS: u64 = 10_000_000;
    const BEGAN: usize = 22;
    let folder = format!("proc/{process}/task");
    let one = |number: u32| {
        let text = root.text(&format!("{folder}/{number}/stat")).ok()?;
        let task = parse(number, &text)?;
        let times = root.text(&format!("{folder}/{number}/schedstat")).unwrap_or_default();
        let mut times = times.split_whitespace().map_while(|time| time.parse().ok());
        Some(Demand {
            number,
            began: field(&text, BEGAN)?,
            cpu: task.cpu,
            ran: times.next().unwrap_or(task.time.saturating_mul(TICK_NS)),
            waited: times.next().unwrap_or(0),
        })
    };
    Ok(root.numbered(&folder, "")?.into_iter().filter_map(one).collect())
}

/// When a thread of a process began, in clock ticks since the machine's start.
pub fn thread_began(root: &Root, process: u32, thread: u32) -> Result<u64, SysError> {
    const BEGAN: usize = 22;
    let path = format!("proc/{process}/task/{thread}/stat");
    let text = root.text(&path)?;
    field(&text, BEGAN).ok_or_else(|| root.malformed(&path, &text, "a thread with the time of its beginning"))
}

/// The cpus that a thread may run on, those that are offline among them (`Cpus_allowed_list`).
pub fn thread_mask(root: &Root, process: u32, thread: u32) -> Result<CpuSet, SysError> {
    let path = format!("proc/{process}/task/{thread}/status");
    let text = root.text(&path)?;
    let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let mask = list.and_then(parse_list);
    mask.ok_or_else(|| root.malformed(&path, &text, "a line Cpus_allowed_list:"))
}

/// When a process began, as [`began`] has it; `None` if it has ended, or is not there.
pub fn lives_since(root: &Root, process: u32) -> Option<u64> {
    let ended = is_zombie(root, process);
    began(root, process).ok().filter(|_| !ended)
}

/// Returns whether a process is a zombie: it has ended, and its parent has not waited for it.
pub fn is_zombie(root: &Root, process: u32) -> bool {
    has_ended(root, &format!("proc/{process}/stat")) == Some(true)
}

/// Returns whether there is a process of this number. A zombie counts.
pub fn is_there(process: u32) -> bool {
    let raw = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    // EPERM: it is another user's.
    raw.is_some_and(|raw| rustix::process::test_kill_process(raw) != Err(rustix::io::Errno::SRCH))
}

/// The threads of a process that have not ended, ascending by number.
///
/// Errors: [`Problem::Absent`](crate::Problem::Absent) if there is no such process, or it is hidden.
pub fn living(root: &Root, process: u32) -> Result<Vec<u32>, SysError> {
    let folder = format!("proc/{process}/task");
    let lives = |thread: &u32| has_ended(root, &format!("{folder}/{thread}/stat")) == Some(false);
    Ok(root.numbered(&folder, "")?.into_iter().filter(lives).collect())
}

/// Returns whether `stat` reports the end of the task; `None` if there is no `stat`.
fn has_ended(root: &Root, path: &str) -> Option<bool> {
    let text = root.text(path).ok()?;
    rest(&text).map(|rest| rest.starts_with(['Z', 'X']))
}

/// Time that a thread, or the first one of a process, has had a cpu, in nanoseconds (`schedstat`).
fn run_time(root: &Root, path: &str) -> Option<u64> {
    root.text(path).ok()?.split_whitespace().next()?.parse().ok()
}

/// Returns whether no thread of this process has this number any more.
pub fn is_gone(thread: u32) -> bool {
    // SAFETY: signal 0 is sent to nobody; the call takes numbers.
    let found = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread as libc::pid_t, 0) };
    found != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

/// Processor time of a process in all, in nanoseconds: that of its first thread, which is all that a thread of the kernel
/// has.
pub fn kernel_thread_time(root: &Root, process: u32) -> Option<u64> {
    run_time(root, &format!("proc/{process}/schedstat"))
}

fn parse(number: u32, text: &str) -> Option<Task> {
    const USER: usize = 14;
    const SYSTEM: usize = 15;
    const PROCESSOR: usize = 39;
    let cpu = u32::try_from(field(text, PROCESSOR)?).ok()?;
    Some(Task {
        number,
        cpu,
        runs: rest(text)?.starts_with('R'),
        time: field(text, USER)?.saturating_add(field(text, SYSTEM)?),
    })
}

/// The text after the name, which may hold anything: from the third field on.
pub(crate) fn rest(text: &str) -> Option<&str> {
    text.rsplit_once(')').map(|(_, rest)| rest.trim_start())
}

/// A field of `stat`, as proc(5) numbers them, from 3 on.
pub(crate) fn field(text: &str, number: usize) -> Option<u64> {
    rest(text)?.split(' ').nth(number - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "77 (a) b (c) R 1 77 77 0 -1 4194560 100 0 0 0 5 6 0 0 20 0 2 0 4242 1000 50 \
                        18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 9 0 0 0 0 0 0 0 0 0 0 0 0 0";

    fn tree() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/77/stat", STAT);
        write("proc/77/task/77/stat", STAT);
        write("proc/77/task/77/schedstat", "123456789 10 3\n");
        write("proc/77/task/78/stat", &STAT.replace(" R ", " S "));
        write(
            "proc/77/task/77/status",
            "Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n",
        );
        // This task ended between the list and the look.
        write("proc/77/task/79/other", "");
        write("proc/80/stat", &STAT.replace(" R ", " Z "));
        let root = Root::new(folder.path());
        (folder, root)
    }

    #[test]
    fn threads_are_where_they_ran_last() {
        let (_folder, root) = tree();
        let first = Task {
            number: 77,
            cpu: 9,
            runs: true,
            time: 123_456_789,
        };
        let second = Task {
            number: 78,
            cpu: 9,
            runs: false,
            time: 11,
        };
        assert_eq!(of(&root, 77).unwrap(), [first, second]);
        assert_eq!(began(&root, 77).unwrap(), 4242);
        assert!(is_zombie(&root, 80) && !is_zombie(&root, 77) && !is_zombie(&root, 1));
        assert!(of(&root, 81).is_err() && began(&root, 81).is_err());
    }

    #[test]
    fn threads_ask_for_cpus() {
        let (_folder, root) = tree();
        let first = Demand {
            number: 77,
            began: 4242,
            cpu: 9,
            ran: 123_456_789,
            waited: 10,
        };
        let second = Demand {
            number: 78,
            ran: 110_000_000,
            waited: 0,
            ..first
        };
        assert_eq!(demand(&root, 77).unwrap(), [first, second]);
        assert_eq!(thread_began(&root, 77, 78).unwrap(), 4242);
        assert_eq!(thread_mask(&root, 77, 77).unwrap(), [0, 1, 2, 3]);
        assert!(thread_mask(&root, 77, 79).is_err() && thread_began(&root, 77, 79).is_err());
    }

    #[test]
    fn this_thread_is_where_it_is() {
        let root = Root::default();
        let pinned = crate::affinity::pin_here().unwrap();
        let mine = crate::affinity::this_thread();
        let here = of(&root, std::process::id()).unwrap();
        let task = here.iter().find(|task| task.number == mine).unwrap();
        assert_eq!(task.cpu as usize, pinned.cpu());
        assert!(task.runs);
        assert!(began(&root, std::process::id()).unwrap() > 0);
    }

    #[test]
    fn a_thread_that_has_ended_is_gone() {
        let number = std::thread::spawn(|| {
            let here = crate::affinity::this_thread();
            assert!(!is_gone(here));
            here
        });
        let number = number.join().unwrap();
        // A thread is joined a moment before the kernel has forgotten it.
        while !is_gone(number) {
            std::thread::yield_now();
        }
    }
}
