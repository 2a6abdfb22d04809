//! Reference streams: a program's memory accesses, thread by thread, and the tables that give them meaning.
//!
//! A trace is written by [`Writer`], from a recording or by an importer ([`import`]), and read by
//! [`Trace`]: its tables at once, its references as one [`ThreadStream`] for each thread, in
//! constant memory.
//!
//! ```
//! use trace::{Batch, Header, Op, Process, Ref, Site, Thread, Trace, Writer};
//!
//! # fn main() -> Result<(), trace::TraceError> {
//! # let folder = tempfile::tempdir().unwrap();
//! let path = folder.path().join("walk.trace");
//! let mut writer = Writer::create(&path, &Header::default())?;
//! let process = writer.process(Process::default());
//! let thread = writer.thread(Thread { process, ..Thread::default() });
//! let site = writer.site(Site { pc: 0x401000, op: Op::Read, size: 8 });
//! for i in 0..1000 {
//!     writer.push(thread, Ref { addr: 0x10000 + 8 * i, site, insns: 3, op: Op::Read, size: 8 })?;
//! }
//! writer.finish()?;
//!
//! let trace = Trace::open(&path)?;
//! let mut stream = trace.thread(thread)?;
//! let mut batch = Batch::default();
//! let mut last = 0;
//! while stream.next(&mut batch)? {
//!     last = batch.refs.last().map_or(last, |r| r.addr);
//! }
//! assert_eq!(last, 0x10000 + 8 * 999);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod block;
mod cat;
mod chunk;
mod dependence;
mod destination;
mod error;
mod events;
pub mod import;
mod info;
pub mod limits;
mod model;
mod order;
mod reader;
mod register;
mod scan;
mod sink;
mod source;
mod stream;
pub mod synthetic;
mod table;
mod varint;
mod writer;

pub use block::FILE_MAGIC;
pub use cat::{Cat, Item};
pub use chunk::Body;
pub use dependence::Dependence;
pub use destination::Destination;
pub use error::{Damage, Place, TraceError};
pub use events::Piece;
pub use info::{Info, SummaryInfo, ThreadInfo, info};
pub use model::{
    Allocation, Array, Chosen, Event, Frame, Gaps, Header, Inlined, KernelPart, Location, Misprediction, Module, Op,
    Pace, Process, Ref, Site, SiteId, Stack, StackId, Symbol, Thread, ThreadId, Timed, Unknown,
};
pub use order::{OrderStream, Run};
pub use reader::Trace;
pub use stream::{Batch, ThreadStream};
pub use writer::{Options, Summary, Writer};
