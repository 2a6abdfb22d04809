//! One piece on its way through the caches: lookup, coherence, fill, write.

use std::collections::HashMap;
use std::ops::Range;

use machine::{Kind, Machine, Write};
use trace::Op;

use super::instance::{Arrival, Instance};
use super::memory::Memory;
use super::overlap::{Latency, Overlap};
use super::software_prefetch::{From, Prefetches, SoftwarePrefetch};
use super::streams::Streams;
use super::strides::{Instruction, Strides};

/// Part of a reference that lies in one line of every cache.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub cpu: u32,
    pub op: Op,
    pub virtual_address: u64,
    pub physical_address: u64,
    pub size: u64,
    /// When its transfers are asked for.
    pub asked: u64,
    /// Of that, what its page's translation took.
    pub refill: u64,
    /// Whether its page is on a huge one.
    pub huge: bool,
}

/// What prefetchers see of a piece besides.
pub struct Beside<'a> {
    pub instruction: Instruction,
    /// The physical address of a virtual page, if it has a frame that the cpu may use; by number.
    pub frames: &'a dyn Fn(u64) -> Option<u64>,
}

impl Piece {
    fn writes(&self) -> bool {
        matches!(self.op, Op::Write | Op::Modify)
    }
}

/// How long the cpu waits for a piece, in units of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wait {
    pub cache: u64,
    pub local: u64,
    pub remote: u64,
    /// Where the last part comes from.
    pub from: From,
}

impl Wait {
    /// As much of one place.
    fn of(from: From, time: u64) -> Wait {
        let mut wait = Wait {
            from,
            ..Wait::default()
        };
        match from {
            From::Cache => wait.cache = time,
            From::Local => wait.local = time,
            From::Remote => wait.remote = time,
        }
        wait
    }

    fn add(&mut self, other: &Wait) {
        self.cache += other.cache;
        self.local += other.local;
        self.remote += other.remote;
    }

    pub fn sum(&self) -> u64 {
        self.cache + self.local + self.remote
    }
}

/// A dirty line on its way out of an instance that must give it up or clean it.
pub struct Flushed {
    address: u64,
    cpus: Range<u32>,
}

pub struct Hierarchy {
    pub instances: Vec<Instance>,
    /// For each cpu the instances that its fetches, or its other pieces, try in turn.
    fetch_paths: Vec<Vec<usize>>,
    data_paths: Vec<Vec<usize>>,
    pub hit: Vec<u64>,
    /// 0: a hit's.
    pub transfer: Vec<u64>,
    block: u64,
    /// The core that owns a block; a core is named by its first cpu.
    owners: HashMap<u64, u32>,
    pub memory: Memory,
    /// Of the instances that prefetch.
    streams: HashMap<usize, Streams>,
    strides: HashMap<usize, Strides>,
    /// Instances that the piece at hand looked up, whether each takes the line if it misses, and whether it missed.
    looked_up: Vec<(usize, bool, bool)>,
    page: u64,
    /// The program's prefetches, if the cpus carry them out.
    pub software_prefetch: Option<SoftwarePrefetch>,
    /// Cpus that overlap.
    pub overlap: Option<Overlap>,
    /// The piece at hand was found in its first cache.
    near: bool,
    /// The piece was found, and another core's line is modified: what that takes.
    transferred: Option<u64>,
    /// What is brought is brought because of a fetch.
    for_fetch: bool,
    /// What the cpu waits for its translation.
    tlb: u64,
    /// By cpu, what it waited for in caches of its path, and where no cache answers.
    pub on_chip: Vec<u64>,
    pub unclassed: Vec<u64>,
}

impl Hierarchy {
    pub fn new(
        machine: &Machine,
        seed: u64,
        classes: bool,
        dependences: &[trace::Dependence],
        paces: &[trace::Pace],
        mispredictions: &[trace::Misprediction],
        changes: &[results::ProgramChange],
    ) -> Hierarchy {
        let mut instances = Vec::new();
        for (kind, cache) in machine.caches.iter().enumerate() {
            let sharers = cache.cpus_per_instance.min(machine.cpus);
            for first in (0..machine.cpus).step_by(sharers as usize) {
                let number = instances.len() as u64;
                let cpus = first..first + sharers;
                instances.push(Instance::new(cache, kind, cpus, number, seed, classes, machine.cpus));
            }
        }
        let path = |cpu: u32, wanted: Kind| -> Vec<usize> {
            let levels = 1..=machine.caches.iter().map(|cache| cache.level).max().unwrap_or(0);
            let serving = |level: u8, kind: Kind| {
                instances.iter().position(|instance: &Instance| {
                    instance.cache.level == level && instance.cache.kind == kind && instance.cpus.contains(&cpu)
                })
            };
            levels
                .filter_map(|level| serving(level, wanted).or(serving(level, Kind::Unified)))
                .collect()
        };
        let fetch_paths = (0..machine.cpus).map(|cpu| path(cpu, Kind::Instruction)).collect();
        let data_paths = (0..machine.cpus).map(|cpu| path(cpu, Kind::Data)).collect();
        let prefetching = || instances.iter().enumerate();
        let strides = prefetching()
            .filter_map(|(number, instance)| Some((number, Strides::new(instance.cache.prefetch?.stride?))))
            .collect();
        let streams = prefetching()
            .filter_map(|(number, instance)| Some((number, Streams::new(instance.cache.prefetch?))))
            .collect();
        Hierarchy {
            overlap: Overlap::new(machine, dependences, paces, mispredictions, changes),
            near: false,
            for_fetch: false,
            transferred: None,
            tlb: 0,
            streams,
            strides,
            looked_up: Vec::new(),
            page: machine.page_bytes,
            software_prefetch: machine.prefetch.map(|prefetch| SoftwarePrefetch {
                outstanding: prefetch.outstanding as usize,
                under_way: vec![Vec::new(); machine.cpus as usize],
                counts: vec![Prefetches::default(); machine.cpus as usize],
            }),
            on_chip: vec![0; machine.cpus as usize],
            unclassed: vec![0; machine.cpus as usize],
            hit: instances
                .iter()
                .map(|instance| super::units(instance.cache.hit_ns))
                .collect(),
            transfer: instances
                .iter()
                .map(|instance| super::units(instance.cache.transfer_ns))
                .collect(),
            instances,
            fetch_paths,
            data_paths,
            block: machine
                .caches
                .iter()
                .map(|cache| cache.line_bytes)
                .max()
                .unwrap_or(1)
                .into(),
            owners: HashMap::new(),
            memory: Memory::new(machine),
        }
    }

    pub fn data_path(&self, cpu: u32) -> Vec<usize> {
        self.data_paths[cpu as usize].clone()
    }

    pub fn memory_cpus(&self) -> usize {
        self.data_paths.len()
    }

    /// What was counted so far is nothing; what is held stays.
    /// Lines that come while caches are only warmed count as used; lines that come later do not.
    pub fn take_all(&mut self, all: bool) {
        self.instances.iter_mut().for_each(|instance| instance.takes_all = all);
    }

    pub fn count_anew(&mut self) {
        self.instances.iter_mut().for_each(Instance::count_anew);
        self.memory.count_anew();
        self.on_chip.fill(0);
        self.unclassed.fill(0);
        if let Some(prefetches) = &mut self.software_prefetch {
            prefetches.counts.fill(Prefetches::default());
        }
    }

    /// Carries out one piece; what the cpu waits for caches and memory, and for the translation.
    /// Also whether it reached memory or a dirty remote cache.
    pub fn piece(&mut self, piece: &Piece, beside: &Beside) -> (Wait, u64, bool) {
        let path = match piece.op {
            Op::Fetch => self.fetch_paths[piece.cpu as usize].clone(),
            _ => self.data_paths[piece.cpu as usize].clone(),
        };
        let mut piece = *piece;
        self.tlb = piece.refill;
        if let Some(overlap) = &mut self.overlap
            && piece.op != Op::Fetch
        {
            let first = path.first().copied();
            self.near = first.is_some_and(|first| self.instances[first].holds(piece.physical_address));
            let times = [piece.asked - piece.refill, piece.refill];
            let cpu = piece.cpu as usize;
            piece.asked = match first.map(|first| &self.instances[first]) {
                Some(first) => {
                    let place = first.place(piece.virtual_address, piece.physical_address);
                    overlap.ask_of_set(
                        cpu,
                        piece.op,
                        times,
                        self.near,
                        place,
                        (first.cache.ways.into(), piece.virtual_address),
                    )
                }
                None => overlap.ask(cpu, piece.op, times[0], times[1], self.near, piece.virtual_address),
            };
        }
        let piece = &piece;
        // What others drive out until the lookups is lost before the access.
        for &instance in &path {
            self.others_come(instance, piece);
            if self.instances[instance].holds(piece.physical_address) {
                break;
            }
        }
        let off_path = self.off_path(piece.cpu);
        for instance in (0..self.instances.len()).filter(|instance| !off_path.contains(instance)) {
            self.instances[instance].accessed(piece.physical_address, piece.size);
        }
        self.for_fetch = piece.op == Op::Fetch;
        self.looked_up.clear();
        self.memory.reached = false;
        let wait = self.walk(piece, &path, true);
        let reached = self.memory.reached;
        for (instance, takes, missed) in std::mem::take(&mut self.looked_up) {
            if takes {
                self.prefetch(piece, beside, &path, (instance, missed));
            }
        }
        (wait, self.tlb, reached)
    }

    /// A frame holds its page no more.
    pub fn forget(&mut self, from: u64, bytes: u64) {
        for instance in &mut self.instances {
            let line = u64::from(instance.cache.line_bytes);
            for address in (from..from + bytes).step_by(line as usize) {
                instance.forget(address);
            }
        }
        let block = self.block;
        self.owners
            .retain(|owned, _| !(from..from + bytes).contains(&(owned * block)));
        let page = self.page;
        self.streams
            .values_mut()
            .for_each(|streams| streams.forget(from / page));
    }

    /// An instance's prefetcher, if it has one, sees that the piece was looked up.
    fn prefetch(&mut self, piece: &Piece, beside: &Beside, path: &[usize], (instance, missed): (usize, bool)) {
        let Some(streams) = self.streams.get_mut(&instance) else {
            return;
        };
        let pair = missed && streams.brings_pairs();
        let bytes = u64::from(self.instances[instance].cache.line_bytes);
        let (frame, number) = (piece.physical_address / self.page, piece.virtual_address / self.page);
        let there = |pages: i64| (beside.frames)(number.checked_add_signed(pages)?);
        let [before, after] = [-1, 1].map(|pages| Some(there(pages)? / self.page));
        let line = piece.physical_address % self.page / bytes;
        let streamed = streams.see(frame, line, self.page / bytes, before, after);
        let mut wanted: Vec<i128> = Vec::new();
        let other = if line.is_multiple_of(2) { line + 1 } else { line - 1 };
        let other = Some((0, other)).filter(|_| pair && other < self.page / bytes);
        for (pages, line) in other.into_iter().chain(streamed) {
            wanted.push((i128::from(number) + i128::from(pages)) * i128::from(self.page) + i128::from(line * bytes));
        }
        if let Some(strides) = self.strides.get_mut(&instance)
            && piece.op != Op::Fetch
        {
            wanted.extend(strides.see(beside.instruction, piece.virtual_address));
        }
        for address in wanted {
            let Ok(address) = u64::try_from(address) else { continue };
            let own = address / self.page == number;
            let physical = match own {
                true => Some(frame * self.page),
                false => (beside.frames)(address / self.page),
            };
            let Some(physical) = physical else { continue };
            let ahead = Piece {
                op: Op::Read,
                virtual_address: address / bytes * bytes,
                physical_address: physical + address % self.page / bytes * bytes,
                size: bytes,
                ..*piece
            };
            self.bring(&ahead, path, instance, true);
        }
    }

    /// A prefetch of the program where cpus overlap; its page has a frame. `clock`: the cpu's.
    pub fn prefetch_overlapping(&mut self, piece: &Piece, clock: u64) {
        self.for_fetch = false;
        let path = self.data_paths[piece.cpu as usize].clone();
        let (Some(&first), Some(overlap)) = (path.first(), &mut self.overlap) else {
            return;
        };
        // No others are in the first cache.
        if self.instances[first].holds(piece.physical_address) {
            return;
        }
        let bytes = u64::from(self.instances[first].cache.line_bytes);
        let ahead = Piece {
            virtual_address: piece.virtual_address / bytes * bytes,
            physical_address: piece.physical_address / bytes * bytes,
            size: bytes,
            asked: overlap.ask(piece.cpu as usize, Op::Read, clock, 0, false, piece.virtual_address),
            ..*piece
        };
        self.bring(&ahead, &path, first, false);
        let line = self.instances[first].line(ahead.physical_address);
        let done = line.and_then(|line| line.arrives).expect("it is on its way").at;
        if let Some(overlap) = &mut self.overlap {
            overlap.request(piece.cpu as usize, ahead.asked, done, piece.virtual_address);
        }
    }

    /// `own`: the cache's own prefetcher does.
    fn bring(&mut self, ahead: &Piece, path: &[usize], to: usize, own: bool) {
        let beyond: Vec<usize> = path.iter().copied().skip_while(|&instance| instance != to).collect();
        let mut without = Vec::new();
        for &instance in &beyond {
            self.others_come(instance, ahead);
            if self.instances[instance].holds(ahead.physical_address) {
                break;
            }
            without.push(instance);
        }
        if without.is_empty() {
            return;
        }
        let holder = beyond.get(without.len()).copied();
        let (mut wait, mut flushed) = (Wait::default(), Vec::new());
        let served = self.memory.served[ahead.cpu as usize];
        let several = self.data_paths.len() > 1;
        let supplied = several && self.coherence(ahead, holder, &mut wait, &mut flushed);
        self.memory.served[ahead.cpu as usize] = served;
        let (takes, from) = match holder {
            None if supplied => (wait.sum(), wait.from),
            None => self.memory.bring(ahead),
            Some(holder) => {
                let hit = self.hit[holder];
                let late = self.arrival(holder, ahead);
                (hit + late.sum(), if late.sum() > 0 { late.from } else { From::Cache })
            }
        };
        let level = holder.map(|holder| self.instances[holder].cache.level);
        let turn = match self.overlap.as_mut().filter(|_| !self.for_fetch) {
            Some(overlap) => overlap.line_turn(ahead.cpu as usize, ahead.asked, level, ahead.huge),
            None => 0,
        };
        let takes = takes + turn;
        for &instance in without.iter().rev() {
            self.fill(instance, ahead);
            self.instances[instance].taken_ahead(ahead.physical_address);
            self.comes(instance, ahead, ahead.asked + takes, from);
        }
        for line in flushed {
            self.land(&line, ahead.cpu);
        }
        if own {
            self.instances[to].brought(ahead.cpu, ahead.physical_address);
        }
    }

    /// What a piece waits for a line that it found and that its cpu asked for before, beyond the hit.
    fn arrival(&mut self, instance: usize, piece: &Piece) -> Wait {
        let hit = self.hit[instance];
        if self.overlap.is_none() {
            return Wait::default();
        }
        let line = self.instances[instance].line(piece.physical_address);
        match line.and_then(|line| line.arrives) {
            Some(Arrival { at, cpu, from }) if cpu == piece.cpu => {
                Wait::of(from, at.saturating_sub(piece.asked).saturating_sub(hit))
            }
            _ => Wait::default(),
        }
    }

    /// A line that was just taken comes later.
    fn comes(&mut self, instance: usize, piece: &Piece, at: u64, from: From) {
        if self.overlap.is_some() {
            let line = self.instances[instance].line(piece.physical_address);
            line.expect("it was taken").arrives = Some(Arrival {
                at,
                cpu: piece.cpu,
                from,
            });
        }
    }

    /// Steps 3 to 5 from the first instance of `path` outwards.
    fn walk(&mut self, piece: &Piece, path: &[usize], waits: bool) -> Wait {
        let found = path.iter().position(|&instance| {
            self.others_come(instance, piece);
            let takes = self.takes(instance, piece);
            let at = self.looked_up.len();
            self.looked_up.push((instance, takes, true));
            let Piece {
                cpu,
                virtual_address,
                physical_address,
                size,
                ..
            } = *piece;
            let found = self.instances[instance].look_up(cpu, virtual_address, physical_address, size, takes);
            self.looked_up[at].2 = !found;
            found
        });
        if let Some(level) = found.filter(|&level| self.instances[path[level]].found_brought) {
            for &beyond in &path[level + 1..] {
                let takes = self.takes(beyond, piece);
                self.instances[beyond].would_be_looked_up(piece.physical_address, takes);
            }
        }

        let mut wait = Wait::default();
        let mut flushed = Vec::new();
        let mut supplied = false;
        if waits && self.data_paths.len() > 1 {
            supplied = self.coherence(piece, found.map(|level| path[level]), &mut wait, &mut flushed);
        }
        let mut late = found.map_or(Wait::default(), |level| self.find_ahead(piece, path[level], waits));
        if let Some(level) = found
            && waits
            && self.overlap.is_some()
        {
            late = self.arrival(path[level], piece);
        }
        let mut upgrade = if found.is_some() { wait.sum() } else { 0 };
        let whose_upgrade = if wait.local > 0 { From::Local } else { From::Cache };
        match found {
            Some(level) if waits => {
                wait.cache += self.hit[path[level]].max(self.transferred.take().unwrap_or(0));
            }
            Some(_) => {}
            None if supplied => {}
            None => self.memory.serve(piece, waits, &mut wait),
        }
        let mut comes = None;
        if waits
            && piece.op != Op::Fetch
            && let Some(overlap) = &mut self.overlap
        {
            let from = if found.is_some() { From::Cache } else { wait.from };
            let latency = Latency {
                upgrade,
                base: Wait::of(from, wait.sum() - upgrade),
                late,
                level: found.map(|level| self.instances[path[level]].cache.level),
                huge: piece.huge,
            };
            let address = piece.virtual_address;
            let share = overlap.hold(piece.cpu as usize, piece.op, piece.asked, self.near, &latency, address);
            comes = Some((share.done, if late.sum() > 0 { late.from } else { from }));
            wait = Wait::of(from, share.base);
            wait.add(&Wait::of(whose_upgrade, share.upgrade));
            late = Wait::of(late.from, share.late);
            (upgrade, self.tlb) = (share.upgrade, share.tlb);
        }
        if let Some(level) = found
            && waits
            && self.overlap.is_some()
        {
            self.instances[path[level]].counts[piece.cpu as usize].stall.late += late.sum();
        }
        if waits {
            self.answer(piece, path, found, upgrade, wait.sum() - upgrade);
        }
        wait.add(&late);

        let missed = &path[..found.unwrap_or(path.len())];
        let mut taken = false;
        for &instance in missed.iter().rev() {
            if self.takes(instance, piece) {
                self.fill(instance, piece);
                if let Some((at, from)) = comes {
                    self.comes(instance, piece, at, from);
                }
                taken = true;
            }
        }
        for line in flushed {
            self.land(&line, piece.cpu);
        }
        if piece.writes() {
            let request_is_the_write = found.is_none() && !taken;
            self.write(piece, path, found, request_is_the_write);
        }
        wait
    }

    /// Which cache answers for the wait.
    fn answer(&mut self, piece: &Piece, path: &[usize], found: Option<usize>, upgrade: u64, rest: u64) {
        let cpu = piece.cpu as usize;
        if let Some(level) = found {
            self.instances[path[level]].counts[cpu].stall.upgrade += upgrade;
            self.on_chip[cpu] += rest;
        }
        let beyond = if found.is_none() { rest } else { 0 };
        match found.unwrap_or(path.len()).checked_sub(1) {
            Some(missed) => self.instances[path[missed]].stalled(piece.cpu, piece.physical_address, rest, beyond),
            None if path.is_empty() => self.unclassed[cpu] += rest,
            None => self.instances[path[0]].counts[cpu].stall.hit += rest,
        }
    }

    fn takes(&self, instance: usize, piece: &Piece) -> bool {
        piece.op != Op::Write || self.instances[instance].cache.allocate_on_write
    }

    /// Step 5.
    fn write(&mut self, piece: &Piece, path: &[usize], found: Option<usize>, request_is_the_write: bool) {
        let looked_up = found.map_or(path.len(), |level| level + 1);
        for &instance in &path[..looked_up] {
            let instance = &mut self.instances[instance];
            let back = instance.cache.write == Write::Back;
            if let Some(line) = instance.line(piece.physical_address)
                && back
            {
                line.dirty = true;
                return;
            }
        }
        if looked_up < path.len() {
            // The read of a modify has been served.
            let write = Piece {
                op: Op::Write,
                ..*piece
            };
            self.walk(&write, &path[looked_up..], false);
        } else if !request_is_the_write {
            self.memory.store(piece.physical_address, piece.asked);
        }
    }

    /// The lines of others that came to the piece's set.
    pub fn others_come(&mut self, instance: usize, piece: &Piece) {
        let lines = self.instances[instance].others_due(piece.virtual_address, piece.physical_address, piece.asked);
        for _ in 0..lines {
            let (way, victim) = self.instances[instance].make_room(piece.virtual_address, piece.physical_address);
            if let Some(address) = victim {
                self.evict(instance, address, piece);
            }
            self.instances[instance].take_others(way, piece.virtual_address, piece.physical_address);
        }
    }

    pub fn fill(&mut self, instance: usize, piece: &Piece) {
        let (way, victim) = self.instances[instance].make_room(piece.virtual_address, piece.physical_address);
        if let Some(address) = victim {
            self.evict(instance, address, piece);
        }
        self.instances[instance].take(way, piece.virtual_address, piece.physical_address);
    }

    fn evict(&mut self, instance: usize, address: u64, piece: &Piece) {
        let cpu = piece.cpu as usize;
        let mut dirty = self.instances[instance].evict(address);
        if self.instances[instance].cache.inclusive {
            let line = address..address + u64::from(self.instances[instance].cache.line_bytes);
            for above in self.above(instance) {
                for (address, _) in self.instances[above].lines_in(&line) {
                    if self.instances[above].lose(address, false) {
                        let own = &self.instances[above].cpus;
                        let counted = if own.contains(&piece.cpu) {
                            cpu
                        } else {
                            own.start as usize
                        };
                        self.instances[above].counts[counted].writebacks += 1;
                        dirty = true;
                    }
                }
            }
        }
        if dirty {
            self.instances[instance].counts[cpu].writebacks += 1;
            let level = self.instances[instance].cache.level;
            let mut outwards = self.data_paths[cpu].clone();
            outwards.retain(|&other| self.instances[other].cache.level > level);
            if !self.dirty_first(&outwards, address) {
                self.memory.store(address, piece.asked);
            }
        }
    }

    /// The innermost write-back instance that holds the line becomes dirty, if there is one.
    fn dirty_first(&mut self, path: &[usize], address: u64) -> bool {
        for &instance in path {
            let instance = &mut self.instances[instance];
            let back = instance.cache.write == Write::Back;
            if let Some(line) = instance.line(address)
                && back
            {
                line.dirty = true;
                return true;
            }
        }
        false
    }

    /// Instances from which some path leads through this one.
    fn above(&self, instance: usize) -> Vec<usize> {
        let mut above = Vec::new();
        for path in self.fetch_paths.iter().chain(&self.data_paths) {
            if let Some(at) = path.iter().position(|&other| other == instance) {
                above.extend(&path[..at]);
            }
        }
        above.sort();
        above.dedup();
        above
    }

    /// The first cpu of the core: the cpus that share their innermost cache for data.
    fn core(&self, cpu: u32) -> u32 {
        let innermost = self.data_paths[cpu as usize].first();
        innermost.map_or(cpu, |&instance| self.instances[instance].cpus.start)
    }

    fn off_path(&self, cpu: u32) -> Vec<usize> {
        let core = self.core(cpu);
        let serves = |instance: &Instance| instance.cpus.clone().any(|other| self.core(other) == core);
        (0..self.instances.len())
            .filter(|&instance| !serves(&self.instances[instance]))
            .collect()
    }

    /// Who owns the block, who must give up or clean its lines, what that costs. Whether a dirty line served the piece.
    pub fn coherence(
        &mut self,
        piece: &Piece,
        found: Option<usize>,
        wait: &mut Wait,
        flushed: &mut Vec<Flushed>,
    ) -> bool {
        let core = self.core(piece.cpu);
        self.transferred = None;
        let number = piece.physical_address / self.block;
        let block = number * self.block..(number + 1) * self.block;
        let off_path = self.off_path(piece.cpu);
        let mut held: Vec<(usize, u64, bool)> = Vec::new();
        for &instance in &off_path {
            let lines = self.instances[instance].lines_in(&block);
            held.extend(lines.into_iter().map(|(address, dirty)| (instance, address, dirty)));
        }
        let dirty: Vec<usize> = held
            .iter()
            .filter(|(_, _, dirty)| *dirty)
            .map(|(instance, ..)| *instance)
            .collect();
        let meeting = self.meeting(piece.cpu, &dirty).filter(|_| !dirty.is_empty());
        if found.is_some() {
            self.transferred = meeting
                .map(|cache| self.transfer[cache])
                .filter(|&transfer| transfer > 0);
        }
        if self.owners.get(&number) == Some(&core) {
            assert!(held.is_empty(), "an owned block is held elsewhere");
        }

        if piece.writes() {
            if self.owners.get(&number) != Some(&core) {
                self.owners.insert(number, core);
                for &(instance, address, _) in &held {
                    self.instances[instance].lose(address, true);
                }
                if let Some(instance) = found {
                    self.instances[instance].counts[piece.cpu as usize].upgrades += 1;
                    let givers: Vec<usize> = held.iter().map(|(instance, ..)| *instance).collect();
                    if !givers.is_empty() && self.transferred.is_none() {
                        match self.meeting(piece.cpu, &givers) {
                            Some(cache) => wait.cache += self.hit[cache],
                            None => wait.local += self.memory.upgrade(piece) + self.memory.local,
                        }
                    }
                }
            }
            for &instance in &off_path {
                self.instances[instance].written_elsewhere(piece.physical_address, piece.size);
            }
        } else {
            let private = found.is_some_and(|instance| {
                let mut cpus = self.instances[instance].cpus.clone();
                cpus.all(|cpu| self.core(cpu) == core)
            });
            if private {
                self.transferred = None;
                return false;
            }
            if held.is_empty() {
                self.owners.insert(number, core);
            } else {
                self.owners.remove(&number);
            }
            for &(instance, address, _) in &held {
                if let Some(line) = self.instances[instance].line(address) {
                    line.dirty = false;
                }
            }
        }

        held.retain(|(_, _, dirty)| *dirty);
        for &(instance, address, _) in &held {
            let cpus = self.instances[instance].cpus.clone();
            flushed.push(Flushed { address, cpus });
        }
        let givers: Vec<usize> = held.iter().map(|(instance, ..)| *instance).collect();
        if found.is_some() || givers.is_empty() {
            return false;
        }
        match meeting {
            Some(cache) if self.transfer[cache] > 0 => wait.cache += self.transfer[cache],
            Some(cache) => wait.cache += self.hit[cache],
            None => self.memory.supply(piece, wait),
        }
        true
    }

    /// The innermost cache on the cpu's path for data that serves all cpus of some instances.
    fn meeting(&self, cpu: u32, givers: &[usize]) -> Option<usize> {
        let serves_all = |cache: usize| {
            let served = &self.instances[cache].cpus;
            givers
                .iter()
                .flat_map(|&giver| self.instances[giver].cpus.clone())
                .all(|cpu| served.contains(&cpu))
        };
        let mut path = self.data_paths[cpu as usize].iter().copied();
        path.find(|&cache| serves_all(cache))
    }

    /// Dirty data reaches the cache where the two paths meet, or memory.
    pub fn land(&mut self, line: &Flushed, cpu: u32) {
        let mut common = self.data_paths[cpu as usize].clone();
        common.retain(|&cache| {
            let served = &self.instances[cache].cpus;
            line.cpus.clone().all(|cpu| served.contains(&cpu))
        });
        self.dirty_first(&common, line.address);
    }
}
