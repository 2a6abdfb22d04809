//! Valgrind's messages about a process: instructions that it does not know, the cause of the process's death, and the rest.

/// An instruction that it could not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    pub pc: u64,
    /// Its bytes and some that follow; none for `ud2`, with which programs end themselves.
    pub bytes: Vec<u8>,
}

/// The signal that killed a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    pub signal: i32,
    /// The error, in Valgrind's words.
    pub why: Option<String>,
    /// The instruction.
    pub pc: Option<u64>,
}

/// The log of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    pub pid: u32,
    pub unknown: Vec<Unknown>,
    pub death: Option<Death>,
    /// Lines that are neither, shortened.
    pub lines: Vec<String>,
}

/// Valgrind's message about debug information that is too new for it: `symbols` reads ours.
const OWN_AFFAIR: &str = "unhandled dwarf2 abbrev form code";
/// Lines of the rest that are kept, and instructions.
const MOST: usize = 8;

/// A process that ended itself by this instruction (`__builtin_trap`, Rust's `abort`) behaved as written.
impl Unknown {
    pub fn is_trap(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl Said {
    /// The log of process `pid`.
    pub fn read(pid: u32, text: &str) -> Said {
        let mut said = Said { pid, ..Said::default() };
        // Bytes of the last translated instruction.
        let mut bytes = Vec::new();
        let mut explains = false;
        let mut lines = text.lines().map(message).peekable();
        while let Some(line) = lines.next() {
            let line = line.trim();
            if let Some(list) = line.strip_prefix("vex amd64->IR:") {
                if let Some((_, list)) = list.split_once("instruction bytes:") {
                    bytes = list.split_whitespace().filter_map(byte).collect();
                }
            } else if let Some((_, at)) = line.split_once("Unrecognised instruction at address ") {
                explains = true;
                let bytes = std::mem::take(&mut bytes);
                if let Some(pc) = number(at).filter(|_| said.unknown.len() < MOST) {
                    let unknown = Unknown { pc, bytes };
                    if !said.unknown.contains(&unknown) {
                        said.unknown.push(unknown);
                    }
                }
            } else if explains {
                explains = line != "probably kill your program.";
            } else if let Some(how) = line.strip_prefix("Process terminating with default action of signal ") {
                let why = lines.peek().map(|why| why.trim()).filter(|why| address(why).is_none());
                let why = why.map(str::to_string).filter(|why| !why.is_empty());
                said.death = Some(Death {
                    signal: how
                        .split(' ')
                        .next()
                        .and_then(|signal| signal.parse().ok())
                        .unwrap_or(0),
                    why,
                    pc: lines.find_map(address),
                });
                // The stack follows, and general advice.
                break;
            } else if !line.is_empty() && !line.contains(OWN_AFFAIR) && said.lines.len() < MOST {
                said.lines.push(line.to_string());
            }
        }
        said
    }
}

/// `==1234== message`, without what comes before the message.
fn message(line: &str) -> &str {
    line.trim_start_matches(|c: char| "=-*".contains(c) || c.is_ascii_digit())
}

/// `0x6F`
fn byte(text: &str) -> Option<u8> {
    u8::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// The number that a text begins with: `0x10916b.`
fn number(text: &str) -> Option<u64> {
    let digits = text.trim().strip_prefix("0x")?;
    let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
    u64::from_str_radix(&digits[..end], 16).ok()
}

/// From a line of a call stack: `   at 0x10916B: main (wide.c:11)`.
fn address(line: &str) -> Option<u64> {
    number(line.trim().strip_prefix("at ")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ILLEGAL: &str = "\
vex amd64->IR: unhandled instruction bytes: 0x62 0xF1 0x7C 0x48 0x57 0xC0 0x31 0xFF 0xB8 0x3C
vex amd64->IR:   REX=0 REX.W=0 REX.R=0 REX.X=0 REX.B=0
==8977== valgrind: Unrecognised instruction at address 0x40100d.
==8977==    at 0x40100D: ??? (in /tmp/evex)
==8977== Your program just tried to execute an instruction that Valgrind
==8977== did not recognise.  There are two possible reasons for this.
==8977== Either way, Valgrind will now raise a SIGILL signal which will
==8977== probably kill your program.
==8977== Warning: set address range perms
==8977== 
==8977== Process terminating with default action of signal 4 (SIGILL)
==8977==  Illegal opcode at address 0x40100D
==8977==    at 0x40100D: ??? (in /tmp/evex)
==8977==    by 0x400FFF: ??? (in /tmp/evex)
";

    #[test]
    fn an_unknown_instruction_and_a_death_are_told_from_the_rest() {
        let said = Said::read(8977, ILLEGAL);
        let bytes = vec![0x62, 0xf1, 0x7c, 0x48, 0x57, 0xc0, 0x31, 0xff, 0xb8, 0x3c];
        assert_eq!(said.unknown, [Unknown { pc: 0x40_100d, bytes }]);
        let death = said.death.unwrap();
        assert_eq!((death.signal, death.pc), (4, Some(0x40_100d)));
        assert_eq!(death.why.unwrap(), "Illegal opcode at address 0x40100D");
        assert_eq!(said.lines, ["Warning: set address range perms"]);
    }

    /// Valgrind lists no bytes for it.
    #[test]
    fn a_trap_is_the_programs_own_doing() {
        let from = ILLEGAL.find("==8977== valgrind").unwrap();
        let said = Said::read(1, &ILLEGAL[from..]);
        assert!(said.unknown.iter().all(Unknown::is_trap) && said.unknown.len() == 1);
    }

    #[test]
    fn logs_without_either_and_cut_ones_are_lines() {
        assert_eq!(
            Said::read(3, "==3== a\n\n==3== unhandled dwarf2 abbrev form code 0x25\n").lines,
            ["a"]
        );
        let cut = "==3== Process terminating with default action of signal 11 (SIGSEGV)\n";
        let death = Said::read(3, cut).death.unwrap();
        assert_eq!((death.signal, death.pc, death.why), (11, None, None));
        let stack = format!("{cut}==3==    at 0x401010: main (x.c:5)\n");
        let death = Said::read(3, &stack).death.unwrap();
        assert_eq!((death.pc, death.why), (Some(0x40_1010), None));
    }
}
