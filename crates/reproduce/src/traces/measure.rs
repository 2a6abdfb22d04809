//! Values of a bar, or of its stream.

use serde::Deserialize;

use super::streams::{Replayed, Run};
use super::{Bar, Traces};

/// Counts are in thousands, times in milliseconds: our runs are shorter than the paper's.
const THOUSAND: f64 = 1e3;
const MILLION: f64 = 1e6;

/// The node that served a miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Node {
    /// The cpu's own.
    Local,
    Remote,
}

/// The contents of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    Replicated,
    Migrated,
    Collapsed,
    PagesAverage,
    PagesMax,
    /// The most frames in use, in percent more than there are pages.
    PagesMore,
    /// Misses that the cpu's own node served, in percent.
    Local,
    /// Milliseconds of all cpus together, without waiting for others.
    Stall,
    /// Without overhead.
    User,
    Overhead,
    Run,
    /// Microseconds that a miss waits on average, of the cpu's own node and of others.
    LocalLatency,
    RemoteLatency,
    /// In percent of the first bar's run: all of it, and its parts.
    Normal,
    NormalUser,
    NormalLocal,
    NormalRemote,
    NormalOverhead,
    /// How much of the first bar's stall and run is saved, in percent.
    StallSaved,
    RunSaved,
    /// Of the stream, independent of the bar: instructions and data in percent of the time that its first bar stalls.
    InstructionStall,
    DataStall,
    InstructionPages,
    DataPages,
    /// Thousands; references are those of data.
    References,
    ReadMisses,
    WriteMisses,
    InstructionMisses,
    TlbReads,
    TlbWrites,
}

impl Measure {
    pub fn unit(self) -> &'static str {
        use Measure::*;
        match self {
            Replicated | Migrated | Collapsed | PagesAverage | PagesMax | InstructionPages | DataPages => "each",
            Stall | User | Overhead | Run => "ms",
            LocalLatency | RemoteLatency => "us",
            References | ReadMisses | WriteMisses | InstructionMisses | TlbReads | TlbWrites => "thousands",
            _ => "percent",
        }
    }

    /// Returns true if it comes from a stream of misses, which does not exist if misses wait for one another.
    pub fn is_of_stream(self) -> bool {
        use Measure::*;
        matches!(
            self,
            InstructionStall
                | DataStall
                | InstructionPages
                | DataPages
                | ReadMisses
                | WriteMisses
                | InstructionMisses
                | TlbReads
                | TlbWrites
        )
    }

    /// The number of a bar, or why there is none.
    pub fn of(self, replayed: &Replayed, traces: &Traces, bar: &Bar) -> Result<f64, String> {
        let run = replayed.run(traces, bar)?;
        let normal = |part: u64| -> Result<f64, String> {
            let whole = replayed.run(traces, first(traces)?)?.time();
            Ok(100.0 * part as f64 / whole as f64)
        };
        let kinds = &replayed.kinds;
        Ok(match self {
            Measure::Replicated => run.replications as f64,
            Measure::Migrated => run.migrations as f64,
            Measure::Collapsed => run.collapses as f64,
            Measure::PagesAverage => run.pages_average,
            Measure::PagesMax => run.pages_max as f64,
            Measure::PagesMore => 100.0 * (run.pages_max as f64 / run.pages as f64 - 1.0),
            Measure::Local => run.local_percent(),
            Measure::Stall => run.stall() as f64 / MILLION,
            Measure::User => (run.user + run.stall()) as f64 / MILLION,
            Measure::LocalLatency => latency_us(run, Node::Local)?,
            Measure::RemoteLatency => latency_us(run, Node::Remote)?,
            Measure::Overhead => run.overhead as f64 / MILLION,
            Measure::Run => run.time() as f64 / MILLION,
            Measure::Normal => normal(run.time())?,
            Measure::NormalUser => normal(run.user)?,
            Measure::NormalLocal => normal(run.local_stall)?,
            Measure::NormalRemote => normal(run.remote_stall)?,
            Measure::NormalOverhead => normal(run.overhead)?,
            Measure::StallSaved => saved(run.stall(), replayed.run(traces, first(traces)?)?.stall()),
            Measure::RunSaved => saved(run.time(), replayed.run(traces, first(traces)?)?.time()),
            Measure::InstructionStall => stalled(run, kinds.fetch_misses, kinds.misses()),
            Measure::DataStall => stalled(run, kinds.read_misses + kinds.write_misses, kinds.misses()),
            Measure::InstructionPages => kinds.instruction_pages as f64,
            Measure::DataPages => (run.pages - kinds.instruction_pages) as f64,
            Measure::References => kinds.data as f64 / THOUSAND,
            Measure::ReadMisses => kinds.read_misses as f64 / THOUSAND,
            Measure::WriteMisses => kinds.write_misses as f64 / THOUSAND,
            Measure::InstructionMisses => kinds.fetch_misses as f64 / THOUSAND,
            Measure::TlbReads => kinds.tlb_reads as f64 / THOUSAND,
            Measure::TlbWrites => kinds.tlb_writes as f64 / THOUSAND,
        })
    }
}

fn first(traces: &Traces) -> Result<&Bar, String> {
    traces.baseline().ok_or_else(|| "there is no first bar".to_string())
}

fn latency_us(run: &Run, node: Node) -> Result<f64, String> {
    let ns = run.latency_ns(node).ok_or("there was no such miss")?;
    Ok(ns / THOUSAND)
}

fn saved(of: u64, first: u64) -> f64 {
    100.0 * (1.0 - of as f64 / first as f64)
}

/// The part of a run's time in which it waits for this many of its misses, as if all of them took the same.
fn stalled(run: &Run, of: u64, misses: u64) -> f64 {
    let share = of as f64 / misses.max(1) as f64;
    100.0 * share * run.stall() as f64 / run.time() as f64
}
