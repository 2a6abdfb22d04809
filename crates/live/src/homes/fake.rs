//! A made-up machine for tests: pages on nodes, threads on cpus, and errors.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::time::Duration;

use sys::memory::{PAGE, Span};
use sys::move_pages::{PageError, Pages};
use sys::tasks::Task;

use super::Whom;
use super::linux::{Chosen, Linux, Unit};

#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Node by address.
    pub pages: BTreeMap<usize, u32>,
    pub shared: BTreeSet<usize>,
    /// Pages that cannot be moved just now.
    pub held: BTreeSet<usize>,
    pub written: BTreeSet<usize>,
    pub tasks: Vec<Task>,
    pub allowed: Vec<u32>,
    pub chosen: Vec<Chosen>,
    /// The error of a call that moves its pages.
    pub fails: Option<i32>,
}

#[derive(Debug, Default)]
pub struct Fake {
    pub now: Duration,
    pub processes: HashMap<u32, Process>,
    pub free: HashMap<u32, u64>,
    /// Calls that moved something, with their pages.
    pub calls: Vec<Vec<usize>>,
    /// Time that a call takes.
    pub call_takes: Duration,
    /// Processes that end after so many calls more.
    pub ends: Option<(u32, usize)>,
}

impl Process {
    /// Pages `0..count` on a node, with a thread that runs on each of the cpus.
    pub fn on(node: u32, count: usize, cpus: &[u32]) -> Process {
        let task = |(number, &cpu): (u32, &u32)| Task {
            number,
            cpu,
            runs: true,
            time: 1,
        };
        Process {
            pages: (0..count).map(|page| (page * PAGE, node)).collect(),
            tasks: (1..).zip(cpus).map(task).collect(),
            allowed: vec![0, 1, 2, 3],
            ..Process::default()
        }
    }

    pub fn on_node(&self, node: u32) -> usize {
        self.pages.values().filter(|&&at| at == node).count()
    }
}

const ESRCH: i32 = 3;

impl Fake {
    fn process(&mut self, process: u32) -> io::Result<&mut Process> {
        self.processes
            .get_mut(&process)
            .ok_or_else(|| io::Error::from_raw_os_error(ESRCH))
    }

    fn one_call(&mut self, process: u32) {
        self.now += self.call_takes;
        if let Some((ends, calls)) = &mut self.ends
            && *ends == process
        {
            match calls.checked_sub(1) {
                Some(rest) => *calls = rest,
                None => {
                    self.processes.remove(&process);
                }
            }
        }
    }
}

impl Linux for Fake {
    fn now(&mut self) -> Duration {
        self.now
    }

    fn sleep(&mut self, time: Duration) {
        self.now += time;
        for process in self.processes.values_mut() {
            process
                .tasks
                .iter_mut()
                .for_each(|task| task.time += u64::from(task.runs));
        }
    }

    fn own_time(&mut self) -> Duration {
        self.now / 100
    }

    fn free_frames(&mut self, node: u32) -> Option<u64> {
        self.free.get(&node).copied()
    }

    fn began(&mut self, process: u32) -> Option<u64> {
        self.processes.contains_key(&process).then_some(1)
    }

    fn name(&mut self, process: u32) -> String {
        format!("program {process}")
    }

    fn tasks(&mut self, process: u32) -> Vec<Task> {
        self.process(process)
            .map_or(Vec::new(), |process| process.tasks.clone())
    }

    fn allowed_nodes(&mut self, process: u32) -> Option<Vec<u32>> {
        self.process(process).ok().map(|process| process.allowed.clone())
    }

    fn chosen(&mut self, process: u32) -> Vec<Chosen> {
        self.process(process)
            .map_or(Vec::new(), |process| process.chosen.clone())
    }

    fn units(&mut self, process: u32, span: Span, most: usize) -> io::Result<Vec<Unit>> {
        let process = self.process(process)?;
        let pages = process.pages.range(span.start..span.end()).take(most);
        Ok(pages
            .map(|(&address, _)| Unit {
                address,
                pages: 1,
                shared: process.shared.contains(&address),
            })
            .collect())
    }

    fn written(&mut self, process: u32, span: Span) -> io::Result<Vec<Span>> {
        let written = &self.process(process)?.written;
        Ok(written
            .range(span.start..span.end())
            .map(|&page| Span::new(page, PAGE))
            .collect())
    }

    fn clear_written(&mut self, process: u32) {
        if let Ok(process) = self.process(process) {
            process.written.clear();
        }
    }

    fn nodes_of(&mut self, process: u32, addresses: &[usize]) -> io::Result<Pages> {
        let process = self.process(process)?;
        let node = |address: &usize| process.pages.get(address).copied().ok_or(PageError::ABSENT);
        Ok(addresses.iter().map(node).collect())
    }

    /// Like the kernel, moves all pages before the first one that is held, and reports nothing
    /// about that one and the rest.
    fn move_to(&mut self, number: u32, addresses: &[usize], nodes: &[u32]) -> io::Result<Pages> {
        self.one_call(number);
        self.calls.push(addresses.to_vec());
        let process = self.process(number)?;
        if let Some(error) = process.fails {
            return Err(io::Error::from_raw_os_error(error));
        }
        let held = addresses.iter().position(|address| process.held.contains(address));
        let mut status = Vec::new();
        for (at, (address, &node)) in addresses.iter().zip(nodes).enumerate() {
            let untried = held.is_some_and(|held| at >= held);
            let moved = match process.pages.get_mut(address) {
                None => Err(PageError::ABSENT),
                Some(_) if process.shared.contains(address) => Err(PageError::SHARED),
                Some(_) if untried => Err(PageError::UNTRIED),
                Some(at) => {
                    *at = node;
                    Ok(node)
                }
            };
            status.push(if held.is_some() { Err(PageError::UNTRIED) } else { moved });
        }
        Ok(status)
    }

    fn members(&mut self, whom: &Whom) -> Result<Vec<u32>, sys::SysError> {
        let mut all: Vec<u32> = match whom {
            Whom::Processes(processes) => processes.clone(),
            Whom::Family(_) | Whom::Group(_) => self.processes.keys().copied().collect(),
        };
        all.sort_unstable();
        Ok(all)
    }
}
