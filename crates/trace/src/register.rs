//! The upper half of the writer's tables: numbers named things, and collects entries that are not in the file yet.

use std::collections::HashMap;
use std::hash::Hash;

use crate::block::Kind;
use crate::error::TraceError;
use crate::limits;
use crate::model::{Header, Process, Site, SiteId, Stack, StackId, Thread, ThreadId};
use crate::sink::Job;
use crate::table::Tables;

/// Numbers given so far, and entries waiting to be written.
#[derive(Default)]
pub struct Register {
    sites: Interned<Site>,
    /// A cache of the table of sites: the sites of a loop are looked up repeatedly.
    recent: Vec<(Site, SiteId)>,
    stacks: Interned<Stack>,
    processes: usize,
    threads: usize,
    new_sites: Vec<Site>,
    pub new: Tables,
    /// The first thing that exceeded the format's limits.
    refused: Option<TraceError>,
}

/// Things that are described once and named by number afterwards.
struct Interned<T> {
    numbers: HashMap<T, u32>,
}

impl<T> Default for Interned<T> {
    fn default() -> Interned<T> {
        Interned {
            numbers: HashMap::new(),
        }
    }
}

impl<T: Hash + Eq + Clone> Interned<T> {
    /// The number of `thing`, and whether it is new.
    fn number(&mut self, thing: &T) -> (u32, bool) {
        if let Some(&number) = self.numbers.get(thing) {
            return (number, false);
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(thing.clone(), number);
        (number, true)
    }
}

/// Entries of the cache of the table of sites.
const RECENT: usize = 4096;

impl Register {
    pub fn process(&mut self, process: Process) -> u32 {
        self.room(self.processes, limits::PROCESSES, "processes");
        self.new.processes.push(process);
        self.processes += 1;
        self.processes as u32 - 1
    }

    pub fn thread(&mut self, thread: Thread) -> ThreadId {
        self.room(self.threads, limits::THREADS, "threads");
        self.known_process(thread.process);
        self.new.threads.push(thread);
        self.threads += 1;
        self.threads as ThreadId - 1
    }

    pub fn update_thread(&mut self, id: ThreadId, thread: Thread) {
        if id as usize >= self.threads {
            self.refuse(format!("thread {id} has not been added"));
        }
        self.known_process(thread.process);
        self.new.renamed.push((id, thread));
    }

    pub fn header(&mut self, header: &Header) {
        self.new.header = Some(header.clone());
    }

    pub fn site(&mut self, site: Site) -> SiteId {
        let hash = site.pc ^ (site.pc >> 12) ^ ((site.op as u64) << 9) ^ (u64::from(site.size) << 3);
        let place = hash as usize % RECENT;
        if let Some(&(known, number)) = self.recent.get(place)
            && known == site
        {
            return number;
        }
        let (number, new) = self.sites.number(&site);
        if new {
            self.room(number as usize, limits::SITES, "sites");
            if site.size == 0 {
                self.refuse("a site that touches no byte".into());
            }
            self.new_sites.push(site);
        }
        if self.recent.is_empty() {
            self.recent = vec![(site, number); RECENT];
        }
        self.recent[place] = (site, number);
        number
    }

    pub fn stack(&mut self, stack: Stack) -> StackId {
        let (number, new) = self.stacks.number(&stack);
        if new {
            self.room(number as usize, limits::STACKS, "stacks");
            self.known_process(stack.process);
            self.new.stacks.push(stack);
        }
        number
    }

    pub fn sites(&self) -> usize {
        self.sites.numbers.len()
    }

    pub fn stacks(&self) -> usize {
        self.stacks.numbers.len()
    }

    /// The blocks that write everything that is not in the file yet.
    pub fn blocks(&mut self, jobs: &mut Vec<Job>) -> Result<(), TraceError> {
        if !self.new.is_empty() {
            let next = Tables {
                first_process: self.processes,
                first_thread: self.threads,
                first_stack: self.stacks(),
                ..Tables::default()
            };
            let mut blocks = Vec::new();
            std::mem::replace(&mut self.new, next).into_blocks(&mut blocks)?;
            jobs.extend(blocks.into_iter().map(|json| Job::Json(Kind::Tables, json)));
        }
        if !self.new_sites.is_empty() {
            jobs.push(Job::Sites(std::mem::take(&mut self.new_sites)));
        }
        Ok(())
    }

    /// Fails once anything has been refused.
    pub fn check(&self) -> Result<(), TraceError> {
        match &self.refused {
            Some(failure) => Err(failure.once_more()),
            None => Ok(()),
        }
    }

    /// After this, nothing can be added.
    pub fn fail(&mut self, failure: &TraceError) {
        self.refused.get_or_insert_with(|| failure.once_more());
    }

    pub fn refuse(&mut self, why: String) {
        self.refused.get_or_insert(TraceError::Refused(why));
    }

    fn room(&mut self, have: usize, allowed: usize, what: &str) {
        if have >= allowed {
            self.refuse(format!("more than {allowed} {what}"));
        }
    }

    fn known_process(&mut self, process: u32) {
        if process as usize >= self.processes {
            self.refuse(format!("process {process} has not been added"));
        }
    }
}
