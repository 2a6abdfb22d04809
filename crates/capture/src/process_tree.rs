//! The tree of processes: they fork, execute other programs, end and are waited for.

use std::collections::{HashMap, VecDeque};

use trace::{Event, Process, Thread, ThreadId};

use crate::address_space::{AddressSpace, Commons, Phase, Wish};
pub use crate::connection::Connection;
use crate::output::Output;
use crate::warmth::Touched;
use crate::wire::{self, Hello, record};

/// Ended address spaces that are kept in case a child has not sent anything yet.
const REMEMBERED: usize = 64;

/// Receives words from the recorder, in an order in which they make sense: a child's after those of its parent
/// before the fork, a wait after everything that the child did.
pub trait Listener {
    fn open(&mut self, connection: Connection, hello: Hello);
    fn words(&mut self, connection: Connection, words: &[u64]);
    fn close(&mut self, connection: Connection);
    /// References that the program has made, and bytes written.
    fn progress(&self) -> (u64, u64);
    /// True if nothing can be written any more, so listening is useless.
    fn failed(&self) -> bool;
}

/// The newest process with a process id.
#[derive(Clone, Copy)]
struct Known {
    process: u32,
    main: ThreadId,
    /// True if the fork that made it is in its parent's stream.
    spawned: bool,
    /// True if the process itself has spoken.
    heard: bool,
}

/// The trace, made from the messages of the tool's processes.
pub struct ProcessTree {
    pub out: Output,
    pub commons: Commons,
    spaces: HashMap<Connection, AddressSpace>,
    /// Connections of programs that have not sent their names yet.
    unnamed: HashMap<Connection, Hello>,
    known: HashMap<u32, Known>,
    /// Programs of processes, for their children.
    programs: HashMap<u32, (String, Vec<String>)>,
    ended: VecDeque<AddressSpace>,
    /// Children that have not sent anything yet, by pid, in the state of their making, since their parents have
    /// continued.
    made: HashMap<u32, AddressSpace>,
    /// The newest process of each process id, including ended ones.
    newest: HashMap<u32, u32>,
    /// Processes that announced an execve, by pid: their main thread.
    replaced: HashMap<u32, ThreadId>,
}

impl ProcessTree {
    pub fn new(out: Output) -> ProcessTree {
        ProcessTree {
            out,
            commons: Commons::default(),
            spaces: HashMap::new(),
            unnamed: HashMap::new(),
            known: HashMap::new(),
            programs: HashMap::new(),
            ended: VecDeque::new(),
            made: HashMap::new(),
            newest: HashMap::new(),
            replaced: HashMap::new(),
        }
    }

    fn note(&mut self, note: String) {
        if self.commons.notes.len() < 100 && !self.commons.notes.contains(&note) {
            self.commons.notes.push(note);
        }
    }

    /// A window begins: caches should hold the lines that live threads touched last. Lines of other threads go to the
    /// first thread of their process.
    pub fn warm_up(&mut self, touched: &[Touched]) {
        let mut found = HashMap::new();
        let mut refs = Vec::new();
        for line in touched {
            let thread = *found.entry((line.connection, line.tid)).or_insert_with(|| {
                let space = self.spaces.get(&line.connection)?;
                let runner = space.runners.get(line.tid as usize).and_then(Option::as_ref);
                let runner = runner.filter(|runner| !runner.ended).map(|runner| runner.id);
                runner.or_else(|| space.live().next())
            });
            refs.extend(thread.map(|thread| (thread, line.address, line.written)));
        }
        self.out.warm_up(&refs);
    }

    /// The last process that had this number.
    pub fn newest(&self, pid: u32) -> Option<u32> {
        self.newest.get(&pid).copied()
    }

    /// The program of a process, by the name under which it was started.
    pub fn program(&self, process: u32) -> &str {
        self.programs.get(&process).map_or("", |(program, _)| program)
    }

    /// All processes, and their programs likewise.
    pub fn programs(&self) -> impl Iterator<Item = (u32, &str)> {
        self.programs
            .iter()
            .map(|(process, (program, _))| (*process, program.as_str()))
    }

    /// A process and its first thread, in the tables.
    fn enter(&mut self, pid: u32, parent: Option<u32>, program: (String, Vec<String>)) -> (u32, ThreadId) {
        let (name, arguments) = program.clone();
        let process = self.out.process(Process {
            pid,
            parent,
            program: name,
            arguments,
        });
        let main = self.out.thread(Thread {
            process,
            number: u64::from(pid),
            name: String::new(),
            stack: None,
        });
        self.programs.insert(process, program);
        self.newest.insert(pid, process);
        (process, main)
    }

    /// A program has sent its name: `text` has its path and arguments, each ended by NUL.
    fn begin(&mut self, connection: Connection, hello: Hello, text: &[u8]) {
        let mut parts = text.split(|b| *b == 0).map(|p| String::from_utf8_lossy(p).into_owned());
        let name = parts.next().unwrap_or_default();
        let mut arguments: Vec<String> = parts.collect();
        arguments.pop();
        let before = self.replaced.remove(&hello.pid);
        let earlier = self.known.get(&hello.pid).map(|k| k.process);
        let parent = if before.is_some() {
            earlier
        } else {
            self.known.get(&hello.parent).map(|k| k.process)
        };
        let (process, main) = self.enter(hello.pid, parent, (name, arguments));
        if let Some(before) = before {
            // execve: the new program continues where the old one ends.
            self.out.event(before, Event::Spawn { child: main });
            self.out.exit(before);
        }
        self.known.insert(
            hello.pid,
            Known {
                process,
                main,
                spawned: true,
                heard: true,
            },
        );
        self.spaces
            .insert(connection, AddressSpace::new(process, hello.pid, main));
    }

    fn fork(&mut self, connection: Connection, hello: Hello) {
        let (pid, parent_pid) = (hello.pid, hello.parent);
        if let Some(made) = self.made.remove(&pid) {
            if let Some(known) = self.known.get_mut(&pid) {
                known.heard = true;
            }
            self.spaces.insert(connection, made);
            return;
        }
        // It sends before its parent reports it, and so before the parent does anything else.
        let parent = self
            .spaces
            .values()
            .chain(self.ended.iter().rev())
            .filter(|i| i.pid == parent_pid)
            .max_by_key(|i| (i.phase == Phase::Running, i.process))
            .map(|i| i.process);
        let Some(parent) = parent else {
            self.note(format!(
                "process {pid} was not recorded: its parent {parent_pid} is not known"
            ));
            return;
        };
        let program = self.programs.get(&parent).cloned().unwrap_or_default();
        let (process, main) = self.enter(pid, Some(parent), program);
        let known = Known {
            process,
            main,
            spawned: false,
            heard: true,
        };
        self.known.insert(pid, known);
        let of = self
            .spaces
            .values()
            .chain(self.ended.iter())
            .find(|i| i.process == parent);
        if let Some(of) = of {
            let space = of.fork(known.process, pid, known.main, &mut self.out, &mut self.commons);
            self.spaces.insert(connection, space);
        }
    }

    fn grant(&mut self, wish: Wish) {
        match wish {
            Wish::Spawned { by, pid } => {
                let known = match self.known.get(&pid).copied().filter(|k| !k.spawned) {
                    Some(known) => Known { spawned: true, ..known },
                    None => {
                        // The child has not sent anything yet: its place is reserved.
                        let parent = self
                            .spaces
                            .values()
                            .find(|i| i.live().any(|t| t == by))
                            .map(|i| i.process);
                        let program = parent.and_then(|p| self.programs.get(&p)).cloned().unwrap_or_default();
                        let (process, main) = self.enter(pid, parent, program);
                        Known {
                            process,
                            main,
                            spawned: true,
                            heard: false,
                        }
                    }
                };
                self.known.insert(pid, known);
                self.out.event(by, Event::Spawn { child: known.main });
                if !known.heard
                    && let Some(of) = self.spaces.values().find(|space| space.live().any(|t| t == by))
                {
                    let child = of.fork(known.process, pid, known.main, &mut self.out, &mut self.commons);
                    self.made.insert(pid, child);
                }
            }
            Wish::Waited { by, pid } => {
                self.made.remove(&pid);
                if let Some(known) = self.known.remove(&pid) {
                    // A child that never sent anything (it was killed at once) ends here.
                    self.out.exit(known.main);
                    self.out.event(by, Event::Join { child: known.main });
                }
            }
        }
    }
}

impl Listener for ProcessTree {
    fn open(&mut self, connection: Connection, hello: Hello) {
        if hello.forked {
            self.fork(connection, hello);
        } else {
            self.unnamed.insert(connection, hello);
        }
    }

    fn words(&mut self, connection: Connection, words: &[u64]) {
        if let Some(hello) = self.unnamed.remove(&connection) {
            let text = match wire::payload(words, 0) {
                Some((record::PROGRAM, payload)) => wire::text(payload, 0),
                _ => Vec::new(),
            };
            self.begin(connection, hello, &text);
        }
        let Some(space) = self.spaces.get_mut(&connection) else {
            return;
        };
        let mut wishes = Vec::new();
        let decoded = space.decode(words, &mut self.out, &mut self.commons, &mut wishes);
        let pid = space.pid;
        for wish in wishes {
            self.grant(wish);
        }
        if let Err(at) = decoded {
            let most = words[at..].iter().filter(|word| *word & wire::TAGGED == 0).count();
            self.note(format!(
                "process {pid} wrote into the recorder's memory, or the tool is at fault: at most {most} references \
                 were left out"
            ));
        }
    }

    fn close(&mut self, connection: Connection) {
        self.unnamed.remove(&connection);
        let Some(mut space) = self.spaces.remove(&connection) else {
            return;
        };
        space.end(&mut self.out);
        let replacing = space.phase == Phase::Replacing;
        for thread in space.live().collect::<Vec<_>>() {
            if replacing && thread == space.main {
                self.replaced.insert(space.pid, thread);
            } else {
                self.out.exit(thread);
            }
        }
        self.ended.push_back(space);
        if self.ended.len() > REMEMBERED {
            self.ended.pop_front();
        }
    }

    fn progress(&self) -> (u64, u64) {
        (self.out.seen(), self.out.bytes())
    }

    fn failed(&self) -> bool {
        self.out.failed()
    }
}

#[cfg(test)]
mod tests;
