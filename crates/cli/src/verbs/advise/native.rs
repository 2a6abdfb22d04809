//! The program's time without the recorder, measured after the recording: in one run, or in several if it is short.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use results::Native;
use sys::clock::children_time;

/// A program that takes longer is ended, and its time stays unknown.
pub const MOST: Duration = Duration::from_secs(10);
/// Runs are repeated until the undisturbed ones have used this much cpu time together, or there are this many, or this
/// much time has passed.
const ENOUGH: Duration = Duration::from_millis(100);
const RUNS: usize = 30;
const SOON: Duration = Duration::from_secs(1);
/// At least this many runs are undisturbed, if all runs together take no longer than this: one may be disturbed.
const LEAST: usize = 3;
const LATE: Duration = Duration::from_secs(3);
/// A run counts as disturbed if it takes this many times as long as the fastest.
const DISTURBED: f64 = 1.25;
/// The time between two checks whether it has ended.
const LOOK: Duration = Duration::from_micros(200);

/// The time of a run. `None`: the program needs its input, takes more than `most`, or ends with another `status`.
pub fn measured(command: &[OsString], status: i32, most: Duration) -> Option<Native> {
    if !reads_nothing() {
        return None;
    }
    let begun = Instant::now();
    let mut runs = vec![one(command, status, most)?];
    while wanted(&runs, begun.elapsed(), most) {
        runs.push(one(command, status, most)?);
    }
    Some(mean(&runs))
}

/// Returns true if one more run should follow these, which took this long.
fn wanted(runs: &[Native], passed: Duration, most: Duration) -> bool {
    let quiet = quiet(runs);
    let worked = quiet.iter().map(|run| run.user_ns + run.system_ns).sum();
    let brief = Duration::from_nanos(worked) < ENOUGH && runs.len() < RUNS && passed < SOON;
    let few = quiet.len() < LEAST && runs.len() < RUNS && passed < LATE;
    (brief || few) && passed < most
}

/// The undisturbed runs.
fn quiet(runs: &[Native]) -> Vec<&Native> {
    let fastest = runs.iter().map(|run| run.wall_ns).min().unwrap_or(0);
    let is_quiet = |run: &&Native| run.wall_ns as f64 <= DISTURBED * fastest as f64;
    runs.iter().filter(is_quiet).collect()
}

/// The mean of the undisturbed runs. Linux separates the kernel's time from the program's at ticks, so only all short
/// runs together show the split.
fn mean(runs: &[Native]) -> Native {
    let quiet = quiet(runs);
    let mean = |of: fn(&Native) -> u64| quiet.iter().map(|run| of(run)).sum::<u64>() / quiet.len().max(1) as u64;
    Native {
        runs: quiet.len() as u32,
        wall_ns: mean(|run| run.wall_ns),
        user_ns: mean(|run| run.user_ns),
        system_ns: mean(|run| run.system_ns),
        ..Native::default()
    }
}

/// Returns true if standard input holds nothing for the program: a file or a pipe can be read only once, by the
/// recorded program.
fn reads_nothing() -> bool {
    let input = std::io::stdin();
    input.is_terminal() || std::fs::read_link("/proc/self/fd/0").is_ok_and(|to| to.as_os_str() == "/dev/null")
}

fn one(command: &[OsString], status: i32, most: Duration) -> Option<Native> {
    let (program, arguments) = command.split_first()?;
    let (user, system) = children_time().ok()?;
    let begun = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let ended = ended(&mut child, begun, most)?;
    let wall = begun.elapsed();
    let (now_user, now_system) = children_time().ok()?;
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    (ended.code() == Some(status)).then(|| Native {
        wall_ns: ns(wall),
        user_ns: ns(now_user.saturating_sub(user)),
        system_ns: ns(now_system.saturating_sub(system)),
        ..Native::default()
    })
}

/// How the program ended; `None`: not in time.
fn ended(child: &mut Child, begun: Instant, most: Duration) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if begun.elapsed() < most => std::thread::sleep(LOOK),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(wall_ms: u64, user_ms: u64) -> Native {
        Native {
            wall_ns: wall_ms * 1_000_000,
            user_ns: user_ms * 1_000_000,
            system_ns: 1_000_000,
            ..Native::default()
        }
    }

    #[test]
    fn a_disturbed_run_is_left_out() {
        let it = mean(&[run(90, 90), run(46, 44), run(50, 48)]);
        assert_eq!((it.runs, it.wall_ns, it.user_ns), (2, 48_000_000, 46_000_000));
    }

    #[test]
    fn short_programs_are_run_often_and_long_ones_at_least_three_times() {
        let same =
            |run: Native, runs: usize, passed_ms: u64| wanted(&vec![run; runs], Duration::from_millis(passed_ms), MOST);
        assert!(same(run(5, 4), 19, 95) && !same(run(5, 4), 20, 100));
        assert!(same(run(1, 0), 29, 60) && !same(run(1, 0), 30, 60));
        assert!(same(run(900, 890), 2, 1800) && !same(run(900, 890), 3, 2700));
        assert!(!same(run(4000, 3990), 1, 4000));
        let of = |walls: &[u64]| -> Vec<Native> { walls.iter().map(|wall| run(*wall, 60)).collect() };
        let after = Duration::from_millis(500);
        assert!(wanted(&of(&[61, 99, 99, 99]), after, MOST), "one of them counts");
        assert!(!wanted(&of(&[61, 99, 61, 61]), after, MOST));
    }
}
