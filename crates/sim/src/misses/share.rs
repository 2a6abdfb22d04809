//! Adds effects to a stream that a simulation of separate address spaces leaves out: pages that processes share, and
//! threads that the system moves.

use policy::{MissLevel, Page};
use rustc_hash::FxHashMap;
use trace::Module;

use super::stream::{FirstTouch, Miss, MissStream};

/// A page of a file: the file's number, and the page's within it.
type Key = (u32, u64);

impl MissStream {
    /// Pages of files that several processes have mapped become one, if no process writes to them: program text,
    /// constants, databases that are read. (The first write makes a private mapping's page a process's own; a trace
    /// says nothing about shared mappings that are written, and they stay apart.) Returns how many pages fewer there
    /// are.
    pub fn share_files(&mut self, modules: &[Module], page_bytes: u64) -> usize {
        let mut written = vec![false; self.pages.len()];
        for (touch, written) in self.pages.iter().zip(&mut written) {
            *written = touch.write;
        }
        for miss in self.misses.iter().filter(|miss| miss.is_write()) {
            written[miss.page() as usize] = true;
        }
        let files = Files::new(modules);
        let mut first: FxHashMap<Key, u32> = FxHashMap::default();
        let mut pages: Vec<FirstTouch> = Vec::new();
        let mut numbers = Vec::with_capacity(self.pages.len());
        for (touch, written) in self.pages.iter().zip(written) {
            let key = files.key(touch.page, page_bytes).filter(|_| !written);
            let known = key.and_then(|key| first.get(&key).copied());
            let number = known.unwrap_or_else(|| {
                pages.push(*touch);
                pages.len() as u32 - 1
            });
            if let Some(key) = key {
                first.entry(key).or_insert(number);
            }
            numbers.push(number);
        }
        let fewer = self.pages.len() - pages.len();
        for miss in &mut self.misses {
            *miss = miss.with(numbers[miss.page() as usize], miss.cpu());
        }
        self.renumber(pages);
        fewer
    }

    /// After each interval each thread goes to the next cpu, as if a system moved all of them to balance its load. Caches
    /// stay as warm as they were.
    pub fn move_threads(&mut self, cpus: u32, every_ns: u64) {
        let to = |miss: Miss| ((u64::from(miss.cpu()) + miss.now_ns() / every_ns.max(1)) % u64::from(cpus)) as u32;
        let mut touched = vec![false; self.pages.len()];
        for miss in &mut self.misses {
            let cpu = to(*miss);
            *miss = miss.with(miss.page(), cpu);
            let page = miss.page() as usize;
            // A page's first miss is its first touch.
            if !std::mem::replace(&mut touched[page], true) {
                self.pages[page].cpu = cpu;
            }
        }
    }

    /// How often a thread's next miss is on another cpu than the one before.
    pub fn thread_moves(&self) -> u64 {
        let mut last: FxHashMap<u32, u32> = FxHashMap::default();
        let elsewhere = |miss: &&Miss| {
            last.insert(miss.thread(), miss.cpu())
                .is_some_and(|cpu| cpu != miss.cpu())
        };
        self.misses.iter().filter(elsewhere).count() as u64
    }

    /// Misses that reached memory.
    pub fn cache_misses(&self) -> impl Iterator<Item = Miss> + '_ {
        let misses = self.misses.iter().copied();
        misses.filter(|miss| miss.level() == MissLevel::Cache)
    }
}

struct Files<'a> {
    /// By process and address, each with the number of its file.
    modules: Vec<(&'a Module, u32)>,
}

impl<'a> Files<'a> {
    fn new(modules: &'a [Module]) -> Files<'a> {
        let mut files: FxHashMap<&str, u32> = FxHashMap::default();
        let mut numbered: Vec<_> = modules
            .iter()
            .map(|module| {
                let next = files.len() as u32;
                (module, *files.entry(&module.path).or_insert(next))
            })
            .collect();
        numbered.sort_by_key(|(module, _)| (module.process, module.start));
        Files { modules: numbered }
    }

    fn key(&self, page: Page, page_bytes: u64) -> Option<Key> {
        let address = page.number * page_bytes;
        let place = (page.space, address);
        let above = self
            .modules
            .partition_point(|(module, _)| (module.process, module.start) <= place);
        let (module, file) = self.modules[..above].last()?;
        let within = module.process == page.space && address < module.start + module.bytes;
        within.then(|| (*file, address.wrapping_sub(module.bias) / page_bytes))
    }
}
