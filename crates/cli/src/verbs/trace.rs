//! `domicile trace`: shows the contents of a trace.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use report::Table;
use serde_json::{Value, json};
use trace::{Event, Info, Item, Op, Ref};

use super::Done;
use crate::console::Console;
use crate::failure::Failure;
use crate::progress;

/// Look into a trace
#[derive(Subcommand)]
pub enum Trace {
    /// Show the program that a trace records, and counts of the trace's contents
    Info(Source),
    /// Print the references and events in the order in which they were recorded
    ///
    /// Without --json, this is the text format that `domicile import` reads; comments hold everything that the format
    /// cannot express.
    Cat {
        #[command(flatten)]
        source: Source,
        /// Stop after this many references
        #[arg(long, value_name = "N", value_parser = results::quantities::count)]
        limit: Option<u64>,
    },
}

#[derive(Args)]
pub struct Source {
    /// The trace
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    /// Skip damaged parts and read the rest
    #[arg(long)]
    salvage: bool,
}

impl Trace {
    pub fn run(&self, console: &mut Console) -> Done {
        match self {
            Trace::Info(source) => source.info(console)?,
            Trace::Cat { source, limit } => source.cat(*limit, console)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Opens a trace, for a verb that cannot salvage one.
pub fn open(file: &Path) -> Result<trace::Trace, Failure> {
    trace::Trace::open(file).map_err(|error| named(file, &error, ""))
}

/// Opens a trace, or the remains of a damaged one.
pub fn open_or_salvage(file: &Path, salvage: bool) -> Result<trace::Trace, Failure> {
    let opened = match salvage {
        true => trace::Trace::salvage(file),
        false => trace::Trace::open(file),
    };
    opened.map_err(|error| explain(file, &error))
}

/// Checks that a trace contains something to simulate.
pub fn to_simulate(opened: trace::Trace, file: &Path) -> Result<trace::Trace, Failure> {
    opened.check_references().map_err(|error| explain(file, &error))?;
    Ok(opened)
}

/// An error in a trace, with its file, for a verb that has `--salvage`.
pub fn explain(file: &Path, error: &trace::TraceError) -> Failure {
    let hint = match error {
        trace::TraceError::Damaged { .. } => ", or read what is left with `--salvage`",
        _ => "",
    };
    named(file, error, hint)
}

fn named(file: &Path, error: &trace::TraceError, hint: &str) -> Failure {
    match error {
        trace::TraceError::Open { .. } => Failure::work(format!("{error}; give the path of a trace")),
        error => Failure::work(format!("{}: {error}{hint}", file.display())),
    }
}

impl Source {
    fn open(&self) -> Result<trace::Trace, Failure> {
        open_or_salvage(&self.file, self.salvage)
    }

    fn info(&self, console: &mut Console) -> Result<(), Failure> {
        let trace = self.open()?;
        let bar = progress::unknown(&format!("reading {}", self.file.display()));
        let info = trace::info(&trace);
        bar.finish_and_clear();
        let info = info.map_err(|error| explain(&self.file, &error))?;
        if console.json() {
            return console.line(&info);
        }
        console.text(&described(&info).facts(NAMES))
    }

    fn cat(&self, limit: Option<u64>, console: &mut Console) -> Result<(), Failure> {
        let trace = self.open()?;
        let numbers: Vec<u64> = trace.threads().iter().map(|thread| thread.number).collect();
        let number = |thread: u32| numbers.get(thread as usize).copied().unwrap_or(u64::from(thread));
        let mut left = limit.unwrap_or(u64::MAX);
        let mut barriers = HashMap::new();
        for item in trace.cat() {
            if left == 0 {
                break;
            }
            match item.map_err(|error| explain(&self.file, &error))? {
                Item::Ref { thread, reference } => {
                    left -= 1;
                    if console.json() {
                        let pc = trace.sites().get(reference.site as usize).map_or(0, |site| site.pc);
                        console.line(&reference_json(number(thread), &reference, pc))?;
                    } else {
                        console.text(&reference_text(number(thread), &reference))?;
                    }
                }
                Item::Event { thread, event, .. } if console.json() => {
                    let mut value = serde_json::to_value(&event).unwrap_or(Value::Null);
                    value["thread"] = number(thread).into();
                    console.line(&value)?;
                }
                Item::Event { thread, event, .. } => {
                    console.text(&event_text(number(thread), &event, &mut barriers))?;
                }
            }
        }
        Ok(())
    }
}

fn op_name(op: Op) -> (&'static str, &'static str) {
    match op {
        Op::Read => ("r", "read"),
        Op::Write => ("w", "write"),
        Op::Modify => ("m", "modify"),
        Op::Fetch => ("i", "fetch"),
        Op::Prefetch => ("p", "prefetch"),
    }
}

fn reference_text(thread: u64, reference: &Ref) -> String {
    let op = op_name(reference.op).0;
    format!("{thread} {op} {:x} {}\n", reference.addr, reference.size)
}

/// Addresses are strings: not every reader of JSON supports 64-bit numbers.
fn reference_json(thread: u64, reference: &Ref, pc: u64) -> Value {
    json!({
        "thread": thread,
        "op": op_name(reference.op).1,
        "addr": format!("{:#x}", reference.addr),
        "bytes": reference.size,
        "instructions": reference.insns,
        "pc": format!("{pc:#x}"),
    })
}

/// A barrier is one line once all its threads have arrived; the two ends of a work item are lines, too; everything else
/// is a comment.
fn event_text(thread: u64, event: &Event, arrived: &mut HashMap<u64, u32>) -> String {
    match event {
        Event::WorkBegin { hints } => {
            let hints: String = hints.iter().map(|hint| format!(" {hint:x}")).collect();
            return format!("{thread} begin{hints}\n");
        }
        Event::WorkEnd => return format!("{thread} end\n"),
        _ => {}
    }
    let mut text = match serde_json::to_string(event) {
        Ok(json) => format!("# {thread} {json}\n"),
        Err(_) => String::new(),
    };
    if let Event::Barrier { object, threads } = event {
        let count = arrived.entry(*object).or_default();
        *count += 1;
        if *count >= *threads {
            *count = 0;
            text += &format!("b {threads}\n");
        }
    }
    text
}

/// Columns that the names of facts take.
const NAMES: usize = 13;

fn described(info: &Info) -> Table {
    let count = report::count;
    let mut facts: Vec<(&str, String)> = Vec::new();
    let header = &info.header;
    let command = std::iter::once(&header.program).chain(&header.arguments);
    facts.push(("program", command.map(String::as_str).collect::<Vec<_>>().join(" ")));
    facts.push(("origin", header.origin.clone()));
    if !header.machine.is_empty() {
        facts.push(("recorded on", header.machine.clone()));
    }
    let mut references = format!(
        "{}: {} reads, {} writes, {} modifies, {} fetches",
        count(info.references),
        count(info.reads),
        count(info.writes),
        count(info.modifies),
        count(info.fetches)
    );
    if info.prefetches > 0 {
        references += &format!(", {} prefetches", count(info.prefetches));
    }
    facts.push(("references", references));
    facts.push((
        "instructions",
        info.instructions.map_or("not counted".to_string(), count),
    ));
    let pages = format!("{} of data, {} of code", count(info.data_pages), count(info.code_pages));
    facts.push(("pages", format!("{pages} ({} each)", report::bytes(info.page_bytes))));
    let names = format!(
        "{} symbols, {} modules, {} call stacks",
        info.symbols, info.modules, info.stacks
    );
    facts.push(("names", names));
    facts.push((
        "events",
        format!(
            "{}: {} allocations, {} barriers, {} locks, {} work items",
            count(info.events),
            count(info.allocations),
            count(info.barriers),
            count(info.locks),
            count(info.work_items)
        ),
    ));
    if info.slots + info.data_sets > 0 {
        let what = format!(
            "{} defined, data sets allocated {} times",
            count(info.slots),
            count(info.data_sets)
        );
        facts.push(("cache slots", what));
    }
    if info.teams > 0 {
        facts.push(("teams", format!("{} parallel regions", count(info.teams))));
    }
    if let Some(said) = &info.summaries {
        let mut what = format!(
            "{} described by the compiler, of {} loops and {} arrays",
            count(said.given),
            count(said.loops),
            count(said.arrays)
        );
        if said.malformed > 0 {
            what += &format!("; {} cannot be read", count(said.malformed));
        }
        facts.push(("summaries", what));
    }
    if !info.phases.is_empty() {
        facts.push(("phases", info.phases.join(", ")));
    }
    if info.windows > 0 {
        facts.push((
            "windows",
            format!("{}; what lies between them was not recorded", info.windows),
        ));
    }
    for note in advise::limits(&info.header) {
        facts.push(("note", note));
    }
    let size = format!(
        "{}, {:.3} bytes a reference",
        report::bytes(info.bytes),
        info.bytes_per_reference
    );
    facts.push(("file", size));
    for damage in &info.damage {
        facts.push(("damage", format!("at byte {}: {}", damage.offset, damage.what)));
    }
    let mut table = Table::of_facts("Trace", facts);
    for thread in &info.threads {
        let process = info.processes.get(thread.process as usize);
        let pid = process.filter(|_| info.processes.len() > 1);
        let pid = pid.map_or(String::new(), |process| format!(" of process {}", process.pid));
        let name = if thread.name.is_empty() {
            String::new()
        } else {
            format!(" ({})", thread.name)
        };
        table.row([
            format!("thread {:<6}", thread.number).into(),
            format!(
                "{} references, {} events{pid}{name}",
                count(thread.references),
                count(thread.events)
            )
            .into(),
        ]);
    }
    table
}
