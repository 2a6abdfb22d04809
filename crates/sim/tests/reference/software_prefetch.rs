//! Prefetches of the program, as the contract describes them.

use trace::Op;

use super::hierarchy::{Hierarchy, Piece, Wait};

/// A line that was asked for ahead of use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coming {
    /// Its time of arrival, and the wait of an access that has to wait for it.
    at: u64,
    takes: u64,
    from: From,
    found: bool,
}

/// The supplier of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum From {
    #[default]
    Cache,
    Local,
    Remote,
}

impl Coming {
    /// Counts restart: a later find is not counted.
    pub fn uncounted(&mut self) {
        self.found = true;
    }
}

/// The outcome of a cpu's prefetches.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prefetches {
    pub issued: u64,
    pub dropped_tlb: u64,
    pub dropped_unmapped: u64,
    pub already_present: u64,
    pub brought: u64,
    pub useful: u64,
    pub late: u64,
}

/// The cpus' prefetches under way.
pub struct SoftwarePrefetch {
    pub outstanding: usize,
    /// For each cpu, their times of arrival.
    pub under_way: Vec<Vec<u64>>,
    pub counts: Vec<Prefetches>,
}

impl Hierarchy {
    /// A prefetch of a page that the TLB has and that has a frame; how long it stalls the cpu.
    pub fn prefetch_ahead(&mut self, cpu: u32, virtual_address: u64, physical_address: u64, clock: u64) -> u64 {
        let path = self.data_path(cpu);
        if self.software_prefetch.is_none() {
            return 0;
        }
        let mut piece = Piece {
            cpu,
            op: Op::Read,
            virtual_address,
            physical_address,
            size: 1,
            asked: clock,
            refill: 0,
            huge: false,
        };
        let present = path.iter().any(|&instance| {
            self.others_come(instance, &piece);
            self.instances[instance].holds(physical_address)
        });
        let Some(prefetches) = &mut self.software_prefetch else {
            return 0;
        };
        let counts = &mut prefetches.counts[cpu as usize];
        if present {
            counts.already_present += 1;
            return 0;
        }
        counts.brought += 1;
        let mut now = clock;
        loop {
            let under_way = &mut prefetches.under_way[cpu as usize];
            under_way.sort();
            under_way.retain(|at| *at > now);
            if under_way.len() < prefetches.outstanding {
                break;
            }
            now = under_way[0];
        }
        piece.asked = now;
        let (mut wait, mut flushed) = (Wait::default(), Vec::new());
        let served = self.memory.served[cpu as usize];
        let coherent = self.memory_cpus() > 1;
        if !(coherent && self.coherence(&piece, None, &mut wait, &mut flushed)) {
            self.memory.serve(&piece, true, &mut wait);
        }
        self.memory.served[cpu as usize] = served;
        let at = now + wait.sum();
        let from = match (wait.cache, wait.local) {
            (0, 0) => From::Remote,
            (0, _) => From::Local,
            _ => From::Cache,
        };
        let outermost = *path.last().expect("the machine has caches for data");
        self.fill(outermost, &piece);
        self.instances[outermost].taken_ahead(physical_address);
        let line = self.instances[outermost].line(physical_address);
        line.expect("it was filled").coming = Some(Coming {
            at,
            takes: wait.sum(),
            from,
            found: false,
        });
        for line in flushed {
            self.land(&line, cpu);
        }
        if let Some(prefetches) = &mut self.software_prefetch {
            prefetches.under_way[cpu as usize].push(at);
        }
        now - clock
    }

    /// A piece found its line in an instance: its wait beyond the hit if the line is still on its way.
    pub fn find_ahead(&mut self, piece: &Piece, instance: usize, waits: bool) -> Wait {
        let mut wait = Wait::default();
        let hit = self.hit[instance];
        let Some(prefetches) = &mut self.software_prefetch else {
            return wait;
        };
        let Some(line) = self.instances[instance].line(piece.physical_address) else {
            return wait;
        };
        let Some(coming) = &mut line.coming else { return wait };
        let counts = &mut prefetches.counts[piece.cpu as usize];
        let first = !coming.found;
        coming.found = true;
        let Coming { at, takes, from, .. } = *coming;
        if at <= piece.asked {
            line.coming = None;
        }
        counts.useful += u64::from(first);
        let rest = at.saturating_sub(piece.asked).min(takes).saturating_sub(hit);
        if waits && rest > 0 {
            counts.late += u64::from(first);
            match from {
                From::Cache => wait.cache = rest,
                From::Local => wait.local = rest,
                From::Remote => wait.remote = rest,
            }
            self.instances[instance].counts[piece.cpu as usize].stall.late += rest;
        }
        wait
    }
}
