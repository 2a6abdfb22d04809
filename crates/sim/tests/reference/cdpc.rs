//! Hints for policy `cdpc`: gathered, or found out by looking at each reference. The five steps are the policy's own code.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use machine::Machine;
use policy::Page;
use policy::cdpc::{self, Hints, Loop, PageColors, Segment, Source, Wanted};
use serde_json::{Value, json};
use trace::{Event, Op};

use super::Choices;
use super::program::{Item, Program};

/// Hints, and their report.
pub struct Made {
    pub colors: PageColors,
    pub reported: Value,
}

/// The hints that a policy is handed. The program is one without names: heap blocks are all of one site.
pub fn make(wanted: Wanted, program: &Program, machine: &Machine, choices: &Choices) -> Made {
    let of = cdpc::Machine {
        page_bytes: machine.page_bytes,
        colors: super::pages::colors(machine) as u32,
        cpus: machine.cpus,
        fit: wanted.fit,
    };
    let source = wanted.from;
    let ways = wanted.weigh.then(|| super::pages::ways(machine));
    let (said, mut malformed) = said(program);
    let mut hints: BTreeMap<u32, Hints> = BTreeMap::new();
    let mut loops = HashSet::new();
    if source != Source::Trace {
        for (space, mut own) in said {
            let before = own.len();
            own.retain(|a_loop| cdpc::segments(std::slice::from_ref(a_loop), &of).is_ok());
            malformed += (before - own.len()) as u64;
            loops.extend(own.clone());
            hints.insert(space, hinted(&own, &of, ways));
        }
    }
    let from = match hints.values().all(|hints| hints.pages.is_empty()) {
        true if source != Source::Summaries => {
            loops.clear();
            hints = derived(program, &of, choices, ways);
            "trace"
        }
        _ => "summaries",
    };
    let sum = |of: fn(&Hints) -> usize| hints.values().map(of).sum::<usize>();
    let arrays = |hints: &Hints| {
        let arrays: HashSet<u32> = hints.segments.iter().map(|segment| segment.array).collect();
        arrays.len()
    };
    let reported = json!({
        "from": from, "loops": loops.len(), "arrays": sum(arrays), "segments": sum(|hints| hints.segments.len()),
        "sets": sum(|hints| hints.sets.len()), "pages": sum(|hints| hints.pages.len()), "colors": of.colors,
        "malformed_summaries": if source == Source::Trace { 0 } else { malformed },
    });
    let pages = hints.into_iter().flat_map(|(space, hints)| {
        let page = move |hint: cdpc::Hint| {
            let number = hint.page;
            (Page { space, number }, hint.color)
        };
        hints.pages.into_iter().map(page)
    });
    Made {
        colors: pages.collect(),
        reported,
    }
}

fn hinted(loops: &[Loop], of: &cdpc::Machine, ways: Option<u32>) -> Hints {
    let hints = match ways {
        Some(ways) => cdpc::weighed(loops, of, ways),
        None => cdpc::hints(loops, of),
    };
    hints.expect("each loop can be")
}

/// The loops that each process describes, and the number of those that cannot be.
pub fn said(program: &Program) -> (BTreeMap<u32, Vec<Loop>>, u64) {
    let (mut said, mut malformed) = (BTreeMap::<u32, Vec<Loop>>::new(), 0);
    // Thread by thread: which description is the last one is a matter of that.
    let mut items: Vec<_> = program.items.iter().collect();
    items.sort_by_key(|(thread, _)| *thread);
    for (thread, item) in items {
        let Item::Event(Event::Summary { text }) = item else {
            continue;
        };
        let read = serde_json::from_str(text)
            .ok()
            .filter(|a_loop: &Loop| a_loop.check().is_ok());
        match read {
            None => malformed += 1,
            Some(a_loop) => {
                let own = said.entry(program.spaces[*thread as usize]).or_default();
                let same = |other: &&mut Loop| {
                    let threads = a_loop.threads;
                    Loop {
                        threads,
                        ..(**other).clone()
                    } == a_loop
                };
                match own.iter_mut().find(same) {
                    Some(other) => *other = a_loop,
                    None => own.push(a_loop),
                }
            }
        }
    }
    (said, malformed)
}

/// An array: its process, and the first byte of a large block; none for small blocks together.
type Array = (u32, Option<u64>);

#[derive(Clone, Copy, PartialEq)]
enum Owner {
    Array(Array),
    Nobody,
    Small,
}

#[derive(Default)]
struct Seen {
    cpus: u128,
    parallel: u128,
    owner: Option<Owner>,
    looked: u64,
}

#[derive(Clone, Default)]
struct Thread {
    together: bool,
    teams: Vec<bool>,
    held: Option<Event>,
    unborn: bool,
    exited: bool,
    /// Arrays used since threads met last, and whether in parallel work.
    used: BTreeSet<Array>,
    parallel: bool,
}

struct Pass<'a> {
    program: &'a Program,
    machine: cdpc::Machine,
    ways: Option<u32>,
    threads: Vec<Thread>,
    masters: HashMap<u32, u32>,
    /// Live blocks of process 0: first byte and the one after the last. The others' are not followed: they have no names.
    blocks: Vec<(u64, u64)>,
    changes: u64,
    posted: HashSet<u64>,
    pages: BTreeMap<(u32, u64), Seen>,
    groups: [BTreeSet<BTreeSet<Array>>; 2],
    /// The phases that have begun, in recorded order, and those between which is counted.
    phases: Vec<String>,
    choices: &'a Choices,
}

fn derived(program: &Program, machine: &cdpc::Machine, choices: &Choices, ways: Option<u32>) -> BTreeMap<u32, Hints> {
    // All begin with a Spawn, or with their first action.
    let thread = |_| Thread {
        unborn: true,
        ..Thread::default()
    };
    let mut pass = Pass {
        program,
        machine: *machine,
        ways,
        threads: (0..program.spaces.len()).map(thread).collect(),
        masters: HashMap::new(),
        blocks: Vec::new(),
        changes: 1,
        posted: HashSet::new(),
        pages: BTreeMap::new(),
        groups: Default::default(),
        phases: Vec::new(),
        choices,
    };
    for (thread, item) in &program.items {
        match item {
            Item::Ref { op, addr, size, .. } => pass.reference(*thread, *op, *addr, *size),
            Item::Event(event) => pass.event(*thread, event),
        }
    }
    for thread in 0..program.spaces.len() as u32 {
        pass.flush(thread);
    }
    pass.finish()
}

impl Pass<'_> {
    fn space(&self, thread: u32) -> u32 {
        self.program.spaces[thread as usize]
    }

    fn is_ready(&self, thread: u32) -> bool {
        let thread = &self.threads[thread as usize];
        thread.held.is_none() && !thread.unborn && !thread.exited
    }

    fn ready(&self, space: u32) -> Vec<u32> {
        let all = 0..self.threads.len() as u32;
        all.filter(|&thread| self.space(thread) == space && self.is_ready(thread))
            .collect()
    }

    fn note_meeting(&mut self, space: u32) {
        let ready = self.ready(space);
        if ready.len() >= 2 {
            for thread in ready {
                self.threads[thread as usize].together = true;
            }
        }
    }

    fn works_in_parallel(&self, number: u32) -> bool {
        let thread = &self.threads[number as usize];
        match self.masters.get(&self.space(number)) {
            Some(master) if *master == number => thread.teams.iter().any(|of_many| *of_many),
            Some(_) => true,
            None => thread.together,
        }
    }

    /// It does something, so it does not wait.
    fn shows_itself(&mut self, number: u32) {
        let thread = &mut self.threads[number as usize];
        if thread.exited {
            return;
        }
        if thread.held.take().is_some() || std::mem::take(&mut thread.unborn) {
            self.becomes_ready(number);
        }
    }

    fn becomes_ready(&mut self, number: u32) {
        self.threads[number as usize].together = false;
        self.note_meeting(self.space(number));
    }

    /// Returns whether the phase to count from has begun, and the one to count to has not begun after that.
    fn counts(&self) -> bool {
        let mut phases = self.phases.iter();
        let begun = match &self.choices.from_phase {
            None => true,
            Some(from) => phases.any(|phase| phase == from),
        };
        begun && !phases.any(|phase| Some(phase) == self.choices.to_phase.as_ref())
    }

    fn reference(&mut self, thread: u32, op: Op, addr: u64, size: u16) {
        self.shows_itself(thread);
        if !self.counts() {
            return;
        }
        let parallel = self.works_in_parallel(thread);
        if self.threads[thread as usize].parallel != parallel {
            self.flush(thread);
            self.threads[thread as usize].parallel = parallel;
        }
        if matches!(op, Op::Fetch | Op::Prefetch) {
            return;
        }
        let page_bytes = self.machine.page_bytes;
        let last = addr.saturating_add(u64::from(size.max(1)) - 1);
        for page in BTreeSet::from([addr / page_bytes, last / page_bytes]) {
            let space = self.space(thread);
            let owner = self.owner(space, page);
            let changes = self.changes;
            let seen = self.pages.entry((space, page)).or_default();
            let cpu = 1 << (thread % self.machine.cpus);
            seen.cpus |= cpu;
            seen.parallel |= if parallel { cpu } else { 0 };
            if seen.looked < changes {
                seen.looked = changes;
                if !matches!(seen.owner, Some(Owner::Array(_))) || matches!(owner, Owner::Array(_)) {
                    seen.owner = Some(owner);
                }
            }
            if let Some(Owner::Array(array)) = seen.owner {
                self.threads[thread as usize].used.insert(array);
            }
        }
    }

    /// Byte by byte.
    fn owner(&self, space: u32, page: u64) -> Owner {
        if space != 0 {
            return Owner::Nobody;
        }
        let page_bytes = self.machine.page_bytes;
        let mut bytes: Vec<(Array, u64)> = Vec::new();
        let mut small = false;
        for addr in page * page_bytes..(page + 1) * page_bytes {
            let Some(&(start, end)) = self.blocks.iter().find(|(start, end)| (*start..*end).contains(&addr)) else {
                continue;
            };
            if end - start < page_bytes {
                small = true;
                continue;
            }
            let array = (space, (end - start >= 16 * page_bytes).then_some(start));
            match bytes.iter_mut().find(|(other, _)| *other == array) {
                Some((_, bytes)) => *bytes += 1,
                None => bytes.push((array, 1)),
            }
        }
        let most = bytes.iter().map(|(_, bytes)| *bytes).max();
        match bytes.iter().find(|(_, bytes)| Some(*bytes) == most) {
            Some((array, _)) => Owner::Array(*array),
            None if small => Owner::Small,
            None => Owner::Nobody,
        }
    }

    fn event(&mut self, number: u32, event: &Event) {
        let page_bytes = self.machine.page_bytes;
        if let Event::Phase { name } = event {
            self.phases.push(name.clone());
        }
        match *event {
            Event::Alloc { addr, bytes, .. } => {
                if self.space(number) == 0 {
                    self.blocks.push((addr, addr + bytes));
                }
                self.changes += u64::from(bytes >= page_bytes);
                return;
            }
            Event::Free { addr } => {
                if self.space(number) == 0
                    && let Some(at) = self.blocks.iter().position(|(start, _)| *start == addr)
                {
                    let (start, end) = self.blocks.remove(at);
                    self.changes += u64::from(end - start >= page_bytes);
                }
                return;
            }
            Event::Barrier { .. }
            | Event::Post { .. }
            | Event::Wait { .. }
            | Event::Spawn { .. }
            | Event::Join { .. }
            | Event::Phase { .. }
            | Event::TeamBegin { .. }
            | Event::TeamEnd { .. }
            | Event::Exit => {}
            _ => return,
        }
        self.flush(number);
        self.shows_itself(number);
        if self.threads[number as usize].exited {
            return;
        }
        let space = self.space(number);
        match *event {
            Event::TeamBegin { threads, .. } => {
                self.masters.entry(space).or_insert(number);
                self.threads[number as usize].teams.push(threads != 1);
                return;
            }
            Event::TeamEnd { .. } => {
                self.threads[number as usize].teams.pop();
                return;
            }
            _ => {}
        }
        self.threads[number as usize].together = self.ready(space).len() >= 2;
        let is_held = |thread: &Thread, by: &dyn Fn(&Event) -> bool| thread.held.as_ref().is_some_and(by);
        let mut freed: Vec<u32> = Vec::new();
        let all = 0..self.threads.len() as u32;
        match *event {
            Event::Barrier { object, threads } => {
                let same = |held: &Event| matches!(held, Event::Barrier { object: other, .. } if *other == object);
                let there: Vec<u32> = all
                    .filter(|&other| is_held(&self.threads[other as usize], &same))
                    .collect();
                match (there.len() as u32) + 1 < threads {
                    true => self.hold(number, event),
                    false => freed = there,
                }
            }
            Event::Post { ticket } => {
                self.posted.insert(ticket);
                let same = |held: &Event| matches!(held, Event::Wait { ticket: other } if *other == ticket);
                freed = all
                    .filter(|&other| is_held(&self.threads[other as usize], &same))
                    .collect();
            }
            Event::Wait { ticket } if !self.posted.contains(&ticket) => self.hold(number, event),
            Event::Spawn { child } if self.threads.get(child as usize).is_some_and(|child| child.unborn) => {
                self.threads[child as usize].unborn = false;
                freed.push(child);
            }
            Event::Join { child } if self.threads.get(child as usize).is_some_and(|child| !child.exited) => {
                self.hold(number, event);
            }
            Event::Exit => {
                self.threads[number as usize].exited = true;
                let same = |held: &Event| matches!(held, Event::Join { child } if *child == number);
                freed = all
                    .filter(|&other| is_held(&self.threads[other as usize], &same))
                    .collect();
            }
            _ => {}
        }
        for thread in freed {
            self.threads[thread as usize].held = None;
            self.becomes_ready(thread);
        }
    }

    fn hold(&mut self, number: u32, event: &Event) {
        self.threads[number as usize].held = Some(event.clone());
    }

    fn flush(&mut self, number: u32) {
        let thread = &mut self.threads[number as usize];
        let used = std::mem::take(&mut thread.used);
        if !used.is_empty() {
            self.groups[usize::from(thread.parallel)].insert(used);
        }
    }

    fn finish(self) -> BTreeMap<u32, Hints> {
        let spaces: BTreeSet<u32> = self.pages.keys().map(|(space, _)| *space).collect();
        spaces
            .into_iter()
            .filter_map(|space| Some((space, self.hints(space)?)))
            .collect()
    }

    fn hints(&self, space: u32) -> Option<Hints> {
        let pages: Vec<(u64, &Seen)> = self
            .pages
            .iter()
            .filter(|((of, _), _)| *of == space)
            .map(|((_, page), seen)| (*page, seen))
            .collect();
        let parallel = pages.iter().any(|(_, seen)| seen.parallel != 0);
        let cpus = |seen: &Seen| if parallel { seen.parallel } else { seen.cpus };
        let mut numbers: Vec<Array> = Vec::new();
        let mut segments = Vec::new();
        let page = |array: u32, page: u64, cpus: u128| Segment {
            array,
            pages: page..page + 1,
            cpus,
        };
        let mut unnamed: Vec<Vec<(u64, u128)>> = Vec::new();
        for (number, seen) in &pages {
            let cpus = cpus(seen);
            match seen.owner {
                _ if cpus == 0 => {}
                Some(Owner::Array(array)) => {
                    let known = numbers.iter().position(|other| *other == array).unwrap_or_else(|| {
                        numbers.push(array);
                        numbers.len() - 1
                    });
                    segments.push(page(known as u32, *number, cpus));
                }
                Some(Owner::Nobody) => match unnamed.last_mut() {
                    Some(run) if number - run[run.len() - 1].0 <= 16 => run.push((*number, cpus)),
                    _ => unnamed.push(vec![(*number, cpus)]),
                },
                _ => {}
            }
        }
        unnamed.retain(|run| run.len() >= 16);
        for (at, run) in unnamed.iter().enumerate() {
            let array = (1000 + at) as u32;
            segments.extend(run.iter().map(|&(number, cpus)| page(array, number, cpus)));
        }
        let groups = self.groups[usize::from(parallel)].iter().map(|group| {
            let known = group
                .iter()
                .filter_map(|array| numbers.iter().position(|other| other == array));
            known.map(|number| number as u32).collect()
        });
        let groups: Vec<Vec<u32>> = groups.collect();
        let hints = || match self.ways {
            Some(ways) => cdpc::weighed_order(&segments, &groups, &self.machine, ways),
            None => cdpc::order(&segments, &groups, &self.machine),
        };
        (!segments.is_empty()).then(|| hints().expect("segments are right"))
    }
}
