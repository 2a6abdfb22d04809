//! Recording that begins at a function: until a process first enters it, what the process does is not recorded.
//!
//! The gate stands between the tool and the listener. A process that has not reached the function is paused, as a
//! program can request itself, and only words other than its references pass. The function is found by name where files
//! are mapped, and the superblock that begins there lets the process in. If the `main` of a program is unknown, its
//! entry takes that place; if even that is unknown, the process is let in at once. Both are noted.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::elf::Elf;
use crate::process_tree::{Connection, Listener};
use crate::symbols;
use crate::wire::{self, Hello, record};

/// The switch of a recording (`record::SWITCH`), as the tool would send it.
fn switch(on: bool) -> [u64; 2] {
    [wire::RECORD << 60 | u64::from(record::SWITCH) << 48 | 1, u64::from(on)]
}

/// Lets processes in when they reach the function.
pub struct Gate {
    /// `None`: all are let in at once.
    function: Option<String>,
    waiting: HashMap<Connection, Process>,
    /// The connection of each process, for its children.
    speaks: HashMap<u32, Connection>,
    /// The files that are known, and the addresses of the function in each, in the file's own addresses.
    files: HashMap<String, Option<(Elf, Vec<u64>)>>,
    notes: Vec<String>,
    kept: Vec<u64>,
    entered: bool,
}

/// A process that waits at the gate.
#[derive(Clone, Default)]
struct Process {
    /// It has not said anything yet.
    fresh: bool,
    /// Forked: its first words do not name its program.
    forked: bool,
    /// True if the program is to be recorded once it is let in.
    on: bool,
    entrances: HashSet<u64>,
    /// Its program was seen. Files of the dynamic linker may come before it.
    begun: bool,
    /// It has nothing to wait for.
    at_once: bool,
    /// Superblocks that begin at one.
    superblocks: HashSet<u32>,
}

impl Gate {
    pub fn new(function: Option<&str>) -> Gate {
        Gate {
            function: function.map(str::to_string),
            waiting: HashMap::new(),
            speaks: HashMap::new(),
            files: HashMap::new(),
            notes: Vec::new(),
            kept: Vec::new(),
            entered: function.is_none(),
        }
    }

    /// True if any process was let in.
    pub fn entered(&self) -> bool {
        self.entered
    }

    /// True if recording begins at the program's start, which happens soon.
    pub fn is_at_the_beginning(&self) -> bool {
        self.function.as_deref().is_none_or(|function| function == MAIN)
    }

    /// Notes on recordings that did not begin as requested.
    pub fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    pub fn open(&mut self, tree: &mut dyn Listener, connection: Connection, hello: Hello) {
        if self.function.is_some() {
            let parent = self.speaks.get(&hello.parent).filter(|_| hello.forked);
            let process = match parent.map(|parent| self.waiting.get(parent)) {
                // Its parent was let in, so the child is too.
                Some(None) => None,
                Some(Some(parent)) => Some(Process {
                    fresh: true,
                    forked: true,
                    ..parent.clone()
                }),
                None => Some(Process {
                    fresh: true,
                    forked: hello.forked,
                    on: true,
                    ..Process::default()
                }),
            };
            self.speaks.insert(hello.pid, connection);
            if let Some(process) = process {
                self.waiting.insert(connection, process);
            }
        }
        tree.open(connection, hello);
    }

    pub fn close(&mut self, tree: &mut dyn Listener, connection: Connection) {
        // A process that waited stays known as one: its children may not have spoken yet.
        tree.close(connection);
    }

    pub fn words(&mut self, tree: &mut dyn Listener, connection: Connection, words: &[u64]) {
        let Some(mut process) = self.waiting.remove(&connection) else {
            return tree.words(connection, words);
        };
        let mut kept = std::mem::take(&mut self.kept);
        kept.clear();
        let mut at = 0;
        if process.fresh {
            // The kind of program comes first.
            if !process.forked
                && let Some((_, payload)) = wire::payload(words, 0)
            {
                at = 1 + payload.len();
                kept.extend_from_slice(&words[..at]);
            }
            kept.extend(switch(false));
            process.fresh = false;
        }
        let mut inside = false;
        while let Some(&word) = words.get(at) {
            let begin = at;
            at += 1;
            match wire::kind(word) {
                wire::RECORD => {
                    // The listener reports words that make no sense.
                    let Some((kind, payload)) = wire::payload(words, begin) else {
                        at = begin;
                        break;
                    };
                    at += payload.len();
                    if kind == record::SWITCH {
                        process.on = payload.first() != Some(&0);
                        continue;
                    }
                    self.look(&mut process, kind, payload);
                    kept.extend_from_slice(&words[begin..at]);
                    if process.at_once {
                        inside = true;
                        break;
                    }
                }
                wire::BLOCK if process.superblocks.contains(&(word as u32)) => {
                    (inside, at) = (true, begin);
                    break;
                }
                _ => {}
            }
        }
        if inside {
            self.entered = true;
            if process.on {
                kept.extend(switch(true));
            }
        } else {
            self.waiting.insert(connection, process);
        }
        kept.extend_from_slice(&words[at.min(words.len())..]);
        tree.words(connection, &kept);
        self.kept = kept;
    }

    /// Reads the words of a waiting process about its files and superblocks.
    fn look(&mut self, process: &mut Process, kind: u32, payload: &[u64]) {
        match (kind, payload) {
            // Of several files that have the function, the first, the program, counts.
            (record::MAP, [start, _, how, offset, ..])
                if how >> 8 == wire::map::FILE && how & EXECUTABLE != 0 && process.entrances.is_empty() =>
            {
                let path = String::from_utf8_lossy(&wire::text(payload, 5)).into_owned();
                if !symbols::is_ours(&path) {
                    self.look_into(process, path, *start, *offset);
                }
            }
            (record::BLOCK, [number, _, first, ..]) if process.entrances.contains(&(first & PC)) => {
                process.superblocks.insert(*number as u32);
            }
            _ => {}
        }
    }

    /// Looks for the function in a file with code.
    fn look_into(&mut self, process: &mut Process, path: String, start: u64, offset: u64) {
        let Some(function) = self.function.clone() else { return };
        let file = self.files.entry(path.clone()).or_insert_with_key(|path| {
            let elf = Elf::open(Path::new(path))?;
            let entrances = elf.entrances(&function);
            Some((elf, entrances))
        });
        // Other functions may be in a library; `main` is only in the program.
        let first = !std::mem::replace(&mut process.begun, true) && function == MAIN;
        let Some((elf, entrances)) = file else {
            if first {
                process.at_once = true;
                self.note(format!(
                    "{path} cannot be read, so that its `main` is not known: it was recorded from its start"
                ));
            }
            return;
        };
        process.begun = elf.entry.is_program;
        let bias = elf.bias_of_code(start, offset);
        let mut entrances = entrances.clone();
        if entrances.is_empty()
            && first
            && let Some(entry) = elf.entry.start
        {
            entrances.push(entry);
            self.note(format!(
                "no symbol of {path} says where its `main` is, and neither does the code at its entry: it was recorded from \
                 its entry on, where the run-time of its language begins"
            ));
        }
        process.entrances = entrances.iter().map(|entrance| entrance.wrapping_add(bias)).collect();
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// The function at which programs begin, in C's words.
const MAIN: &str = "main";
/// Of a mapping's protection.
const EXECUTABLE: u64 = 4;
/// Of an instruction's word, its program counter.
const PC: u64 = (1 << 56) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Heard(Vec<u64>);

    impl Listener for Heard {
        fn open(&mut self, _: Connection, _: Hello) {}
        fn words(&mut self, _: Connection, words: &[u64]) {
            self.0.extend_from_slice(words);
        }
        fn close(&mut self, _: Connection) {}
        fn progress(&self) -> (u64, u64) {
            (0, 0)
        }
        fn failed(&self) -> bool {
            false
        }
    }

    const HELLO: Hello = Hello {
        pid: 7,
        parent: 1,
        forked: false,
        parent_slots: 0,
    };

    fn said(kind: u32, payload: &[u64]) -> Vec<u64> {
        let head = wire::RECORD << 60 | u64::from(kind) << 48 | payload.len() as u64;
        [&[head], payload].concat()
    }

    fn run(number: u64, addresses: &[u64]) -> Vec<u64> {
        [&[wire::BLOCK << 60 | number], addresses].concat()
    }

    /// This test's own code, mapped as the kernel would.
    fn mapped(function: &str) -> (Vec<u64>, u64) {
        let me = std::env::current_exe().unwrap();
        let elf = Elf::open(&me).unwrap();
        let own = elf.entrances(function)[0];
        let path = me.display().to_string();
        let mut payload = vec![0x40_0000, 1 << 30, 5 | wire::map::FILE << 8, 0, 0, path.len() as u64];
        payload.extend(path.as_bytes().chunks(8).map(|bytes| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        }));
        let entrance = own.wrapping_add(elf.bias_of_code(0x40_0000, 0));
        (said(record::MAP, &payload), entrance)
    }

    #[test]
    fn references_before_the_function_are_left_out_and_all_else_is_not() {
        let mut gate = Gate::new(Some("main"));
        let mut heard = Heard::default();
        let program = said(record::PROGRAM, &[2, 0x61]);
        let (map, entrance) = mapped("main");
        let block = |number, pc| {
            said(
                record::BLOCK,
                &[number, 1 | 1 << 16 | 1 << 32, pc | 4 << 56, 8 << 16, 1 | 1 << 16],
            )
        };
        let alloc = said(record::ALLOC, &[64, 64, 0]);
        gate.open(&mut heard, 0, HELLO);
        gate.words(
            &mut heard,
            0,
            &[&program[..], &map, &block(0, 0x1000), &run(0, &[64])].concat(),
        );
        assert!(!gate.entered());
        gate.words(
            &mut heard,
            0,
            &[&alloc[..], &block(1, entrance), &run(0, &[65])].concat(),
        );
        gate.words(
            &mut heard,
            0,
            &[&run(0, &[66])[..], &run(1, &[67]), &run(0, &[68])].concat(),
        );
        assert!(gate.entered());
        gate.words(&mut heard, 0, &run(0, &[69]));
        let expected = [
            &program[..],
            &switch(false),
            &map,
            &block(0, 0x1000),
            &alloc,
            &block(1, entrance),
            &switch(true),
            &run(1, &[67]),
            &run(0, &[68]),
            &run(0, &[69]),
        ];
        assert_eq!(heard.0, expected.concat());
    }

    #[test]
    fn what_the_program_itself_switched_holds_when_it_is_let_in() {
        let mut gate = Gate::new(Some("main"));
        let mut heard = Heard::default();
        let (map, entrance) = mapped("main");
        let block = said(record::BLOCK, &[0, 1 | 1 << 32, entrance | 4 << 56, 1 << 16]);
        let program = said(record::PROGRAM, &[2, 0x61]);
        gate.open(&mut heard, 0, HELLO);
        let words = [&program[..], &map, &switch(false), &block, &run(0, &[])].concat();
        gate.words(&mut heard, 0, &words);
        assert_eq!(
            heard.0,
            [&program[..], &switch(false), &map, &block, &run(0, &[])].concat()
        );
    }

    #[test]
    fn without_a_function_all_is_let_through_and_a_forked_child_is_where_its_parent_is() {
        let mut heard = Heard::default();
        let mut gate = Gate::new(None);
        gate.open(&mut heard, 0, HELLO);
        gate.words(&mut heard, 0, &run(3, &[1, 2]));
        assert_eq!(heard.0, run(3, &[1, 2]));

        let mut heard = Heard::default();
        let mut gate = Gate::new(Some("main"));
        gate.open(&mut heard, 0, HELLO);
        gate.words(&mut heard, 0, &said(record::PROGRAM, &[2, 0x61]));
        let child = Hello {
            pid: 8,
            parent: 7,
            forked: true,
            parent_slots: 0,
        };
        gate.open(&mut heard, 1, child);
        heard.0.clear();
        gate.words(&mut heard, 1, &run(3, &[1, 2]));
        assert_eq!(heard.0, switch(false));
    }
}
