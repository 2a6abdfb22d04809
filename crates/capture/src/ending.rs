//! The end of the recorded run, in words: a reader of the trace, or of advice on it, needs to know it first.

use crate::instruction::{Extension, extension};
use crate::options::Exit;
use crate::process_tree::ProcessTree;
use crate::said::{Death, Said, Unknown};

/// Faults of the program itself. Other signals were sent to the process.
const FAULTS: [i32; 7] = [ILL, 5, 6, 7, 8, 11, 31];
/// SIGILL, of Linux.
const ILL: i32 = 4;

/// A signal as people call it: `signal 11 (SIGSEGV)`.
pub fn signal(number: i32) -> String {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return format!("signal {number}"),
    };
    format!("signal {number} ({name})")
}

/// The known facts about the end of a run.
pub struct Ending<'a> {
    pub exit: Exit,
    /// The signal that asked for it, if the program then did not end normally.
    pub interrupted: Option<i32>,
    /// The recorder ended the program, as requested.
    pub ended_by_us: bool,
    /// The number of the program's process.
    pub program: u32,
    pub said: &'a [Said],
    /// The name of a process, and the place in the source of one of its program counters.
    pub name: &'a dyn Fn(u32) -> String,
    pub place: &'a dyn Fn(u32, u64) -> String,
}

impl Ending<'_> {
    /// Why the run does not count as whole, in a clause; `None` if it ended normally.
    pub fn broke(&self) -> Option<String> {
        if self.ended_by_us {
            return None;
        }
        if let Some(number) = self.interrupted {
            return Some(format!("the program was interrupted ({})", signal(number)));
        }
        let child = self.said.iter().find(|said| said.pid != self.program && is_fault(said));
        let child = child.and_then(|said| self.death(said));
        match (self.exit, child) {
            (Exit::Signal(number), _) => {
                let own = self.said.iter().find(|said| said.pid == self.program);
                let told = own.filter(|said| said.death.as_ref().is_some_and(|death| death.signal == number));
                let told = told.and_then(|said| self.death(said));
                Some(told.unwrap_or_else(|| format!("the program was killed by {}", signal(number))))
            }
            // A program defines the meaning of its status: `grep` and `diff` end with 1 normally.
            (Exit::Code(0), child) => child,
            (Exit::Code(_), None) => None,
            (Exit::Code(code), Some(child)) => Some(format!("{}; {child}", ended_with(code))),
        }
    }

    /// How a process was killed.
    fn death(&self, said: &Said) -> Option<String> {
        let death = said.death.as_ref()?;
        let who = match said.pid == self.program {
            true => "the program".to_string(),
            false => format!("its process {} ({})", (self.name)(said.pid), said.pid),
        };
        if let Some(unknown) = said.unknown.iter().find(|unknown| killed(death, unknown)) {
            return Some(format!("{who} ended at {}", self.unknown(said.pid, unknown)));
        }
        let place = death
            .pc
            .map_or(String::new(), |pc| format!(", at {}", (self.place)(said.pid, pc)));
        let why = match &death.why {
            Some(why) if FAULTS.contains(&death.signal) && death.signal != ILL => format!(": {}", lowered(why)),
            _ => String::new(),
        };
        Some(format!("{who} was killed by {}{place}{why}", signal(death.signal)))
    }

    /// Instructions that Valgrind did not know, and that did not end the program.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        self.said.iter().flat_map(move |said| {
            let survived = |unknown: &&Unknown| said.death.as_ref().is_none_or(|death| !killed(death, unknown));
            let unknown = said
                .unknown
                .iter()
                .filter(|unknown| !unknown.is_trap())
                .filter(survived);
            unknown.map(move |unknown| format!("{} came to {}", (self.name)(said.pid), self.unknown(said.pid, unknown)))
        })
    }

    fn unknown(&self, pid: u32, unknown: &Unknown) -> String {
        let place = (self.place)(pid, unknown.pc);
        let Extension { name, remedy } = extension(&unknown.bytes);
        match name {
            "" => {
                let bytes: Vec<String> = unknown.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                format!(
                    "an instruction that Valgrind does not know, at {place} (bytes {}): {remedy}",
                    bytes.join(" ")
                )
            }
            _ => format!("an instruction of {name}, which Valgrind does not know, at {place}: {remedy}"),
        }
    }
}

/// Instructions that Valgrind mentioned, each with its process.
pub fn points(tree: &ProcessTree, said: &Said) -> Vec<(u32, u64)> {
    let Some(process) = tree.newest(said.pid) else {
        return Vec::new();
    };
    let died = said.death.iter().filter_map(|death| death.pc);
    let all = said.unknown.iter().map(|unknown| unknown.pc).chain(died);
    all.map(|pc| (process, pc)).collect()
}

/// A clause on a program that ended by itself, with its status.
pub fn ended_with(code: i32) -> String {
    format!("{ENDED_WITH}{code}")
}

/// The beginning of a clause about a status.
pub const ENDED_WITH: &str = "the program ended with exit status ";

/// The last part of a program's path.
pub fn named(program: &str) -> String {
    program.rsplit('/').next().unwrap_or(program).to_string()
}

/// True if an instruction that Valgrind does not know killed a process.
fn killed(death: &Death, unknown: &Unknown) -> bool {
    death.signal == ILL && death.pc == Some(unknown.pc) && !unknown.is_trap()
}

fn is_fault(said: &Said) -> bool {
    said.death.as_ref().is_some_and(|death| FAULTS.contains(&death.signal))
}

/// In the middle of a sentence.
fn lowered(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn died(pid: u32, signal: i32, bytes: Option<&[u8]>) -> Said {
        let unknown = bytes.map(|bytes| Unknown {
            pc: 0x40,
            bytes: bytes.to_vec(),
        });
        Said {
            pid,
            unknown: unknown.into_iter().collect(),
            death: Some(Death {
                signal,
                why: Some("Access not within mapped region at address 0x0".to_string()),
                pc: Some(0x40),
            }),
            lines: Vec::new(),
        }
    }

    fn with<T>(exit: Exit, said: &[Said], look: impl FnOnce(&Ending<'_>) -> T) -> T {
        look(&Ending {
            exit,
            interrupted: None,
            ended_by_us: false,
            program: 7,
            said,
            name: &|_| "worker".to_string(),
            place: &|_, _| "main (wide.c:11)".to_string(),
        })
    }

    fn broke(exit: Exit, said: &[Said]) -> Option<String> {
        with(exit, said, |ending| ending.broke())
    }

    #[test]
    fn a_run_in_good_order_says_nothing() {
        assert_eq!(broke(Exit::Code(0), &[]), None);
        assert_eq!(broke(Exit::Code(1), &[]), None);
        // A server's children may be sent signals.
        assert_eq!(broke(Exit::Code(0), &[died(8, 15, None)]), None);
        let ended = with(Exit::Signal(15), &[died(7, 15, None)], |ending| {
            let ended_by_us = true;
            Ending { ended_by_us, ..*ending }.broke()
        });
        assert_eq!(ended, None);
    }

    #[test]
    fn faults_are_told_with_their_line() {
        assert_eq!(
            broke(Exit::Signal(11), &[died(7, 11, None)]).unwrap(),
            "the program was killed by signal 11 (SIGSEGV), at main (wide.c:11): access not within mapped region at address 0x0"
        );
        assert_eq!(
            broke(Exit::Signal(9), &[]).unwrap(),
            "the program was killed by signal 9 (SIGKILL)"
        );
        let shell = broke(Exit::Code(139), &[died(8, 11, None)]).unwrap();
        assert!(
            shell.starts_with("the program ended with exit status 139; its process worker (8) was killed by signal 11")
        );
        assert!(
            broke(Exit::Code(0), &[died(8, 11, None)])
                .unwrap()
                .starts_with("its process worker (8) was killed")
        );
    }

    #[test]
    fn an_instruction_that_valgrind_does_not_know_is_named_with_its_line_and_what_to_do() {
        let evex = [died(7, 4, Some(&[0x62, 0xf1, 0x7c, 0x48]))];
        let text = broke(Exit::Signal(4), &evex).unwrap();
        assert!(
            text.starts_with(
                "the program ended at an instruction of AVX-512, which Valgrind does not know, at main (wide.c:11)"
            ),
            "{text}"
        );
        assert!(text.contains("-march=x86-64-v3") && text.contains("cpuid"), "{text}");
        let odd = broke(Exit::Signal(4), &[died(7, 4, Some(&[0xff, 0xff]))]).unwrap();
        assert!(odd.contains("bytes ff ff"), "{odd}");
        // A program that ends itself shows no lack of Valgrind's.
        let trap = broke(Exit::Signal(4), &[died(7, 4, Some(&[]))]).unwrap();
        assert_eq!(trap, "the program was killed by signal 4 (SIGILL), at main (wide.c:11)");
        // An unknown instruction that did not end the program is noted.
        let mut survived = evex;
        survived[0].death = None;
        let notes = with(Exit::Code(0), &survived, |ending| ending.notes().collect::<Vec<_>>());
        assert!(
            notes[0].starts_with("worker came to an instruction of AVX-512"),
            "{notes:?}"
        );
        assert_eq!(broke(Exit::Code(0), &survived), None);
    }
}
