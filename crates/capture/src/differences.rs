//! Differences in a program's behavior under Valgrind, for the notes: threads that spin, refused limits.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The differences that were seen, in all processes.
#[derive(Default)]
pub struct Differences {
    /// Spins, by process and program counter of the loop.
    spins: BTreeMap<(u32, u64), Spins>,
    /// The most file descriptors that were asked for and refused.
    refused: Option<u64>,
}

#[derive(Clone, Copy, Default)]
struct Spins {
    waits: u64,
    turns: u64,
}

/// Descriptors that Valgrind keeps for itself (`VG_N_RESERVED_FDS` of its coregrind/pub_core_libcfile.h).
const RESERVED: u64 = 12;
/// How many loops are named.
const MOST_LOOPS: usize = 4;

impl Differences {
    /// A thread spun for this many turns of Valgrind, in the loop that begins at `pc`.
    pub fn spun(&mut self, turns: u64, process: u32, pc: u64) {
        let spins = self.spins.entry((process, pc)).or_default();
        spins.waits += 1;
        spins.turns = spins.turns.saturating_add(turns);
    }

    pub fn refused(&mut self, descriptors: u64) {
        self.refused = self.refused.max(Some(descriptors));
    }

    /// Notes for the user. `name` gives the name of the code at a program counter.
    pub fn notes(&self, name: impl Fn(u32, u64) -> String) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.spins.is_empty() {
            let mut loops: Vec<_> = self.spins.iter().collect();
            loops.sort_by_key(|(place, spins)| (Reverse(spins.turns), **place));
            let mut names: Vec<String> = Vec::new();
            for ((process, pc), _) in &loops {
                let name = name(*process, *pc);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            let more = match names.len().saturating_sub(MOST_LOOPS) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            names.truncate(MOST_LOOPS);
            let waits: u64 = loops.iter().map(|(_, spins)| spins.waits).sum();
            notes.push(format!(
                "threads spin until another thread writes, in {}{more} ({waits} {}). Under Valgrind one thread runs at a time, \
                 and a thread that spins does so to the end of its turn, up to 100,000 jumps: these references are in the trace, \
                 where processors of their own would make fewer. Have threads sleep while they wait (OpenMP: \
                 OMP_WAIT_POLICY=passive), or do not count these loops",
                names.join(", "),
                if waits == 1 { "time" } else { "times" },
            ));
        }
        if let Some(asked) = self.refused {
            notes.push(format!(
                "the program asked for {asked} file descriptors and did not get them: Valgrind keeps {RESERVED} of those that are \
                 allowed for itself, and grants only just what is left. Allow so many, `ulimit -n {}` before `domicile record`, \
                 or have the program ask for no limit",
                asked.saturating_add(RESERVED),
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_named_once_the_longest_first() {
        let mut differences = Differences::default();
        assert!(differences.notes(|_, _| unreachable!()).is_empty());
        differences.spun(1, 0, 16);
        for pc in [32, 48] {
            differences.spun(5, 1, pc);
        }
        let notes = differences.notes(|process, _| format!("f{process}"));
        assert_eq!(notes.len(), 1);
        assert!(notes[0].contains("in f1, f0 (3 times)"), "{notes:?}");
        let notes = differences.notes(|_, pc| format!("g{pc}"));
        assert!(notes[0].contains("in g32, g48, g16 (3"), "{notes:?}");
        for pc in 100..110 {
            differences.spun(9, 0, pc);
        }
        let notes = differences.notes(|_, pc| format!("g{pc}"));
        assert!(notes[0].contains("g103 and 9 more (13 times)"), "{notes:?}");
    }

    #[test]
    fn the_most_that_was_refused_is_said() {
        let mut differences = Differences::default();
        differences.refused(1024);
        differences.refused(100);
        let notes = differences.notes(|_, _| unreachable!());
        assert!(
            notes[0].contains("1024 file descriptors") && notes[0].contains("ulimit -n 1036`"),
            "{notes:?}"
        );
    }
}
