//! Threads of a program that are kept on chosen cpus: found as they begin, by name or by their order, and placed by affinity.
//!
//! [`Placer::look`] is called again and again while the program runs. A thread is numbered when it is seen first, those of one look in
//! the order in which they began: one that ends before it was seen has no number, and moves those after it up.

mod family;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use results::{PlacedRun, Placement, PlacementWay};
use sys::{Root, affinity};

pub use family::{Family, Here, Processes};

/// Threads of one process.
pub trait Threads {
    /// The existing threads, by Linux's numbers.
    fn there_are(&self) -> Vec<u32>;
    /// When a thread began, in ticks; `None`: it is gone.
    fn began(&self, thread: u32) -> Option<u64>;
    fn name(&self, thread: u32) -> Option<String>;
    /// The cpus that a thread may use, ascending.
    fn allowed(&self, thread: u32) -> Option<Vec<u32>>;
    fn allow(&self, thread: u32, cpus: &[u32]) -> io::Result<()>;
}

/// The threads of a process of this machine.
pub struct Process {
    root: Root,
    process: u32,
}

impl Process {
    pub fn new(process: u32) -> Process {
        Process {
            root: Root::default(),
            process,
        }
    }

    fn of(&self, thread: u32, file: &str) -> Option<String> {
        self.root
            .text(&format!("proc/{}/task/{thread}/{file}", self.process))
            .ok()
    }
}

impl Threads for Process {
    fn there_are(&self) -> Vec<u32> {
        self.root
            .numbered(&format!("proc/{}/task", self.process), "")
            .unwrap_or_default()
    }

    fn began(&self, thread: u32) -> Option<u64> {
        sys::tasks::thread_began(&self.root, self.process, thread).ok()
    }

    fn name(&self, thread: u32) -> Option<String> {
        self.of(thread, "comm")
    }

    fn allowed(&self, thread: u32) -> Option<Vec<u32>> {
        affinity::allowed(Some(thread)).ok()
    }

    fn allow(&self, thread: u32, cpus: &[u32]) -> io::Result<()> {
        affinity::allow(Some(thread), cpus)
    }
}

/// Places the threads of one process.
pub struct Placer<'a> {
    placement: &'a Placement,
    way: &'a PlacementWay,
    by_name: bool,
    /// The number of each thread that was seen, from 0, and whether it needs no further look.
    seen: BTreeMap<u32, (usize, bool)>,
    /// Threads of the file that ran on their cpus.
    placed: BTreeSet<usize>,
    /// Threads that were placed by name, which several may have.
    named: u32,
    /// Threads of the file that ended before they were placed, and that could not have their cpus.
    ended: u32,
    denied: u32,
    refused: BTreeSet<String>,
    /// Threads begin with the cpus of the one that starts them. Those that the file does not know get these.
    everywhere: Vec<u32>,
}

impl<'a> Placer<'a> {
    pub fn new(placement: &'a Placement, way: &'a PlacementWay, everywhere: Vec<u32>) -> Placer<'a> {
        Placer {
            placement,
            way,
            by_name: placement.by_name(way),
            seen: BTreeMap::new(),
            placed: BTreeSet::new(),
            named: 0,
            ended: 0,
            denied: 0,
            refused: BTreeSet::new(),
            everywhere,
        }
    }

    /// Places the threads that are new, or have the name of one now. Returns whether it saw a new one.
    pub fn look(&mut self, threads: &impl Threads) -> bool {
        let there_are = threads.there_are();
        let mut new: Vec<(u64, u32)> = there_are
            .iter()
            .filter(|thread| !self.seen.contains_key(thread))
            .filter_map(|&thread| Some((threads.began(thread)?, thread)))
            .collect();
        new.sort_unstable();
        for &(_, thread) in &new {
            self.seen.insert(thread, (self.seen.len(), false));
        }
        for thread in there_are {
            let Some(&(number, false)) = self.seen.get(&thread) else {
                continue;
            };
            let member = self.member(thread, number, threads);
            if let Some(member) = member {
                self.place(thread, member, threads);
            } else if number > 0 && new.iter().any(|of| of.1 == thread) {
                let _ = threads.allow(thread, &self.everywhere);
            }
            // Names may come later, and further threads than the file has stay unknown.
            let done = member.is_some() || !self.by_name;
            self.seen.insert(thread, (number, done));
        }
        !new.is_empty()
    }

    /// The file's thread that this one is.
    fn member(&self, thread: u32, number: usize, threads: &impl Threads) -> Option<usize> {
        if !self.by_name {
            return (number < self.placement.threads.len()).then_some(number);
        }
        let name = threads.name(thread)?;
        let same = |of: &results::PlacementThread| of.name == name.trim_end_matches('\n');
        self.placement.threads.iter().position(same)
    }

    fn place(&mut self, thread: u32, member: usize, threads: &impl Threads) {
        match threads.allow(thread, &self.way.cpus[member]) {
            Ok(()) if self.by_name => self.named += 1,
            Ok(()) => {
                self.placed.insert(member);
            }
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => self.ended += 1,
            Err(error) => {
                self.denied += 1;
                let cpus = sys::cpus::list(&self.way.cpus[member]);
                self.refused.insert(format!("cpus {cpus}: {error}"));
            }
        }
    }

    /// The outcome for the threads.
    pub fn outcome(&self) -> PlacedRun {
        let all = self.placement.threads.len() as u32;
        let placed = if self.by_name {
            self.named
        } else {
            self.placed.len() as u32
        };
        let missing = all.saturating_sub(placed);
        // Several threads may have the name of one.
        let denied = self.denied.min(missing);
        PlacedRun {
            program: self.placement.program.clone(),
            way: self.way.name.clone(),
            placed,
            missing,
            ended: self.ended.min(missing - denied),
            denied,
            unknown: (self.seen.len() as u32).saturating_sub(placed.max(all)),
            refused: self.refused.iter().cloned().collect(),
            ..PlacedRun::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use results::PlacementThread;

    /// Threads by number, with when they began and their names; the cpus that they were given.
    #[derive(Default)]
    struct Fake {
        threads: Vec<(u32, u64, &'static str)>,
        given: RefCell<Vec<(u32, Vec<u32>)>>,
        refuses: Option<u32>,
    }

    impl Threads for Fake {
        fn there_are(&self) -> Vec<u32> {
            self.threads.iter().map(|of| of.0).collect()
        }

        fn began(&self, thread: u32) -> Option<u64> {
            self.threads.iter().find(|of| of.0 == thread).map(|of| of.1)
        }

        fn name(&self, thread: u32) -> Option<String> {
            let of = self.threads.iter().find(|of| of.0 == thread)?;
            Some(format!("{}\n", of.2))
        }

        fn allowed(&self, _: u32) -> Option<Vec<u32>> {
            None
        }

        fn allow(&self, thread: u32, cpus: &[u32]) -> io::Result<()> {
            if self.refuses == Some(thread) {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
            self.given.borrow_mut().push((thread, cpus.to_vec()));
            Ok(())
        }
    }

    fn placement(names: [&str; 3]) -> Placement {
        let thread = |name: &str| PlacementThread { name: name.to_string() };
        let way = PlacementWay {
            cpus: vec![vec![0], vec![1], vec![2]],
            ..PlacementWay::default()
        };
        Placement {
            threads: names.map(thread).to_vec(),
            ways: vec![way],
            ..Placement::default()
        }
    }

    #[test]
    fn threads_are_found_by_their_order() {
        let placement = placement(["", "", ""]);
        let mut placer = Placer::new(&placement, &placement.ways[0], vec![0, 1, 2]);
        // Numbers of threads come round again: the time of the beginning decides.
        let mut fake = Fake {
            threads: vec![(50, 1, "main"), (7, 2, "main")],
            ..Fake::default()
        };
        assert!(placer.look(&fake));
        assert!(!placer.look(&fake));
        fake.threads = vec![(50, 1, "main"), (51, 3, "main"), (52, 4, "main")];
        assert!(placer.look(&fake));
        let cpus = |cpu: u32| vec![cpu];
        let everywhere = vec![0, 1, 2];
        assert_eq!(
            *fake.given.borrow(),
            [(50, cpus(0)), (7, cpus(1)), (51, cpus(2)), (52, everywhere)]
        );
        let outcome = placer.outcome();
        assert_eq!((outcome.placed, outcome.missing, outcome.unknown), (3, 0, 1));
    }

    #[test]
    fn threads_are_found_by_name_even_if_they_get_it_later() {
        let placement = placement(["main", "left", "right"]);
        let mut placer = Placer::new(&placement, &placement.ways[0], vec![0, 1, 2]);
        let mut fake = Fake {
            threads: vec![(1, 1, "main"), (2, 2, "right"), (3, 3, "main-unnamed")],
            ..Fake::default()
        };
        placer.look(&fake);
        fake.threads[2].2 = "left";
        placer.look(&fake);
        let given = [(1, vec![0]), (2, vec![2]), (3, vec![0, 1, 2]), (3, vec![1])];
        assert_eq!(*fake.given.borrow(), given);
    }

    #[test]
    fn a_refusal_is_said_once() {
        let placement = placement(["", "", ""]);
        let mut placer = Placer::new(&placement, &placement.ways[0], vec![0, 1, 2]);
        let fake = Fake {
            threads: vec![(1, 1, "a"), (2, 2, "a")],
            refuses: Some(2),
            ..Fake::default()
        };
        placer.look(&fake);
        placer.look(&fake);
        let outcome = placer.outcome();
        assert_eq!((outcome.placed, outcome.missing), (1, 2));
        assert_eq!((outcome.ended, outcome.denied), (0, 1));
        assert!(
            outcome.refused.len() == 1 && outcome.refused[0].starts_with("cpus 1: "),
            "{outcome:?}"
        );
    }
}
