//! An address space: turns the words of its ring into references and events.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use trace::{Allocation, Array, Event, Frame, Location, Stack, StackId, Thread, ThreadId};

use crate::allocation::Allocations;
use crate::block::{Blocks, Malformed};
use crate::clocks::{self, Forward};
use crate::differences::Differences;
use crate::flow::Dependences;
use crate::lines::Lines;
use crate::module::{Mapping, Mappings};
use crate::output::Output;
use crate::pace::{self, Code, Paces, Play, Way};
use crate::synchronization::{Objects, Tickets};
use crate::wire::{self, record};

/// The phase of an address space's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Running,
    /// It said that it is about to call execve.
    Replacing,
    /// It said that it ends.
    Ended,
}

/// A thread of an address space.
#[derive(Clone)]
pub(crate) struct Runner {
    pub(crate) id: ThreadId,
    /// Instructions since its last reference.
    pub(crate) carried: u64,
    /// The value of `pthread_self` on glibc.
    pointer: u64,
    pub(crate) thread: Thread,
    pub(crate) ended: bool,
    /// Its place in the program that it interprets, innermost first, by the numbers of [`Lines`].
    pub(crate) at_lines: Vec<u32>,
}

/// State that all address spaces share.
#[derive(Default)]
pub struct Commons {
    pub tickets: Tickets,
    pub mappings: Mappings,
    /// Program counters in the trace, by process: to be looked up.
    pub pcs: HashMap<u32, HashSet<u64>>,
    /// Those that stand for lines of interpreted programs.
    pub lines: Vec<Location>,
    /// How often threads came to a line of one.
    pub lines_reached: u64,
    pub notes: Vec<String>,
    /// Differences that Valgrind makes.
    pub differences: Differences,
    /// The loads that addresses come from.
    pub dependences: Dependences,
}

/// A request of an address space that concerns others.
#[derive(Debug, PartialEq, Eq)]
pub enum Wish {
    /// The thread made the process `pid`.
    Spawned { by: ThreadId, pid: u32 },
    /// The thread has seen the process `pid` end.
    Waited { by: ThreadId, pid: u32 },
}

/// Allocations that a forked child is said to begin with.
const INHERITED: usize = 1 << 14;

/// An address space, from exec or fork to exec or exit.
pub struct AddressSpace {
    pub process: u32,
    pub pid: u32,
    pub phase: Phase,
    pub main: ThreadId,
    pub(crate) blocks: Arc<Blocks>,
    /// By Valgrind's numbers, which are used again.
    pub(crate) runners: Vec<Option<Runner>>,
    pub(crate) current: usize,
    /// The current thread's [`Runner::carried`], whose copy there is stale meanwhile.
    pub(crate) carried: u64,
    /// By the tool's numbers.
    stacks: HashMap<u64, CallStack>,
    no_stack: Option<StackId>,
    allocations: Allocations,
    pub(crate) objects: Objects,
    pub(crate) paused: bool,
    /// Pieces of a summary, so far.
    pub(crate) summary: Vec<u8>,
    /// Slots decoded since the program or the last window began.
    slots: u64,
    /// Windows that had begun when the last slot was decoded.
    window: u32,
    paces: Paces,
    /// Lines of the program that it interprets.
    pub(crate) lines: Lines,
}

/// A stack that the tool announced.
struct CallStack {
    pcs: Arc<[u64]>,
    /// The trace's number, which belongs to one process: a child gets its own when it first uses the stack.
    id: Option<StackId>,
}

impl CallStack {
    fn of_parent(&self) -> CallStack {
        CallStack {
            pcs: Arc::clone(&self.pcs),
            id: None,
        }
    }

    fn id(&mut self, process: u32, out: &mut Output) -> StackId {
        *self.id.get_or_insert_with(|| {
            let frames = self.pcs.iter().map(|pc| Frame { pc: *pc }).collect();
            out.stack(Stack { process, frames })
        })
    }
}

impl AddressSpace {
    /// A fresh address space with one thread, `main`.
    pub fn new(process: u32, pid: u32, main: ThreadId) -> AddressSpace {
        let thread = Thread {
            process,
            number: u64::from(pid),
            name: String::new(),
            stack: None,
        };
        let first = Runner {
            id: main,
            carried: 0,
            pointer: 0,
            thread,
            ended: false,
            at_lines: Vec::new(),
        };
        AddressSpace {
            process,
            pid,
            phase: Phase::Running,
            main,
            blocks: Arc::default(),
            runners: vec![None, Some(first)],
            current: 1,
            carried: 0,
            stacks: HashMap::new(),
            no_stack: None,
            allocations: Allocations::default(),
            objects: Objects::new(process),
            paused: false,
            summary: Vec::new(),
            slots: 0,
            window: 0,
            paces: Paces::default(),
            lines: Lines::default(),
        }
    }

    /// The copy that fork made of `self`, with the thread that called it.
    pub fn fork(
        &self,
        process: u32,
        pid: u32,
        main: ThreadId,
        out: &mut Output,
        commons: &mut Commons,
    ) -> AddressSpace {
        commons.mappings.inherit(self.process, process);
        let pcs = commons.pcs.get(&self.process).cloned().unwrap_or_default();
        commons.pcs.insert(process, pcs);
        let mut child = AddressSpace::new(process, pid, main);
        if let Some(caller) = self.runners.get(self.current).and_then(Option::as_ref) {
            let thread = Thread {
                number: u64::from(pid),
                process,
                ..caller.thread.clone()
            };
            let runner = Runner {
                id: main,
                pointer: caller.pointer,
                carried: 0,
                thread,
                ended: false,
                at_lines: caller.at_lines.clone(),
            };
            child.runners = vec![None; self.current];
            child.runners.push(Some(runner));
            child.current = self.current;
        }
        child.blocks = Arc::clone(&self.blocks);
        for event in self.allocations.all(INHERITED) {
            out.event(main, event);
        }
        let inherited = |(number, of): (&u64, &CallStack)| (*number, of.of_parent());
        child.stacks = self.stacks.iter().map(inherited).collect();
        child.allocations = self.allocations.clone();
        child.objects = self.objects.of_child(process);
        child.paused = self.paused;
        child.paces = self.paces.described();
        child.lines = self.lines.of_child(self.process, process, &mut commons.lines);
        child
    }

    /// No more words will come: writes everything that is pending.
    pub fn end(&mut self, out: &mut Output) {
        self.write_paces(out);
        for tid in 0..self.runners.len() {
            if self.runners[tid].as_ref().is_some_and(|r| !r.ended) {
                self.switch(tid);
                self.write_work(out);
            }
        }
    }

    /// Threads that have not ended.
    pub fn live(&self) -> impl Iterator<Item = ThreadId> {
        self.runners.iter().flatten().filter(|r| !r.ended).map(|r| r.id)
    }

    /// Decodes the words of a slot. The error is the index of the first invalid word.
    pub fn decode(
        &mut self,
        words: &[u64],
        out: &mut Output,
        commons: &mut Commons,
        wishes: &mut Vec<Wish>,
    ) -> Result<(), usize> {
        self.slots += 1;
        if let Some(runner) = self.runners.get(self.current).and_then(Option::as_ref) {
            out.run_by(runner.id);
        }
        let mut words = Cow::Borrowed(words);
        // Up to here superblocks have their lines.
        let mut placed = 0;
        let mut at = 0;
        while let Some(&word) = words.get(at) {
            match wire::kind(word) {
                wire::BLOCK => {
                    if at >= placed {
                        placed = self.put_at_line(&mut words, at);
                    }
                    let (word, words) = (words[at], &words[..]);
                    let on = self.run_on(words, at, out);
                    if on > at {
                        at = on;
                        continue;
                    }
                    at = self
                        .run(word as u32 as usize, words, at + 1, out, commons)
                        .map_err(|Malformed| at)?;
                }
                wire::RECORD => {
                    let (kind, payload) = wire::payload(&words, at).ok_or(at)?;
                    self.record(kind, payload, out, commons, wishes)
                        .map_err(|Malformed| at)?;
                    at += 1 + payload.len();
                }
                _ => return Err(at),
            }
        }
        // A window may contain a whole loop: its beginning is examined as closely as that of the run.
        if self.window != out.window() {
            self.window = out.window();
            self.slots = 1;
        }
        if pace::is_sample(self.slots) && !self.paused {
            self.play(&words);
        }
        commons.dependences.follow(&self.blocks, &words, self.slots);
        Ok(())
    }

    /// Plays the superblocks of a decoded slot.
    fn play(&mut self, words: &[u64]) {
        let forward = Forward::here();
        let mut play = Play::new(forward);
        let line = clocks::code_line();
        let mut references = Vec::new();
        let mut at = 0;
        while let Some(&word) = words.get(at) {
            at += 1;
            match wire::kind(word) {
                wire::BLOCK => {
                    let number = word as u32 as usize;
                    if let Some(block) = self.blocks.get(number) {
                        references.clear();
                        references.extend(pace::references(self.blocks.templates(block), &words[at..]));
                        let described = self.blocks.tools_number(number);
                        let code = self.paces.code(described, || Code::of(self.blocks.code(block), line));
                        play.run(
                            &mut self.paces,
                            (number, described),
                            code,
                            u64::from(block.insns),
                            &references,
                        );
                    }
                }
                wire::RECORD => {
                    let Some((kind, payload)) = wire::payload(words, at - 1) else {
                        return;
                    };
                    at += payload.len();
                    // Another thread has its own registers.
                    if kind == record::THREAD {
                        play = Play::new(forward);
                    }
                }
                _ => {}
            }
        }
    }

    /// Writes how long the instructions around the sites of all superblocks took in the samples.
    fn write_paces(&self, out: &mut Output) {
        for (number, taken) in self.paces.all() {
            let Some(block) = self.blocks.get(number).filter(|block| block.named) else {
                continue;
            };
            let templates = self.blocks.templates(block);
            for template in templates {
                out.pace(template.site, taken.own.clocks, taken.own.instructions);
            }
            if let Some(first) = templates.first() {
                out.pace(first.site, taken.before.clocks, taken.before.instructions);
            }
        }
    }

    pub(crate) fn current(&mut self) -> Result<&mut Runner, Malformed> {
        self.runners
            .get_mut(self.current)
            .and_then(Option::as_mut)
            .ok_or(Malformed)
    }

    fn runner(&mut self, tid: u64) -> Result<&mut Runner, Malformed> {
        let tid = usize::try_from(tid).map_err(|_| Malformed)?;
        self.runners.get_mut(tid).and_then(Option::as_mut).ok_or(Malformed)
    }

    /// The trace's number for a stack of the tool's.
    fn stack(&mut self, number: u64, out: &mut Output) -> StackId {
        let process = self.process;
        if let Some(known) = self.stacks.get_mut(&number) {
            return known.id(process, out);
        }
        *self.no_stack.get_or_insert_with(|| {
            out.stack(Stack {
                process,
                frames: Vec::new(),
            })
        })
    }

    fn record(
        &mut self,
        kind: u32,
        payload: &[u64],
        out: &mut Output,
        commons: &mut Commons,
        wishes: &mut Vec<Wish>,
    ) -> Result<(), Malformed> {
        match (kind, payload) {
            (record::BLOCK, _) => return Arc::make_mut(&mut self.blocks).define(payload),
            (record::THREAD, [tid]) => {
                let id = self.runner(*tid)?.id;
                self.switch(*tid as usize);
                out.run_by(id);
            }
            (record::THREAD_CREATE, [tid]) => self.create(*tid, out)?,
            (record::THREAD_START, [tid, number, pointer, low, high]) => {
                let runner = self.runner(*tid)?;
                runner.pointer = *pointer;
                runner.thread.number = *number;
                runner.thread.stack = (low < high).then_some((*low, *high));
                out.update_thread(runner.id, runner.thread.clone());
            }
            (record::THREAD_EXIT, [tid]) => {
                self.runner(*tid)?;
                self.switch(*tid as usize);
                self.write_work(out);
                let runner = self.runner(*tid)?;
                runner.ended = true;
                out.exit(runner.id);
            }
            (record::THREAD_NAME, [tid, ..]) => {
                let name = String::from_utf8_lossy(&wire::text(payload, 1)).into_owned();
                let runner = self.runner(*tid)?;
                runner.thread.name = name;
                out.update_thread(runner.id, runner.thread.clone());
            }
            (record::MAP, [start, bytes, how, offset, stack, ..]) => {
                let path = String::from_utf8_lossy(&wire::text(payload, 5)).into_owned();
                self.map((*start, *bytes), *how, *offset, *stack, path, out, commons)?;
            }
            (record::UNMAP, [start, bytes]) => {
                let thread = self.current()?.id;
                for event in self.allocations.unmap(*start, *bytes) {
                    out.event(thread, event);
                }
            }
            (record::STACK, [number, pcs @ ..]) => {
                commons.pcs.entry(self.process).or_default().extend(pcs);
                let mut stack = CallStack {
                    pcs: pcs.into(),
                    id: None,
                };
                stack.id(self.process, out);
                self.stacks.insert(*number, stack);
            }
            (record::ALLOC, [addr, bytes, stack]) => {
                let stack = match self.stack_of_lines(out, commons) {
                    Some(stack) => stack,
                    None => self.stack(*stack, out),
                };
                let thread = self.current()?.id;
                let event = self.allocations.alloc(*addr, *bytes, stack);
                out.event(thread, event);
            }
            (record::FREE, [addr]) => {
                let thread = self.current()?.id;
                if let Some(event) = self.allocations.free(*addr) {
                    out.event(thread, event);
                }
            }
            (record::SYNC, [operation, object, value]) => self.sync(*operation, *object, *value, out, commons)?,
            (record::FORK, [pid]) => wishes.push(Wish::Spawned {
                by: self.current()?.id,
                pid: *pid as u32,
            }),
            (record::WAITED, [pid]) => wishes.push(Wish::Waited {
                by: self.current()?.id,
                pid: *pid as u32,
            }),
            (record::EXEC, [1]) => self.phase = Phase::Replacing,
            (record::EXEC, [_]) => self.phase = Phase::Running,
            (record::PROGRAM, _) => {}
            (record::END, [_]) => self.phase = Phase::Ended,
            (record::PHASE, _) => {
                let name = String::from_utf8_lossy(&wire::text(payload, 0)).into_owned();
                let thread = self.current()?.id;
                out.event(thread, Event::Phase { name });
            }
            (record::CALLED, [_]) if self.paused => {}
            (record::CALLED, [stack]) => {
                let stack = match self.stack_of_lines(out, commons) {
                    Some(stack) => stack,
                    None => self.stack(*stack, out),
                };
                let thread = self.current()?.id;
                out.event_of_next(thread, Event::Called { stack });
            }
            (record::WORK_BEGIN, hints) => {
                let thread = self.current()?.id;
                out.event(thread, Event::WorkBegin { hints: hints.to_vec() });
            }
            (record::WORK_END, _) => {
                let thread = self.current()?.id;
                out.event(thread, Event::WorkEnd);
            }
            (record::ARRAY, [addr, bytes, ..]) => {
                let name = String::from_utf8_lossy(&wire::text(payload, 2)).into_owned();
                out.writer().arrays([Array {
                    process: self.process,
                    name,
                    addr: *addr,
                    bytes: *bytes,
                }]);
            }
            (record::SLOTS, [what, a, b, c]) => {
                let thread = self.current()?.id;
                if let Some(event) = self.slots(*what, [*a, *b, *c])? {
                    out.event(thread, event);
                }
            }
            (record::SUMMARY, [bytes, before, ..]) => {
                let thread = self.current()?.id;
                if let Some(text) = self.summary(*bytes, *before, &wire::text(payload, 2))? {
                    out.event(thread, Event::Summary { text });
                }
            }
            (record::SPUN, [turns, block, _]) => {
                let pc = self.blocks.pc(*block as usize).ok_or(Malformed)?;
                commons.pcs.entry(self.process).or_default().insert(pc);
                commons.differences.spun(*turns, self.process, pc);
            }
            (record::LATENCY, [block, ways @ ..]) => {
                let ways = ways.iter().map(|way| Way::read(*way).ok_or(Malformed));
                let number = usize::try_from(*block).map_err(|_| Malformed)?;
                self.blocks.get(number).ok_or(Malformed)?;
                self.paces.describe(number, ways.collect::<Result<_, _>>()?);
            }
            (record::LIMIT_REFUSED, [asked]) => commons.differences.refused(*asked),
            (record::LINE, [number, line, ..]) => self.line(*number, *line, payload, out, commons),
            (record::AT_LINES, numbers) => self.at_lines(numbers, commons)?,
            (record::SWITCH, [on]) => self.paused = *on == 0,
            _ => return Err(Malformed),
        }
        Ok(())
    }

    fn create(&mut self, tid: u64, out: &mut Output) -> Result<(), Malformed> {
        // Valgrind has a few hundred threads at most (--max-threads).
        let tid = usize::try_from(tid)
            .ok()
            .filter(|tid| *tid < 1 << 16)
            .ok_or(Malformed)?;
        // Until it has its own line, its work counts for the line of the thread that made it.
        let Runner { id: by, at_lines, .. } = self.current()?.clone();
        let thread = Thread {
            process: self.process,
            ..Thread::default()
        };
        let id = out.thread(thread.clone());
        out.event(by, Event::Spawn { child: id });
        if self.runners.len() <= tid {
            self.runners.resize(tid + 1, None);
        }
        self.runners[tid] = Some(Runner {
            id,
            carried: 0,
            pointer: 0,
            thread,
            ended: false,
            at_lines,
        });
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn map(
        &mut self,
        (start, bytes): (u64, u64),
        how: u64,
        offset: u64,
        stack: u64,
        path: String,
        out: &mut Output,
        commons: &mut Commons,
    ) -> Result<(), Malformed> {
        let thread = self.current()?.id;
        let stack = self.stack(stack, out);
        let kind = match how >> 8 {
            wire::map::FILE => Allocation::File,
            wire::map::STACK => Allocation::Stack,
            _ => Allocation::Map,
        };
        if kind == Allocation::File && !path.is_empty() {
            let executable = how & 4 != 0;
            commons.mappings.add(Mapping {
                process: self.process,
                path,
                start,
                bytes,
                offset,
                executable,
            });
        }
        for event in self.allocations.map(start, bytes, stack, kind) {
            out.event(thread, event);
        }
        Ok(())
    }

    fn sync(
        &mut self,
        operation: u64,
        object: u64,
        value: u64,
        out: &mut Output,
        commons: &mut Commons,
    ) -> Result<(), Malformed> {
        let thread = self.current()?.id;
        match operation {
            wire::sync::RESTORE => {
                if let Some(event) = self.allocations.restore(object) {
                    out.event(thread, event);
                }
            }
            wire::sync::JOINED => {
                let ended = self
                    .runners
                    .iter()
                    .flatten()
                    .find(|r| r.pointer == object && r.id != thread);
                if let Some(child) = ended.map(|r| r.id) {
                    out.event(thread, Event::Join { child });
                }
            }
            _ => {
                for event in self
                    .objects
                    .events(thread, operation, object, value, &mut commons.tickets)
                {
                    out.event(thread, event);
                }
            }
        }
        Ok(())
    }
}
