//! The types of everything that is reported: the counts of a simulation, advice, the outcome of a run.
//!
//! A result exists once, as a type that is written to JSON and read back. An unknown quantity of a run is `None`:
//! `null` in JSON, or no field at all where the part as a whole is missing, and never 0. Times are whole nanoseconds.
//!
//! [`saved`] adds the schema's version and the tool's to the output; [`Document`] reads the output of this version or
//! an older one.
#![forbid(unsafe_code)]

mod advice;
pub mod allocators;
mod cache;
mod causes;
mod command_line;
mod compare;
mod comparison;
mod condition;
mod daemon;
mod detail;
mod doctor;
mod document;
mod gains;
mod hints;
mod homes_advice;
mod lenient;
mod live_following;
mod live_homes;
mod live_regions;
mod number;
mod outcome;
mod placed;
mod placement;
mod profile;
mod program_change;
pub mod quantities;
mod recorded;
mod regions;
pub mod run;
mod saved;
#[cfg(feature = "schema")]
pub mod schema;
mod sharing;
mod short;
pub mod site;
mod timeline;
mod todo;
mod truth;
mod verified;
mod windows;

pub use advice::{Advice, CacheFacts, Facts, MachineFacts, Native, Share};
pub use cache::{CLASSES, Cache, ClassTotals, Misses, Stall, StallByClass};
pub use causes::{AddressSource, Alternative, Cause, CauseEvidence, CauseKind, FieldUse};
pub use command_line::command_line;
pub use compare::{Counted, Incomparable, Recordings, compare};
pub use comparison::{
    ALONE, ComparedMisses, ComparedRow, ComparedSide, Comparison, Difference, JudgedCondition, LEAST, SideKind, Verdict,
};
pub use condition::{Condition, NoSuchCache, NotACondition};
pub use daemon::{DaemonColors, DaemonFrames, DaemonMemory, DaemonPressure, DaemonStatus, FreeCache};
pub use detail::{Collision, LineStructure, Page, Side, SourceLine, Structure, StructureKind, Thread};
pub use doctor::{Doctor, Facility, Works};
pub use document::{Document, Unreadable, values};
pub use gains::{
    CacheChange, CdpcAdvice, CdpcArray, CdpcRival, Change, HugePagesLost, SlotAdvice, SlotData, WorkAdvice,
};
pub use hints::{
    BroughtBlocks, ExplainedHints, ExplainedPolicy, ExplainedProcess, HintedArray, HintedMachine, HintedSegment,
    HintedSet, MappedArray, MappedPage, PageMap, WeighedArrays,
};
pub use homes_advice::{FirstToucher, HomesAdvice, HomesRemedy, RemoteMisses, RemoteReason, RemoteStructure};
pub use live_following::{LiveClosing, LiveFollowing};
pub use live_homes::{
    HomesCopies, HomesFailed, HomesInterval, HomesMoves, HomesProcess, HomesReplication, HomesSamples, KernelBalancing,
    LiveHomes, ReplicationMode, SourceNotUsed,
};
pub use live_regions::{
    LiveRegions, PairedProcess, Pairing, PairingAction, PairingDomain, PairingMeasure, PairingTrial,
};
pub use number::{bytes, change, count, nanoseconds, percent, time};
pub use outcome::{Bus, Cpu, CpuMemory, HintCounts, Memory, Outcome, PageFaults, Prefetches, Time, Tlb, Work};
pub use placed::{Cdpc, Slots};
pub use placement::{MeasuredWay, PlacedRun, Placement, PlacementThread, PlacementWay};
pub use profile::{Profile, ProfileFrame, ProfileStack};
pub use program_change::{Field, NotAChange, ProgramChange};
pub use recorded::{Imported, Recorded};
pub use regions::{
    Region, Regions, RegionsAdvice, RegionsBounds, RegionsMoment, RegionsProcess, RegionsSource, RegionsSpent,
    RegionsVerdict,
};
pub use saved::{SCHEMA, Saved, TOOL, Version, saved};
pub use sharing::{
    SharedStructure, SharingAdvice, SharingEdge, SharingGraph, SharingGroup, SharingThread, ThreadPlacement,
};
pub use short::short;
pub use timeline::{Timeline, TimelineBlock, TimelinePhase, TimelineRow};
pub use todo::{Instead, Todo, place};
pub use truth::{
    Truth, TruthAbout, TruthBeside, TruthExperiment, TruthFailed, TruthMeasured, TruthPair, TruthPredicted, TruthRange,
    TruthRound,
};
pub use verified::{Verified, VerifiedRound, VerifiedTime};
pub use windows::{CountedWindow, Estimate, Windows};
