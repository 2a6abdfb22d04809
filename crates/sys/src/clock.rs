//! The time that threads and children have run, which does not grow while others have the cpu, and the time at which they begin.

use std::io;
use std::os::unix::thread::JoinHandleExt;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The processor time of the calling thread since it began (`CLOCK_THREAD_CPUTIME_ID`).
///
/// Ensures: never falls within one thread.
pub fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // Neither is negative for a clock that counts from a thread's beginning.
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// The processor time of a process, of all its threads since it began, in programs and in the kernel.
///
/// Ensures: never falls while the process is not waited for.
///
/// Errors: there is no such process (`ESRCH`).
pub fn process_time(process: u32) -> io::Result<Duration> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: there is room for one.
    match unsafe { libc::clock_getcpuclockid(process.cast_signed(), &raw mut clock) } {
        0 => {}
        error => return Err(io::Error::from_raw_os_error(error)),
    }
    time_of(clock)
}

/// The processor time of a thread of this process since it began.
///
/// Ensures: never falls.
///
/// Errors: the thread has ended (`ESRCH`).
pub fn time_of_thread<T>(thread: &JoinHandle<T>) -> io::Result<Duration> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: there is room for one. The handle is there, so the thread was neither joined nor detached, and its number is valid.
    match unsafe { libc::pthread_getcpuclockid(thread.as_pthread_t(), &raw mut clock) } {
        0 => time_of(clock),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// The time between two ticks of the kernel, at which it charges a process's time to the program or to the kernel: the
/// resolution of `CLOCK_MONOTONIC_COARSE`.
pub fn tick() -> Duration {
    let time = rustix::time::clock_getres(ClockId::MonotonicCoarse);
    // Neither is negative.
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Errors: the clock's process or thread has ended (`ESRCH`).
fn time_of(clock: libc::clockid_t) -> io::Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: there is room for one.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Err(match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::EINVAL) => io::Error::from_raw_os_error(libc::ESRCH),
            error => error,
        });
    }
    // Neither is negative.
    Ok(Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs() as u32,
    ))
}

/// Clock ticks since the machine's start, as `/proc/PID/stat` counts the time at which a thread began (`CLOCK_BOOTTIME`).
///
/// Ensures: a thread or process that begins after this has a time that is not before it.
pub fn ticks() -> u64 {
    /// Clock ticks of `stat` are hundredths of a second on every architecture that has caches to pair.
    const IN_A_SECOND: u64 = 100;
    let time = clock_gettime(ClockId::Boottime);
    let (seconds, nanos) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
    seconds * IN_A_SECOND + nanos * IN_A_SECOND / 1_000_000_000
}

/// The processor time of all children that have ended and were waited for, and of theirs: in programs, and in the kernel
/// (`getrusage`, `RUSAGE_CHILDREN`).
pub fn children_time() -> io::Result<(Duration, Duration)> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: there is room for one.
    let done = unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was filled in.
    let usage = unsafe { usage.assume_init() };
    // Neither is negative.
    let duration = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    Ok((duration(usage.ru_utime), duration(usage.ru_stime)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_with_work() {
        let before = thread_time();
        let mut sum = 0u64;
        for i in 0..2_000_000u64 {
            sum = std::hint::black_box(sum.wrapping_add(i));
        }
        assert!(thread_time() > before);
    }

    #[test]
    fn a_process_has_time_until_it_has_ended() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let before = process_time(child.id()).unwrap();
        while process_time(child.id()).unwrap() <= before {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let error = process_time(child.id()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH), "{error}");
    }

    #[test]
    fn a_process_begins_between_the_ticks_around_it() {
        let before = ticks();
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let began = crate::tasks::began(&crate::Root::default(), child.id());
        let after = ticks();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!((before..=after).contains(&began.unwrap()));
    }

    #[test]
    fn children_count_once_they_have_ended() {
        let sum = || {
            let (user, system) = children_time().unwrap();
            user + system
        };
        let before = sum();
        let status = std::process::Command::new("sh")
            .args(["-c", "i=0; while [ $i -lt 9999 ]; do i=$((i+1)); done"])
            .status();
        assert!(status.unwrap().success());
        assert!(sum() > before);
    }
}
