//! The program's time without the recorder, measured after it was recorded: in one run, or in several where that is short.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use results::Native;
use sys::clock::children_time;

/// A program that takes longer is ended, and its time is not known.
pub const MOST: Duration = Duration::from_secs(10);
/// Several runs go on until they have worked so long together, or there are so many, or the clock has gone on so far.
const ENOUGH: Duration = Duration::from_millis(100);
const RUNS: u32 = 12;
const SOON: Duration = Duration::from_secs(1);
/// Between two looks whether it has ended.
const LOOK: Duration = Duration::from_micros(200);

/// What a run takes. `None`: the program needs its input, takes more than `most`, or does not end in good order.
pub fn measured(command: &[OsString], most: Duration) -> Option<Native> {
    if !reads_nothing() {
        return None;
    }
    let begun = Instant::now();
    let mut sum = one(command, most)?;
    let enough = u64::try_from(ENOUGH.as_nanos()).unwrap_or(u64::MAX);
    while sum.user_ns + sum.system_ns < enough && sum.runs < RUNS && begun.elapsed() < SOON.min(most) {
        let next = one(command, most)?;
        sum = Native {
            runs: sum.runs + 1,
            wall_ns: sum.wall_ns + next.wall_ns,
            user_ns: sum.user_ns + next.user_ns,
            system_ns: sum.system_ns + next.system_ns,
            ..sum
        };
    }
    let mean = |ns: u64| ns / u64::from(sum.runs);
    Some(Native {
        wall_ns: mean(sum.wall_ns),
        user_ns: mean(sum.user_ns),
        system_ns: mean(sum.system_ns),
        ..sum
    })
}

/// What comes from a file or a pipe is there once, and the program that is recorded is to read it.
fn reads_nothing() -> bool {
    let input = std::io::stdin();
    input.is_terminal() || std::fs::read_link("/proc/self/fd/0").is_ok_and(|to| to.as_os_str() == "/dev/null")
}

fn one(command: &[OsString], most: Duration) -> Option<Native> {
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
    let success = ended(&mut child, begun, most)?;
    let wall = begun.elapsed();
    let (now_user, now_system) = children_time().ok()?;
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    success.then(|| Native {
        wall_ns: ns(wall),
        user_ns: ns(now_user.saturating_sub(user)),
        system_ns: ns(now_system.saturating_sub(system)),
        ..Native::default()
    })
}

/// Whether it ended in good order; `None`: not in time.
fn ended(child: &mut Child, begun: Instant, most: Duration) -> Option<bool> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) if begun.elapsed() < most => std::thread::sleep(LOOK),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}
