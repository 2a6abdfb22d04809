//! Decisions about a program: which policies to try, which of its data a partition of the cache should keep, the gain
//! of each, and why, in words.
//!
//! [`advise()`] simulates a trace on a machine once, then everything that could matter by that run (colors, homes,
//! partitions, changes of the program), and lists what gains something as things to do; [`partition()`] examines cache
//! slots only. Nothing here reads files or prints.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let file = folder.path().join("sort.trace");
//! # let mut writer = trace::Writer::create(&file, &trace::Header::default())?;
//! # let process = writer.process(trace::Process::default());
//! # let thread = writer.thread(trace::Thread { process, ..Default::default() });
//! # let site = writer.site(trace::Site { pc: 0, op: trace::Op::Read, size: 4 });
//! # for at in 0..1000 {
//! #     // Two pages that are one cache apart.
//! #     let addr = 0x10_0000 + at % 2 * 0x20_0000;
//! #     writer.push(thread, trace::Ref { addr, site, insns: 1, op: trace::Op::Read, size: 4 })?;
//! # }
//! # writer.finish()?;
//! use advise::Settings;
//!
//! let trace = trace::Trace::open(&file)?;
//! let machine = machine::load("simos-r4400")?.with_cpus(1)?;
//! let advice = advise::advise(&trace, &machine, &Settings::default())?;
//! for todo in &advice.todo {
//!     println!("{}: {}", todo.because, todo.action);
//! }
//! println!("{}", advice.otherwise);
//! # assert_eq!(advice.baseline, "random");
//! # assert!(advice.todo.is_empty() && advice.otherwise.starts_with("Too short to tell"), "{advice:?}");
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod advice;
mod avoided;
mod basis;
mod causes;
mod cdpc;
mod facts;
mod faults;
mod gaps;
mod homes;
mod huge;
mod matters;
mod names;
mod native;
mod range;
mod regions;
mod samples;
mod settings;
mod shares;
mod sharing;
mod slots;
mod todo;
mod verdict;
mod words;
mod work;

use results::{Advice, SlotAdvice};
use sim::SimError;
use trace::Trace;

pub use advice::{advice_of, worst_lines, worst_source_lines, worst_structures};
pub use facts::limits;
pub use gaps::in_words as gaps_in_words;
pub use names::policies;
pub use settings::{Policies, Progress, Settings};
pub use sharing::{PlacementForm, matters as placement_matters, placement, placement_text};
pub use slots::gains as slots_gain;
pub use words::{cdpc_in_words, pairing_in_words, regions_in_words, slots_in_words};
pub use work::class_in_words;

/// The gain of placing a program's pages, ordering its work and partitioning the cache, and the parts of its time.
///
/// Fails if the trace cannot be read, if it lacks the data that advice rests on, or if a policy's name or parameter is wrong.
pub fn advise(trace: &Trace, machine: &machine::Machine, settings: &Settings) -> Result<Advice, SimError> {
    advice::advise(trace, machine, settings)
}

/// The gain of a partition of the outermost cache, compared with the policy that represents today's behavior. `None`:
/// the machine's outermost cache has no colors, so pages cannot partition it.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let trace = trace::Trace::open("sort.trace")?;
/// let machine = machine::load("zen3-milan")?;
/// match advise::partition(&trace, &machine, &advise::Settings::default())? {
///     Some(slots) if advise::slots_gain(&slots) => std::fs::write("sort.slots", &slots.plan)?,
///     Some(slots) => println!("{}", slots.verdict),
///     None => println!("this machine's outermost cache has no colors"),
/// }
/// # Ok(())
/// # }
/// ```
pub fn partition(
    trace: &Trace,
    machine: &machine::Machine,
    settings: &Settings,
) -> Result<Option<SlotAdvice>, SimError> {
    slots::partition(trace, machine, settings)
}
