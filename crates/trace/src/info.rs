//! The content of a trace, counted.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::error::{Damage, TraceError};
use crate::model::{Event, Header, Op, Process};
use crate::reader::Trace;
use crate::stream::Batch;

/// Counts of a whole trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Info {
    pub header: Header,
    pub processes: Vec<Process>,
    pub references: u64,
    pub reads: u64,
    pub writes: u64,
    pub modifies: u64,
    pub fetches: u64,
    /// Software prefetches; they are references, but touch no page.
    pub prefetches: u64,
    /// `None` if the trace does not count them.
    pub instructions: Option<u64>,
    pub events: u64,
    pub barriers: u64,
    pub locks: u64,
    pub allocations: u64,
    /// Work items that the program marked.
    pub work_items: u64,
    /// Cache slots that the program defined, and allocations of data sets to them.
    pub slots: u64,
    pub data_sets: u64,
    /// Samples of the call stack.
    pub call_stacks: u64,
    /// OpenMP's parallel regions with more than one thread.
    pub teams: u64,
    /// The compiler's summaries of the program's loops; `None` if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summaries: Option<SummaryInfo>,
    /// Phases that the program named, in order of their first appearance.
    pub phases: Vec<String>,
    /// Representative windows; 0 if the whole run was recorded.
    pub windows: u64,
    pub threads: Vec<ThreadInfo>,
    pub sites: u64,
    pub stacks: u64,
    pub modules: u64,
    pub symbols: u64,
    pub chunks: u64,
    /// Bytes of the file.
    pub bytes: u64,
    pub bytes_per_reference: f64,
    /// Bytes of a page, and different pages touched by data references and by fetches.
    pub page_bytes: u64,
    pub data_pages: u64,
    pub code_pages: u64,
    pub damage: Vec<Damage>,
}

/// Counts of [`Event::Summary`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SummaryInfo {
    /// Summaries given: one for each loop, and more where its arrays or bounds changed.
    #[serde(rename = "told")]
    pub given: u64,
    /// Different loops, by their places in the source.
    pub loops: u64,
    /// Different arrays, by process, start and bytes.
    pub arrays: u64,
    /// Those that are not a `policy::cdpc::Loop` as JSON; no other count but `given` includes them.
    pub malformed: u64,
}

/// Counts of one thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ThreadInfo {
    pub number: u64,
    pub process: u32,
    pub name: String,
    pub references: u64,
    pub reads: u64,
    pub writes: u64,
    pub modifies: u64,
    pub fetches: u64,
    pub prefetches: u64,
    pub events: u64,
}

/// The most phase names that are listed, since a program may make up any number.
const PHASES: usize = 256;

/// Reads the whole trace and counts. Memory grows with the pages that the program touched.
pub fn info(trace: &Trace) -> Result<Info, TraceError> {
    let page_bytes = match trace.header().page_bytes {
        n if n.is_power_of_two() => n,
        _ => 4096,
    };
    let mut info = Info {
        header: trace.header().clone(),
        processes: trace.processes().to_vec(),
        references: 0,
        reads: 0,
        writes: 0,
        modifies: 0,
        fetches: 0,
        prefetches: 0,
        instructions: trace.instructions(),
        events: 0,
        barriers: 0,
        locks: 0,
        allocations: 0,
        work_items: 0,
        slots: 0,
        data_sets: 0,
        call_stacks: 0,
        teams: 0,
        summaries: None,
        phases: Vec::new(),
        windows: 0,
        threads: Vec::new(),
        sites: trace.sites().len() as u64,
        stacks: trace.stacks().len() as u64,
        modules: trace.modules().len() as u64,
        symbols: trace.symbols().len() as u64,
        chunks: 0,
        bytes: trace.bytes(),
        bytes_per_reference: 0.0,
        page_bytes,
        data_pages: 0,
        code_pages: 0,
        damage: trace.damage().to_vec(),
    };
    let mut pages = Pages::new(page_bytes);
    let mut said = Said::default();
    let mut batch = Batch::default();
    for (id, thread) in trace.threads().iter().enumerate() {
        let mut counts = ThreadInfo {
            number: thread.number,
            process: thread.process,
            name: thread.name.clone(),
            ..ThreadInfo::default()
        };
        let mut stream = trace.thread(id as u32)?;
        while stream.next(&mut batch)? {
            info.chunks += 1;
            let mut by_op = [0u64; 5];
            for r in &batch.refs {
                by_op[r.op as usize] += 1;
                if r.op != Op::Prefetch {
                    pages.touch(thread.process, r.addr, r.size, r.op == Op::Fetch);
                }
            }
            counts.reads += by_op[Op::Read as usize];
            counts.writes += by_op[Op::Write as usize];
            counts.modifies += by_op[Op::Modify as usize];
            counts.fetches += by_op[Op::Fetch as usize];
            counts.prefetches += by_op[Op::Prefetch as usize];
            counts.references += batch.refs.len() as u64;
            counts.events += batch.events.len() as u64;
            for timed in &batch.events {
                info.event(&timed.event);
                said.event(thread.process, &timed.event);
            }
        }
        info.damage.extend_from_slice(stream.skipped());
        info.reads += counts.reads;
        info.writes += counts.writes;
        info.modifies += counts.modifies;
        info.fetches += counts.fetches;
        info.prefetches += counts.prefetches;
        info.references += counts.references;
        info.events += counts.events;
        info.threads.push(counts);
    }
    info.summaries = said.finish();
    info.data_pages = pages.data.len() as u64;
    info.code_pages = pages.code.len() as u64;
    if info.references > 0 {
        info.bytes_per_reference = info.bytes as f64 / info.references as f64;
    }
    Ok(info)
}

impl Info {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Barrier { .. } => self.barriers += 1,
            Event::Lock { .. } => self.locks += 1,
            Event::Alloc { .. } => self.allocations += 1,
            Event::WorkBegin { .. } => self.work_items += 1,
            Event::Window { .. } => self.windows += 1,
            Event::Slot { .. } => self.slots += 1,
            Event::Allocate { .. } => self.data_sets += 1,
            Event::Called { .. } => self.call_stacks += 1,
            Event::TeamBegin { threads, .. } if *threads != 1 => self.teams += 1,
            Event::Phase { name } if self.phases.len() < PHASES && !self.phases.contains(name) => {
                self.phases.push(name.clone());
            }
            _ => {}
        }
    }
}

/// The compilers' summaries: only the fields that distinguish loops and arrays.
#[derive(Default)]
struct Said {
    info: SummaryInfo,
    loops: HashSet<(u32, String)>,
    arrays: HashSet<(u32, u64, u64)>,
}

#[derive(Deserialize)]
struct LoopSaid {
    place: String,
    summaries: Vec<ArraySaid>,
}

#[derive(Deserialize)]
struct ArraySaid {
    start: u64,
    bytes: u64,
}

impl Said {
    fn event(&mut self, process: u32, event: &Event) {
        let Event::Summary { text } = event else { return };
        self.info.given += 1;
        match serde_json::from_str::<LoopSaid>(text) {
            Ok(said) => {
                let arrays = said.summaries.iter().map(|array| (process, array.start, array.bytes));
                self.arrays.extend(arrays);
                self.loops.insert((process, said.place));
            }
            Err(_) => self.info.malformed += 1,
        }
    }

    fn finish(self) -> Option<SummaryInfo> {
        (self.info.given > 0).then_some(SummaryInfo {
            loops: self.loops.len() as u64,
            arrays: self.arrays.len() as u64,
            ..self.info
        })
    }
}

/// The touched pages of each process.
struct Pages {
    shift: u32,
    data: HashSet<(u32, u64)>,
    code: HashSet<(u32, u64)>,
    /// Pages seen last, by their low bits: most references need not search the sets.
    recent: Vec<(u32, u64)>,
}

impl Pages {
    fn new(page_bytes: u64) -> Pages {
        let recent = vec![(u32::MAX, u64::MAX); 512];
        Pages {
            shift: page_bytes.trailing_zeros(),
            data: HashSet::new(),
            code: HashSet::new(),
            recent,
        }
    }

    fn touch(&mut self, process: u32, addr: u64, size: u16, fetch: bool) {
        let first = addr >> self.shift;
        let last = addr.saturating_add(u64::from(size.max(1)) - 1) >> self.shift;
        for page in first..=last {
            let slot = (page as usize & 255) << 1 | usize::from(fetch);
            if self.recent[slot] != (process, page) {
                self.recent[slot] = (process, page);
                if fetch {
                    self.code.insert((process, page))
                } else {
                    self.data.insert((process, page))
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SummaryInfo, info};
    use crate::model::{Event, Header, Process, Thread};
    use crate::{Trace, Writer};

    #[test]
    fn summaries_and_teams_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("said.trace");
        let mut writer = Writer::create(&path, &Header::default()).unwrap();
        let process = writer.process(Process::default());
        let thread = writer.thread(Thread {
            process,
            ..Thread::default()
        });
        let said = |place: &str, start: u64| Event::Summary {
            text: format!(
                r#"{{"place":"{place}","threads":2,"summaries":[{{"start":{start},"bytes":8}},{{"start":64,"bytes":8}}]}}"#
            ),
        };
        let team = |threads| Event::TeamBegin { object: 1, threads };
        for event in [
            said("one", 0),
            said("one", 16),
            said("two", 0),
            Event::Summary { text: "{}".into() },
            team(2),
            Event::TeamEnd { object: 1 },
            team(1),
            Event::TeamEnd { object: 1 },
        ] {
            writer.event(thread, event).unwrap();
        }
        writer.finish().unwrap();
        let info = info(&Trace::open(&path).unwrap()).unwrap();
        let expected = SummaryInfo {
            given: 4,
            loops: 2,
            arrays: 3,
            malformed: 1,
        };
        assert_eq!((info.summaries, info.teams), (Some(expected), 1));
    }
}
