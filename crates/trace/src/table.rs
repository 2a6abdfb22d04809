//! The tables: sites as bytes, everything else as JSON, written as they grow.

use serde::{Deserialize, Serialize};

use crate::dependence::Dependence;
use crate::error::{TraceError, within};
use crate::limits;
use crate::model::{
    Array, Header, Location, Misprediction, Module, Op, Pace, Process, Site, SiteId, Stack, Symbol, Thread,
};
use crate::varint::{Cursor, put, put_signed};

/// The rows that a Tables block adds. Processes, threads and stacks are numbered by their position in the table, so the
/// block gives the position of its first one.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Tables {
    /// Replaces the Header block: an importer learns some facts at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<Header>,
    #[serde(skip_serializing_if = "nothing")]
    pub first_process: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<Process>,
    #[serde(skip_serializing_if = "nothing")]
    pub first_thread: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<Thread>,
    /// Threads written before, with new facts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub renamed: Vec<(u32, Thread)>,
    #[serde(skip_serializing_if = "nothing")]
    pub first_stack: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<Stack>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<Module>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub symbols: Vec<Symbol>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arrays: Vec<Array>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paces: Vec<Pace>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mispredictions: Vec<Misprediction>,
    /// `None`: the sources of addresses are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dependences: Option<Vec<Dependence>>,
}

fn nothing(number: &usize) -> bool {
    *number == 0
}

/// The largest valid number of clocks of 1024 instructions, or of mispredictions before 1024 references.
const MOST: u32 = 1 << 20;

impl Tables {
    pub fn is_empty(&self) -> bool {
        self.header.is_none()
            && self.processes.is_empty()
            && self.threads.is_empty()
            && self.renamed.is_empty()
            && self.stacks.is_empty()
            && self.modules.is_empty()
            && self.symbols.is_empty()
            && self.locations.is_empty()
            && self.arrays.is_empty()
            && self.paces.is_empty()
            && self.mispredictions.is_empty()
            && self.dependences.is_none()
    }

    /// As JSON blocks, none of them longer than a block of tables may be.
    pub fn into_blocks(self, blocks: &mut Vec<Vec<u8>>) -> Result<(), TraceError> {
        let json = serde_json::to_vec(&self).map_err(|e| TraceError::Refused(format!("a table: {e}")))?;
        if json.len() <= limits::TABLE_BYTES {
            blocks.push(json);
            return Ok(());
        }
        drop(json);
        let (front, back) = self
            .halves()
            .ok_or_else(|| TraceError::Refused("one entry of a table takes over 16 MiB".into()))?;
        front.into_blocks(blocks)?;
        back.into_blocks(blocks)
    }

    /// Cuts every list in two; `None` when there is nothing to cut.
    fn halves(mut self) -> Option<(Tables, Tables)> {
        fn cut<T>(list: &mut Vec<T>) -> Vec<T> {
            list.split_off(list.len().div_ceil(2))
        }
        let back = Tables {
            header: None,
            processes: cut(&mut self.processes),
            first_process: self.first_process + self.processes.len(),
            threads: cut(&mut self.threads),
            first_thread: self.first_thread + self.threads.len(),
            renamed: cut(&mut self.renamed),
            stacks: cut(&mut self.stacks),
            first_stack: self.first_stack + self.stacks.len(),
            modules: cut(&mut self.modules),
            symbols: cut(&mut self.symbols),
            locations: cut(&mut self.locations),
            arrays: cut(&mut self.arrays),
            paces: cut(&mut self.paces),
            mispredictions: cut(&mut self.mispredictions),
            dependences: self.dependences.as_mut().map(cut).filter(|back| !back.is_empty()),
        };
        (!back.is_empty()).then_some((self, back))
    }

    /// Adds a later block; it must continue where this one ends. The error says what does not fit.
    pub fn append(&mut self, mut more: Tables) -> Result<(), String> {
        let places = [
            (
                "process",
                more.first_process,
                more.processes.len(),
                self.processes.len(),
                limits::PROCESSES,
            ),
            (
                "thread",
                more.first_thread,
                more.threads.len(),
                self.threads.len(),
                limits::THREADS,
            ),
            (
                "stack",
                more.first_stack,
                more.stacks.len(),
                self.stacks.len(),
                limits::STACKS,
            ),
        ];
        for (what, first, count, known, allowed) in places {
            if count > 0 && first != known {
                return Err(format!(
                    "{what} {first} follows {known} others: a block of tables is missing"
                ));
            }
            if known + count > allowed {
                return Err(format!("more than {allowed} entries in the table of {what} entries"));
            }
        }
        if let Some(header) = more.header {
            self.header = Some(header);
        }
        self.processes.append(&mut more.processes);
        self.threads.append(&mut more.threads);
        for (number, thread) in more.renamed {
            let known = self.threads.len();
            *self
                .threads
                .get_mut(number as usize)
                .ok_or_else(|| format!("thread {number} is renamed, but there are {known}"))? = thread;
        }
        self.stacks.append(&mut more.stacks);
        self.modules.append(&mut more.modules);
        self.symbols.append(&mut more.symbols);
        self.locations.append(&mut more.locations);
        self.arrays.append(&mut more.arrays);
        self.paces.append(&mut more.paces);
        self.mispredictions.append(&mut more.mispredictions);
        if let Some(mut more) = more.dependences {
            self.dependences.get_or_insert_default().append(&mut more);
        }
        Ok(())
    }

    /// Checks that every process that is named exists.
    pub fn check(&self) -> Result<(), String> {
        let named = (self.threads.iter().map(|t| t.process))
            .chain(self.stacks.iter().map(|s| s.process))
            .chain(self.modules.iter().map(|m| m.process))
            .chain(self.symbols.iter().map(|s| s.process))
            .chain(self.locations.iter().map(|l| l.process))
            .chain(self.arrays.iter().map(|a| a.process));
        match named.into_iter().find(|&p| p as usize >= self.processes.len()) {
            Some(p) => Err(format!(
                "the tables name process {p}, but there are {}",
                self.processes.len()
            )),
            None => Ok(()),
        }
    }

    /// Checks that the sites that these tables name are below `sites`. With `mend`, invalid rows are left out.
    pub fn check_sites(&mut self, sites: usize, mend: bool) -> Result<(), String> {
        fn keep<T>(list: &mut Vec<T>, mend: bool, what: &str, known: impl Fn(&T) -> bool) -> Result<(), String> {
            if mend {
                list.retain(&known);
            }
            match list.iter().all(known) {
                true => Ok(()),
                false => Err(format!("a {what} names a site")),
            }
        }
        let known = |site: &SiteId| (*site as usize) < sites;
        let dependences = self.dependences.as_mut().map_or(Ok(()), |dependences| {
            keep(dependences, mend, "dependence", |one| {
                known(&one.site) && one.on.iter().all(known)
            })
        });
        dependences
            .and_then(|()| {
                keep(&mut self.paces, mend, "pace", |one| {
                    known(&one.site) && one.clocks <= MOST
                })
            })
            .and_then(|()| {
                keep(&mut self.mispredictions, mend, "misprediction", |one| {
                    known(&one.site) && one.on.iter().all(known) && one.per_1024 <= MOST
                })
            })
            .map_err(|what| format!("{what} that is not one of the {sites}, or is beyond all bounds"))
    }
}

/// Appends sites: program counter as difference to the previous one, operation, bytes.
pub fn encode_sites(sites: &[Site], out: &mut Vec<u8>) {
    let mut before = 0u64;
    for site in sites {
        put_signed(out, site.pc.wrapping_sub(before) as i64);
        out.push(site.op as u8);
        put(out, u64::from(site.size));
        before = site.pc;
    }
}

/// Reads the `count` sites of a block at `offset`.
pub fn decode_sites(payload: &[u8], count: usize, offset: u64, sites: &mut Vec<Site>) -> Result<(), TraceError> {
    within(offset, "sites in a block", count as u64, limits::SITES_PER_BLOCK as u64)?;
    within(offset, "sites", (sites.len() + count) as u64, limits::SITES as u64)?;
    let mut cursor = Cursor::new(payload);
    let mut pc = 0u64;
    for _ in 0..count {
        let site =
            one_site(&mut cursor, &mut pc).ok_or_else(|| TraceError::damaged(offset, "a site cannot be read"))?;
        sites.push(site);
    }
    if cursor.is_empty() {
        Ok(())
    } else {
        Err(TraceError::damaged(offset, "bytes are left over after the sites"))
    }
}

fn one_site(cursor: &mut Cursor<'_>, pc: &mut u64) -> Option<Site> {
    *pc = pc.wrapping_add(cursor.signed()? as u64);
    let op = match cursor.byte()? {
        0 => Op::Read,
        1 => Op::Write,
        2 => Op::Modify,
        3 => Op::Fetch,
        4 => Op::Prefetch,
        _ => return None,
    };
    let size = u16::try_from(cursor.number()?).ok().filter(|&size| size > 0)?;
    Some(Site { pc: *pc, op, size })
}
