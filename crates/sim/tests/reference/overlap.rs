//! A processor that overlaps, as the contract describes it: when each instruction entered and left is written down, one
//! after the other.

use std::collections::HashMap;

use machine::Machine;
use results::ProgramChange;
use trace::Op;

use super::hierarchy::Wait;

/// The time that a piece would wait by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    pub upgrade: u64,
    /// The hit, or the time from beyond.
    pub base: Wait,
    /// For a line that has not come: beyond the hit.
    pub late: Wait,
    /// The level of the cache that has it, if one has, and whether its page is on a huge one.
    pub level: Option<u8>,
    pub huge: bool,
}

impl Latency {
    pub fn sum(&self) -> u64 {
        self.upgrade + self.base.sum() + self.late.sum()
    }
}

/// The time that the cpu does wait.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    pub tlb: u64,
    pub upgrade: u64,
    pub base: u64,
    pub late: u64,
    /// When the line comes.
    pub done: u64,
}

/// The current reference.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference {
    pub thread: u32,
    pub site: u32,
    /// The time at which the source of its address has come.
    pub address: u64,
    /// When a prefetch of the program has asked for it.
    ahead: Option<u64>,
    first: bool,
}

#[derive(Clone, Debug)]
struct Cpu {
    /// When each instruction left, from one on that was there before the first.
    left: Vec<u64>,
    /// When the last one entered, and all of them.
    entered: u64,
    entering: Vec<u64>,
    /// When requests were asked for and when they come, from the first, and the numbers of their lines.
    requests: Vec<(u64, u64, u64)>,
    /// When stores have left the buffer, from the first.
    stores: Vec<u64>,
}

pub struct Overlap {
    window: usize,
    outstanding: usize,
    of_bank: usize,
    line_bytes: u64,
    /// Between two lines from a third level, memory, and memory on huge pages, and by cpu up to when one comes.
    line: [u64; 3],
    lines_until: Vec<u64>,
    store_buffer: usize,
    pub period: u64,
    cpus: Vec<Cpu>,
    depends: HashMap<u32, Vec<u32>>,
    /// By site, the time of an instruction beyond the period.
    paces: HashMap<u32, u64>,
    /// Sites that wait for one load of those: the one that was carried out last.
    either: std::collections::HashSet<u32>,
    /// By thread and site, when its loads came, and the number of the last of them among all loads.
    came: HashMap<(u32, u32), Vec<u64>>,
    last: HashMap<(u32, u32), usize>,
    loads: usize,
    /// By thread and site, the times at which its loads would have begun without a change.
    begins: HashMap<(u32, u32), Vec<u64>>,
    /// By site: links, and how many chains are followed; loads that are prefetched, and how far ahead.
    chains: HashMap<u32, usize>,
    ahead: HashMap<u32, usize>,
    pub at_hand: Reference,
    refill: u64,
    clock: u64,
    set_refill: u64,
    bank_refill: u64,
    /// By cpu and bank: the time until which it is taken.
    banks: HashMap<(usize, u64), u64>,
    set_rewrite: u64,
    /// Page walks at a time (0: any number), and when those of each cpu were over.
    walkers: usize,
    /// For so long a walk keeps one.
    walk: u64,
    walks: Vec<Vec<u64>>,
    /// By cpu, instructions since its last reference that make none.
    between: Vec<u64>,
    /// By site: mispredictions in 1024 references, and the loads that they wait for; by cpu and site: how many 1024ths are due.
    mispredictions: HashMap<u32, (u64, Vec<u32>)>,
    due: HashMap<(usize, u32), u64>,
    misprediction: u64,
    /// By cpu and set: the time until which it is taken, and the instructions of its requests.
    taken: HashMap<(usize, u64), u64>,
    requests: HashMap<(usize, u64), Vec<usize>>,
    /// By cpu and line: the turns of requests, and those of stores.
    turns: HashMap<(usize, u64), Vec<u64>>,
    rewrites: HashMap<(usize, u64), Vec<u64>>,
    /// True if the current piece waits for a turn that its line has already.
    pub joined: bool,
    begins_at: u64,
}

/// Line `a.c:N` is that of site N.
fn site_of(line: &str) -> u32 {
    let number = line.strip_prefix("a.c:").and_then(|number| number.parse().ok());
    number.expect("a line of the program")
}

/// All that a site waits for, directly or through others.
fn waits_for(depends: &HashMap<u32, Vec<u32>>, site: u32) -> Vec<u32> {
    let mut all: Vec<u32> = depends.get(&site).cloned().unwrap_or_default();
    let mut next = 0;
    while let Some(site) = all.get(next).copied() {
        let on = depends.get(&site).into_iter().flatten();
        let more: Vec<u32> = on.copied().filter(|site| !all.contains(site)).collect();
        all.extend(more);
        next += 1;
    }
    all
}

fn is_link(depends: &HashMap<u32, Vec<u32>>, site: u32) -> bool {
    waits_for(depends, site).contains(&site)
}

/// Returns whether a site is no link and waits for none.
fn is_known_ahead(depends: &HashMap<u32, Vec<u32>>, site: u32) -> bool {
    let mut all = waits_for(depends, site);
    all.push(site);
    !all.iter().any(|site| is_link(depends, *site))
}

/// The time at which fewer than `room` of these are still to come.
fn room(times: &[u64], room: usize) -> u64 {
    let mut times = times.to_vec();
    times.sort_by_key(|time| std::cmp::Reverse(*time));
    times.get(room - 1).copied().unwrap_or(0)
}

impl Overlap {
    pub fn new(
        machine: &Machine,
        depends: &[trace::Dependence],
        paces: &[trace::Pace],
        mispredictions: &[trace::Misprediction],
        changes: &[ProgramChange],
    ) -> Option<Overlap> {
        let core = machine.core?;
        let period = super::units(1000.0 / machine.clock_mhz / core.instructions_per_clock);
        let beyond = |pace: &trace::Pace| {
            let takes = super::units(1000.0 / machine.clock_mhz * f64::from(pace.clocks) / 1024.0);
            (pace.site, takes.saturating_sub(period))
        };
        let either = depends.iter().filter(|one| one.either).map(|one| one.site).collect();
        let depends: HashMap<u32, Vec<u32>> = depends.iter().map(|one| (one.site, one.on.clone())).collect();
        let (mut chains, mut ahead) = (HashMap::new(), HashMap::new());
        for change in changes {
            match change {
                ProgramChange::Chains { line, chains: many, .. } => {
                    let site = site_of(line);
                    let looked_at = waits_for(&depends, site).into_iter().chain([site]);
                    chains.extend(
                        looked_at
                            .filter(|site| is_link(&depends, *site))
                            .map(|site| (site, *many as usize)),
                    );
                }
                ProgramChange::Prefetch { line, ahead: far, .. } if is_known_ahead(&depends, site_of(line)) => {
                    ahead.insert(site_of(line), *far as usize);
                }
                _ => {}
            }
        }
        Some(Overlap {
            chains,
            ahead,
            begins: HashMap::new(),
            window: core.window as usize,
            outstanding: core.outstanding as usize,
            of_bank: core.outstanding_of_bank as usize,
            line: [core.line_ns, core.memory_line_ns, core.huge_memory_line_ns].map(super::units),
            lines_until: vec![0; machine.cpus as usize],
            line_bytes: machine
                .caches
                .iter()
                .filter(|cache| cache.kind != machine::Kind::Instruction)
                .min_by_key(|cache| cache.level)
                .map_or(64, |cache| cache.line_bytes.into()),
            store_buffer: core.store_buffer as usize,
            period,
            paces: paces.iter().map(beyond).collect(),
            cpus: vec![
                Cpu {
                    left: vec![0],
                    entered: 0,
                    entering: vec![0],
                    requests: Vec::new(),
                    stores: Vec::new(),
                };
                machine.cpus as usize
            ],
            depends,
            either,
            came: HashMap::new(),
            last: HashMap::new(),
            loads: 0,
            at_hand: Reference::default(),
            refill: 0,
            clock: 0,
            set_refill: super::units(core.set_refill_ns),
            bank_refill: super::units(core.bank_refill_ns),
            banks: HashMap::new(),
            set_rewrite: super::units(core.set_rewrite_ns),
            walkers: machine.tlb.as_ref().map_or(0, |tlb| tlb.walkers as usize),
            walk: super::units(machine.tlb.as_ref().map_or(0.0, |tlb| tlb.refill_ns)),
            walks: vec![Vec::new(); machine.cpus as usize],
            between: vec![0; machine.cpus as usize],
            mispredictions: mispredictions
                .iter()
                .map(|one| (one.site, (u64::from(one.per_1024), one.on.clone())))
                .collect(),
            due: HashMap::new(),
            misprediction: super::units(core.misprediction_ns),
            taken: HashMap::new(),
            requests: HashMap::new(),
            turns: HashMap::new(),
            rewrites: HashMap::new(),
            joined: false,
            begins_at: 0,
        })
    }

    /// Something else than this cpu's instructions and data may have moved the clock on.
    pub fn look_at(&mut self, number: usize, clock: u64) {
        let cpu = &mut self.cpus[number];
        let left = cpu.left.last_mut().expect("there is one");
        if *left != clock {
            (*left, cpu.entered) = (clock, clock);
            self.between[number] = 0;
        }
        *cpu.entering.last_mut().expect("there is one") = cpu.entered;
    }

    /// Instructions pass; `clock`: before them.
    pub fn instructions(&mut self, cpu: usize, count: u64, clock: u64) {
        self.look_at(cpu, clock);
        let cpu = &mut self.cpus[cpu];
        let mut last = clock;
        for _ in 0..count {
            let number = cpu.left.len();
            let room = number.checked_sub(self.window).map_or(0, |before| cpu.left[before]);
            cpu.entered = cpu.entered.max(room) + self.period;
            last += self.period;
            cpu.left.push(last);
            cpu.entering.push(cpu.entered);
        }
    }

    /// The instructions of a reference, which have passed, wait for each other. Returns how long.
    pub fn wait_for_each_other(&mut self, cpu: usize, site: u32, count: u64) -> u64 {
        let more = if self.ahead.contains_key(&site) {
            2 * self.period
        } else {
            0
        };
        let count = count + std::mem::take(&mut self.between[cpu]);
        let each = self.paces.get(&site).copied().unwrap_or(0);
        let cpu = &mut self.cpus[cpu];
        let first = cpu.left.len() - count as usize;
        for number in first..cpu.left.len() {
            cpu.left[number] += each * (number - first + 1) as u64;
            // They may have entered later, if others of them left later.
            let room = number.checked_sub(self.window).map_or(0, |before| cpu.left[before]);
            cpu.entering[number] = cpu.entering[number - 1].max(room) + self.period;
            cpu.entered = cpu.entering[number];
        }
        *cpu.left.last_mut().expect("there is one") += more;
        count * each + more
    }

    /// Instructions have passed that make no reference.
    pub fn no_reference(&mut self, cpu: usize, count: u64) {
        self.between[cpu] += count;
    }

    /// Branches before a reference may be mispredicted. Returns by how much that moves the clock.
    pub fn mispredict(&mut self, cpu: usize, thread: u32, site: u32) -> u64 {
        let Some((per_1024, on)) = self.mispredictions.get(&site) else {
            return 0;
        };
        let due = self.due.entry((cpu, site)).or_default();
        *due += per_1024;
        let count = *due / 1024;
        *due %= 1024;
        if count == 0 || self.misprediction == 0 {
            return 0;
        }
        let known = on.iter().filter_map(|from| self.came(thread, *from)).max().unwrap_or(0);
        let cpu = &mut self.cpus[cpu];
        cpu.entered = cpu.entered.max(known) + count * self.misprediction;
        *cpu.entering.last_mut().expect("there is one") = cpu.entered;
        let left = cpu.left.last_mut().expect("there is one");
        let time = cpu.entered.saturating_sub(*left);
        *left += time;
        time
    }

    /// The time at which the load of a site came that its dependents wait for.
    fn came(&self, thread: u32, site: u32) -> Option<u64> {
        let loads = self.came.get(&(thread, site))?;
        let before = self.chains.get(&site).copied().unwrap_or(1);
        loads.len().checked_sub(before).map(|number| loads[number])
    }

    /// A reference begins.
    pub fn reference(&mut self, thread: u32, site: u32) {
        let mut on = self.depends.get(&site).cloned().unwrap_or_default();
        if self.either.contains(&site) {
            on.sort_by_key(|from| self.last.get(&(thread, *from)).copied().unwrap_or(0));
            on = on.split_off(on.len().saturating_sub(1));
        }
        let came = |from: &u32| self.came(thread, *from);
        self.at_hand = Reference {
            thread,
            site,
            address: on.iter().filter_map(came).max().unwrap_or(0),
            ahead: None,
            first: true,
        };
    }

    /// The time at which a piece of data is asked for. `near`: it was found in its first cache, with set and line in
    /// `place` and the given number of ways.
    pub fn ask_of_set(
        &mut self,
        cpu: usize,
        op: Op,
        [clock, refill]: [u64; 2],
        near: bool,
        (set, line): (u64, u64),
        (ways, address): (u64, u64),
    ) -> u64 {
        let asked = self.ask(cpu, op, clock, refill, near, address);
        self.joined = false;
        if self.set_refill == 0 && self.bank_refill == 0 {
            return asked;
        }
        let entered = self.cpus[cpu].entered;
        let number = self.cpus[cpu].left.len();
        let begins = self.begins_at + self.refill;
        let turns = self.turns.entry((cpu, line)).or_default();
        let last = turns.last().copied().unwrap_or(0);
        let taken = self.taken.entry((cpu, set)).or_default();
        let turn = if near {
            asked
        } else if last > begins.max(entered) {
            self.joined = true;
            last
        } else {
            let bank = self.banks.entry((cpu, address / self.line_bytes % 4)).or_default();
            let turn = asked.max(*taken).max(*bank);
            *bank = (*bank).max(entered) + self.bank_refill;
            turns.push(turn);
            *taken = (*taken).max(entered) + self.set_refill;
            self.requests.entry((cpu, set)).or_default().push(number);
            turn
        };
        let requests = self.requests.entry((cpu, set)).or_default();
        let within = requests.iter().filter(|request| **request + self.window > number);
        let replaced = within.count() >= ways as usize;
        let writes = matches!(op, Op::Write | Op::Modify);
        if writes && replaced && self.set_refill > 0 {
            let rewrites = self.rewrites.entry((cpu, line)).or_default();
            if rewrites.last().is_none_or(|last| *last <= entered) {
                rewrites.push((*taken).max(entered));
                *taken = (*taken).max(entered) + self.set_rewrite;
            }
        }
        turn
    }

    /// The time at which a piece is asked for, if sets take any number of lines at once.
    pub fn ask(&mut self, cpu: usize, op: Op, clock: u64, refill: u64, near: bool, address: u64) -> u64 {
        self.look_at(cpu, clock);
        self.clock = clock;
        let number = cpu;
        let cpu = &self.cpus[cpu];
        let begins = match op {
            Op::Write if near => clock,
            Op::Write => clock.max(room(&cpu.stores, self.store_buffer)),
            _ => {
                let Reference { thread, site, .. } = self.at_hand;
                let own = self.depends.get(&site).is_some_and(|on| on.contains(&site));
                let begins = if own && op == Op::Modify { clock } else { cpu.entered };
                let begins = begins.max(self.at_hand.address);
                if let Some(far) = self.ahead.get(&site).filter(|_| self.at_hand.first) {
                    let all = self.begins.entry((thread, site)).or_default();
                    all.push(begins);
                    self.at_hand.ahead = (all.len() - 1).checked_sub(*far).map(|number| all[number]);
                }
                begins.min(self.at_hand.ahead.unwrap_or(u64::MAX))
            }
        };
        self.begins_at = begins;
        let held = refill.min(self.walk);
        let mut walked = begins + held;
        if held > 0 && self.walkers > 0 {
            walked = begins.max(room(&self.walks[number], self.walkers)) + held;
            self.walks[number].push(walked);
        }
        walked += refill - held;
        self.refill = walked - begins;
        match near {
            true => walked,
            false => self.room_for(number, walked, address),
        }
    }

    /// When a cpu may ask for the line at an address, if it has asked for it at `begins` without other requests.
    fn room_for(&self, cpu: usize, begins: u64, address: u64) -> u64 {
        let Cpu { entered, requests, .. } = &self.cpus[cpu];
        let bank = |line: u64| line % 4;
        let same = |line: u64| bank(line) == bank(address / self.line_bytes);
        let has_room = |at: u64, most: usize, of: &dyn Fn(u64) -> bool| {
            let under_way = requests
                .iter()
                .filter(|(asked, done, line)| of(*line) && *asked <= at && at < *done);
            most == 0 || under_way.count() < most
        };
        // Room comes when a request is done.
        let first = begins.max(*entered);
        let mut times: Vec<u64> = requests
            .iter()
            .map(|(_, done, _)| *done)
            .filter(|done| *done > first)
            .collect();
        times.push(first);
        times.sort_unstable();
        let fits = |at: &u64| has_room(*at, self.outstanding, &|_| true) && has_room(*at, self.of_bank, &same);
        let found = times.into_iter().find(fits).expect("all requests are done in the end");
        if found == first { begins } else { found }
    }

    /// The delay of a line from far away by waiting for its turn.
    pub fn line_turn(&mut self, cpu: usize, asked: u64, level: Option<u8>, huge: bool) -> u64 {
        let [last_level, memory, huge_memory] = self.line;
        let first = |of: &[u64]| of.iter().copied().find(|between| *between > 0).unwrap_or(0);
        let line = match level {
            _ if self.line == [0; 3] => return 0,
            Some(level) if level < 3 => return 0,
            Some(_) => last_level,
            None if huge => first(&[huge_memory, memory, last_level]),
            None => first(&[memory, last_level]),
        };
        let (entered, until) = (self.cpus[cpu].entered, &mut self.lines_until[cpu]);
        let turn = asked.max(*until);
        *until = (*until).max(entered) + line;
        turn - asked
    }

    /// A request that no piece makes.
    pub fn request(&mut self, cpu: usize, asked: u64, done: u64, address: u64) {
        self.cpus[cpu].requests.push((asked, done, address / self.line_bytes));
    }

    /// The time that a piece with this request holds the cpu up.
    pub fn hold(&mut self, number: usize, op: Op, asked: u64, near: bool, latency: &Latency, address: u64) -> Share {
        let turn = match !near && !self.joined {
            true => self.line_turn(number, asked, latency.level, latency.huge),
            false => 0,
        };
        let takes = latency.sum() + turn;
        let done = asked + takes;
        let cpu = &mut self.cpus[number];
        if !near && !self.joined {
            cpu.requests.push((asked, done, address / self.line_bytes));
        }
        let (wait, refill) = if op == Op::Write {
            if near && takes == 0 {
                (0, 0)
            } else {
                let full = room(&cpu.stores, self.store_buffer);
                let wait = full.saturating_sub(self.clock);
                let before = cpu.stores.last().copied().unwrap_or(0);
                cpu.stores.push(done.max(before).max(self.clock + wait));
                (wait, 0)
            }
        } else {
            let Reference { thread, site, .. } = self.at_hand;
            let came = self.came.entry((thread, site)).or_default();
            let first = std::mem::take(&mut self.at_hand.first);
            match came.last_mut().filter(|_| !first) {
                Some(same) => *same = done.max(*same),
                None => came.push(done),
            }
            self.loads += 1;
            self.last.insert((thread, site), self.loads);
            (done.saturating_sub(self.clock), self.refill)
        };
        // It waits for the end of the piece's time.
        let late = wait.min(latency.late.sum());
        let upgrade = (wait - late).min(latency.upgrade);
        let tlb = wait.saturating_sub(takes).min(refill);
        // The pieces of an instruction, one after the other.
        *cpu.left.last_mut().expect("there is one") = self.clock + wait;
        Share {
            tlb,
            upgrade,
            base: wait - late - upgrade - tlb,
            late,
            done,
        }
    }
}
