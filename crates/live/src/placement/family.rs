//! The process that a placement applies to, if a program starts others.
//!
//! A wrapper (`sh -c`, `env`, `time`) starts the program of the file, or becomes it. A process is recognized by the
//! name of its program. If none has that name, the process that was started is taken for it as soon as it has several
//! threads. Processes of other programs begin with the cpus of the thread that starts them, and get back those that all
//! began with.

use std::collections::BTreeMap;
use std::path::Path;

use results::{PlacedRun, Placement, PlacementWay};
use sys::{Root, processes};

use super::{Placer, Process, Threads};

/// Processes, by Linux's numbers.
pub trait Processes {
    type Threads: Threads;
    /// A process and all that it started, at any remove.
    fn family(&self, process: u32) -> Vec<u32>;
    /// The names of a process's program: its file's, and the one that it was called by. Empty if it is gone.
    fn names(&self, process: u32) -> Vec<String>;
    fn threads(&self, process: u32) -> Self::Threads;
}

/// The processes of this machine.
#[derive(Default)]
pub struct Here(Root);

impl Processes for Here {
    type Threads = Process;

    fn family(&self, process: u32) -> Vec<u32> {
        processes::descendants(&self.0, process)
    }

    fn names(&self, process: u32) -> Vec<String> {
        let file = std::fs::read_link(self.0.path(&format!("proc/{process}/exe"))).ok();
        let called = self.0.text(&format!("proc/{process}/cmdline")).ok();
        let called = called.as_deref().and_then(|words| words.split('\0').next());
        let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let file = file.as_deref().and_then(last);
        file.into_iter().chain(called.map(Path::new).and_then(last)).collect()
    }

    fn threads(&self, process: u32) -> Process {
        Process::new(process)
    }
}

/// Places the threads of the program among all processes of a run.
pub struct Family<'a> {
    placement: &'a Placement,
    way: &'a PlacementWay,
    everywhere: Vec<u32>,
    /// The name of the placement's program.
    program: String,
    /// The process that was started, and whether it is the program for sure.
    first: u32,
    is_program: bool,
    /// The process that is placed, and whether it has the program's name.
    placed: Option<(u32, bool, Placer<'a>)>,
    /// The outcomes of the processes that ended.
    ended: Vec<PlacedRun>,
    /// Other processes that were looked at, and their programs.
    others: BTreeMap<u32, Vec<String>>,
}

impl<'a> Family<'a> {
    /// `first`: the process that was started; `command`: the command that started it. `everywhere`: the cpus that all
    /// begin with.
    pub fn new(
        placement: &'a Placement,
        way: &'a PlacementWay,
        everywhere: Vec<u32>,
        first: u32,
        command: &Path,
    ) -> Family<'a> {
        let program = Path::new(&placement.program).file_name();
        Family {
            placement,
            way,
            everywhere,
            program: program.unwrap_or_default().to_string_lossy().into_owned(),
            first,
            is_program: program.is_none() || program == command.file_name(),
            placed: None,
            ended: Vec::new(),
            others: BTreeMap::new(),
        }
    }

    /// Places the threads that are new. Returns whether it saw a new one.
    pub fn look(&mut self, processes: &impl Processes) -> bool {
        let family = processes.family(self.first);
        self.choose(&family, processes);
        let looked = self.placed.as_mut();
        let new = looked.is_some_and(|(process, _, placer)| placer.look(&processes.threads(*process)));
        self.free_others(&family, processes);
        new
    }

    /// Decides which process is placed.
    fn choose(&mut self, family: &[u32], processes: &impl Processes) {
        if let Some((process, named, placer)) = &self.placed {
            if *named && family.contains(process) {
                return;
            }
            if !family.contains(process) {
                self.ended.push(placer.outcome());
                self.placed = None;
            }
        }
        let is_it = |process: &&u32| match **process == self.first && self.is_program {
            true => true,
            false => !self.program.is_empty() && processes.names(**process).contains(&self.program),
        };
        let placer = || Placer::new(self.placement, self.way, self.everywhere.clone());
        match (family.iter().find(is_it), &mut self.placed) {
            // The process became the program by exec.
            (Some(found), Some((process, named, _))) if found == process => *named = true,
            (Some(&found), _) => self.placed = Some((found, true, placer())),
            (None, Some(_)) => {}
            (None, None) => {
                let several = self.placement.threads.len() > 1
                    && family.contains(&self.first)
                    && processes.threads(self.first).there_are().len() > 1;
                if several {
                    self.placed = Some((self.first, false, placer()));
                }
            }
        }
    }

    /// Other programs get back the cpus that were chosen for a thread of this one.
    fn free_others(&mut self, family: &[u32], processes: &impl Processes) {
        let Some((placed, ..)) = &self.placed else { return };
        let own = processes.names(*placed);
        if own.is_empty() {
            return;
        }
        for process in family.iter().filter(|process| *process != placed) {
            let names = processes.names(*process);
            // A process that a fork made and that runs the same program is a part of it.
            let is_other = !names.is_empty() && names.iter().all(|name| !own.contains(name));
            if !is_other || self.others.get(process) == Some(&names) {
                continue;
            }
            self.others.insert(*process, names);
            let threads = processes.threads(*process);
            for thread in threads.there_are() {
                // Cpus that somebody else chose for it stay.
                if threads.allowed(thread).is_some_and(|cpus| self.is_of_way(&cpus)) {
                    let _ = threads.allow(thread, &self.everywhere);
                }
            }
        }
    }

    /// Returns whether these are the cpus of a thread of the file, as far as they can be had.
    fn is_of_way(&self, cpus: &[u32]) -> bool {
        let same = |of: &Vec<u32>| {
            let mut had: Vec<u32> = of.iter().copied().filter(|cpu| self.everywhere.contains(cpu)).collect();
            had.sort_unstable();
            had == cpus
        };
        self.way.cpus.iter().any(same)
    }

    /// The outcome for the threads; among several processes, that of the one with most placed threads.
    pub fn outcome(&self) -> PlacedRun {
        let now = self.placed.as_ref().map(|(_, _, placer)| placer.outcome());
        let most = self.ended.iter().cloned().chain(now).max_by_key(|run| run.placed);
        most.unwrap_or_else(|| PlacedRun {
            refused: match self.is_program {
                true => Vec::new(),
                false => vec![format!("no process ran {}", self.program)],
            },
            ..Placer::new(self.placement, self.way, Vec::new()).outcome()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io;

    use results::PlacementThread;

    use super::*;

    /// A process with its name and its threads.
    type Made = (u32, &'static str, Vec<u32>);

    /// Processes, the first of which started the others; the cpus of each thread.
    #[derive(Default)]
    struct Fake {
        processes: Vec<Made>,
        cpus: RefCell<BTreeMap<u32, Vec<u32>>>,
    }

    struct FakeThreads<'a>(&'a Fake, Vec<u32>);

    impl Threads for FakeThreads<'_> {
        fn there_are(&self) -> Vec<u32> {
            self.1.clone()
        }

        fn began(&self, thread: u32) -> Option<u64> {
            Some(thread.into())
        }

        fn name(&self, _: u32) -> Option<String> {
            None
        }

        fn allowed(&self, thread: u32) -> Option<Vec<u32>> {
            self.0.cpus.borrow().get(&thread).cloned()
        }

        fn allow(&self, thread: u32, cpus: &[u32]) -> io::Result<()> {
            self.0.cpus.borrow_mut().insert(thread, cpus.to_vec());
            Ok(())
        }
    }

    impl<'a> Processes for &'a Fake {
        type Threads = FakeThreads<'a>;

        fn family(&self, _: u32) -> Vec<u32> {
            self.processes.iter().map(|of| of.0).collect()
        }

        fn names(&self, process: u32) -> Vec<String> {
            let of = self.processes.iter().find(|of| of.0 == process);
            of.map(|of| of.1.to_string()).into_iter().collect()
        }

        fn threads(&self, process: u32) -> FakeThreads<'a> {
            let of = self.processes.iter().find(|of| of.0 == process);
            FakeThreads(self, of.map_or_else(Vec::new, |of| of.2.clone()))
        }
    }

    fn placement() -> Placement {
        Placement {
            program: "/bin/work".to_string(),
            threads: vec![PlacementThread::default(); 2],
            ways: vec![PlacementWay {
                cpus: vec![vec![0], vec![1]],
                ..PlacementWay::default()
            }],
            ..Placement::default()
        }
    }

    fn family<'a>(placement: &'a Placement, command: &str) -> Family<'a> {
        let way = &placement.ways[0];
        Family::new(placement, way, vec![0, 1, 2], 1, Path::new(command))
    }

    fn cpus(fake: &Fake, thread: u32) -> Option<Vec<u32>> {
        fake.cpus.borrow().get(&thread).cloned()
    }

    #[test]
    fn the_program_of_the_file_is_placed_and_its_wrapper_is_not() {
        let placement = placement();
        let mut family = family(&placement, "sh");
        let mut fake = Fake {
            processes: vec![(1, "sh", vec![1])],
            ..Fake::default()
        };
        family.look(&&fake);
        assert!(fake.cpus.borrow().is_empty());
        fake.processes.push((5, "work", vec![5, 6]));
        fake.processes.push((8, "cc", vec![8]));
        assert!(family.look(&&fake));
        assert_eq!((cpus(&fake, 1), cpus(&fake, 8)), (None, None));
        assert_eq!((cpus(&fake, 5), cpus(&fake, 6)), (Some(vec![0]), Some(vec![1])));
        // A second run of it is placed, too.
        fake.processes = vec![(1, "sh", vec![1]), (9, "work", vec![9])];
        family.look(&&fake);
        assert_eq!(cpus(&fake, 9), Some(vec![0]));
        assert_eq!((family.outcome().placed, family.outcome().missing), (2, 0));
    }

    #[test]
    fn what_the_program_starts_gets_back_the_cpus_that_there_were() {
        let placement = placement();
        let mut family = family(&placement, "./work");
        let fake = Fake {
            processes: vec![
                (1, "work", vec![1, 2]),
                (4, "ls", vec![4]),
                (5, "pinned", vec![5]),
                (6, "work", vec![6]),
            ],
            ..Fake::default()
        };
        let begun = [(4, vec![0]), (5, vec![2]), (6, vec![1])];
        fake.cpus.borrow_mut().extend(begun);
        family.look(&&fake);
        assert_eq!(cpus(&fake, 4), Some(vec![0, 1, 2]));
        assert_eq!((cpus(&fake, 5), cpus(&fake, 6)), (Some(vec![2]), Some(vec![1])));
    }

    #[test]
    fn a_program_by_another_name_is_placed_once_it_has_threads() {
        let placement = placement();
        let mut family = family(&placement, "./work-2");
        let mut fake = Fake {
            processes: vec![(1, "work-2", vec![1])],
            ..Fake::default()
        };
        family.look(&&fake);
        assert_eq!(family.outcome().refused, ["no process ran work"]);
        fake.processes[0].2.push(2);
        family.look(&&fake);
        assert_eq!((cpus(&fake, 1), cpus(&fake, 2)), (Some(vec![0]), Some(vec![1])));
        // It becomes the program by exec, or starts it.
        fake.processes.push((7, "work", vec![7, 8]));
        family.look(&&fake);
        assert_eq!((cpus(&fake, 1), cpus(&fake, 8)), (Some(vec![0, 1, 2]), Some(vec![1])));
    }
}
