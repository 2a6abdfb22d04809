//! The tables of a trace: known facts about processes, threads, sites, stacks and names.

use super::{Buffer, WAITING, Writer};
use crate::dependence::Dependence;
use crate::model::{
    Array, Header, Location, Misprediction, Module, Pace, Process, Site, SiteId, Stack, StackId, Symbol, Thread,
    ThreadId,
};

impl Writer {
    /// Replaces the header: some facts are known only at the end.
    pub fn header(&mut self, header: &Header) {
        self.register.header(header);
    }

    /// Adds an address space.
    pub fn process(&mut self, process: Process) -> u32 {
        let number = self.register.process(process);
        self.gained(1);
        number
    }

    pub fn thread(&mut self, thread: Thread) -> ThreadId {
        let number = self.register.thread(thread);
        self.buffers.push(Buffer::default());
        self.gained(1);
        number
    }

    /// Replaces the known facts about a thread: its name or stack may be learned late.
    pub fn update_thread(&mut self, id: ThreadId, thread: Thread) {
        self.register.update_thread(id, thread);
        self.gained(1);
    }

    /// The number of a site, the same for the same site.
    #[inline]
    pub fn site(&mut self, site: Site) -> SiteId {
        self.register.site(site)
    }

    /// The number of a call stack, the same for the same stack.
    pub fn stack(&mut self, stack: Stack) -> StackId {
        let known = self.register.stacks();
        let number = self.register.stack(stack);
        self.gained(self.register.stacks() - known);
        number
    }

    pub fn modules(&mut self, modules: impl IntoIterator<Item = Module>) {
        let new = add(&mut self.register.new.modules, modules);
        self.gained(new);
    }

    pub fn symbols(&mut self, symbols: impl IntoIterator<Item = Symbol>) {
        let new = add(&mut self.register.new.symbols, symbols);
        self.gained(new);
    }

    pub fn locations(&mut self, locations: impl IntoIterator<Item = Location>) {
        let new = add(&mut self.register.new.locations, locations);
        self.gained(new);
    }

    pub fn arrays(&mut self, arrays: impl IntoIterator<Item = Array>) {
        let new = add(&mut self.register.new.arrays, arrays);
        self.gained(new);
    }

    pub fn paces(&mut self, paces: impl IntoIterator<Item = Pace>) {
        let new = add(&mut self.register.new.paces, paces);
        self.gained(new);
    }

    pub fn mispredictions(&mut self, mispredictions: impl IntoIterator<Item = Misprediction>) {
        let new = add(&mut self.register.new.mispredictions, mispredictions);
        self.gained(new);
    }

    /// The sources of addresses, as far as they were seen; in ascending order of the sites.
    pub fn dependences(&mut self, dependences: Vec<Dependence>) {
        let new = dependences.len();
        self.register
            .new
            .dependences
            .get_or_insert_default()
            .extend(dependences);
        self.gained(new);
    }

    /// Tables wait for the next chunk, unless they become long.
    fn gained(&mut self, entries: usize) {
        self.waiting += entries;
        if self.waiting >= WAITING
            && let Err(failure) = self.tables()
        {
            self.register.fail(&failure);
        }
    }
}

/// Appends, and returns the number.
fn add<T>(list: &mut Vec<T>, more: impl IntoIterator<Item = T>) -> usize {
    let before = list.len();
    list.extend(more);
    list.len() - before
}
