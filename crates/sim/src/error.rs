//! The errors of a simulation.

/// A simulation that cannot be run, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    #[error("machine `{machine}` cannot be simulated: {what}")]
    Machine { machine: String, what: String },
    #[error(transparent)]
    Policy(#[from] policy::PolicyError),
    #[error(
        "the program's {pages} pages do not fit into the machine's memory ({nodes} nodes of {frames_per_node} frames); raise memory.frames_per_node"
    )]
    OutOfFrames {
        pages: u64,
        nodes: u32,
        frames_per_node: u64,
    },
    #[error(
        "the program touches more than {pages} pages, which is more than this simulator can number; simulate a shorter window of it"
    )]
    TooManyPages { pages: u64 },
    #[error("the trace has instruction fetches though its header says that it has none; import or record it again")]
    UnexpectedFetch,
    #[error(
        "policy `order` needs marked work items and the trace has none: put DOMICILE_WORK_BEGIN(count, hints) and \
         DOMICILE_WORK_END() of domicile/trace.h around each piece of work in the program and record it again, or leave \
         the policy out"
    )]
    NoWork,
    #[error("the plan of cache slots cannot be simulated: {0}")]
    Slots(String),
    #[error(
        "{wanted}, and the trace has none that can be used{}: build the program with domicile-cc, domicile-c++ or \
         domicile-fc and record it again, or {instead}",
        malformed.as_ref().map_or_else(String::new, |what| format!(" ({what})"))
    )]
    NoSummaries {
        wanted: &'static str,
        instead: &'static str,
        malformed: Option<String>,
    },
    #[error("no hints can be made from summaries: {0}")]
    Hints(String),
    /// The part of the run that is to be counted is not there.
    #[error("the window cannot be simulated: {0}")]
    Window(String),
    /// Policy `order` cannot be carried out.
    #[error("{0}")]
    Order(String),
    #[error("change `{change}` cannot be simulated: {what}")]
    Change { change: String, what: String },
    #[error(
        "changes cannot be simulated under policy `{policy}`, which goes by the addresses that the program had without them, or \
         puts its work in an order of its own; leave the policy or the changes out"
    )]
    ChangesUnder { policy: &'static str },
    #[error(
        "policy `{policy}` goes by the first touches of pages that it closed, and a stream of misses does not have those that hit; \
         simulate it without `--fast`"
    )]
    NoTouches { policy: String },
    #[error(
        "policy `{policy}` goes by what is said of parallel loops, and a stream of misses does not have it; simulate it without `--fast`"
    )]
    NotSaid { policy: String },
    #[error(
        "policy `{policy}` chooses no homes of pages, and a stream of misses depends on nothing else; leave it out, or simulate the run \
         as a whole (without `--fast`; in a sweep, `fast = false`)"
    )]
    NoHomes { policy: String },
    #[error(
        "the trace holds windows of a run, and a stream of misses has those that warm caches before each of them, too; simulate the \
         trace as a whole (without `--fast`; in a sweep, `fast = false`)"
    )]
    MissesOfWindows,
    #[error(
        "policy `{policy}` moves threads from cpu to cpu, whose clocks have nothing to do with each other in recorded order; simulate it \
         by the clocks, without `--order recorded`"
    )]
    NoCommonTime { policy: String },
    #[error(
        "policy `{policy}` moves threads from cpu to cpu, and so does the schedule; simulate them one at a time, without the policy or \
         without `--schedule`"
    )]
    TwoSchedulers { policy: String },
    #[error("the host's threads cannot be started: {0}")]
    Host(String),
    #[error(transparent)]
    Trace(#[from] trace::TraceError),
}
