//! `domicile daemon`: the memory manager, as a service; or a watcher of processes, whose pages follow them between
//! memory nodes, or which are paired with caches.

mod homes;
mod regions;
mod watched;

pub use regions::refused;

use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use live::daemon::{self, At, Client, Config, SOCKET, Server, sharers};
use live::discovery::{Unknown, discover};
use results::{DaemonColors, DaemonFrames, DaemonMemory, DaemonPressure, DaemonStatus, FreeCache, saved};
use sys::signals::{self, Caught};
use sys::{Root, groups, pressure, service};
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::LevelFilter;

use super::Done;
use crate::console::Console;
use crate::failure::Failure;

/// Columns that the names of facts take.
const NAMES: usize = 11;
/// The most log lines that wait to be written.
const LOG_LINES: usize = 1024;

/// Hold page frames sorted by color, and hand them to programs
///
/// A service for programs that use cache slots. It hands them frames of the colors they ask for, so that programs need
/// neither search for frames nor have the right to see them. It also keeps the ledger of which program has which part
/// of the shared caches. It must run as root, or have the capabilities of the systemd unit domicile.service. It serves
/// until it gets SIGTERM, SIGINT or SIGQUIT. SIGHUP changes nothing: there are no settings to reload. It may be killed
/// at any moment: programs keep what they have, and continue without it.
///
/// With `--homes`, it does something else: on a machine with several memory nodes, it watches running processes and
/// moves their pages to the nodes that use them, by the same policies as `domicile simulate`. It continues until the
/// processes have ended, its time is up, or it gets one of these signals, and then prints a report. The processes are
/// not changed.
///
/// With `--regions`, it also watches processes, on a machine with several caches of one level. It gives each busy
/// process the cpus of one of these caches, so that a large working set is paired with a small one. It moves nothing
/// for less than an eighth of the fullest cache's load, except for a `--preferred` program. It leaves processes alone
/// that their owner has pinned, and respects cpusets. At the end, or at the next start after `kill -9`, each thread
/// gets its previous cpus back.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:\n  domicile daemon --stock 2G --metrics 127.0.0.1:9464\n  \
                        domicile daemon status\n  curl --unix-socket /run/domicile/metrics.sock http://./metrics\n  \
                        domicile daemon --homes --pid 4711 --duration 1min\n  \
                        domicile daemon --regions --user me --act")]
pub struct Daemon {
    #[command(subcommand)]
    ask: Option<Ask>,

    #[command(flatten)]
    serve: Serve,

    #[command(flatten)]
    homes: homes::Homes,

    #[command(flatten)]
    regions: regions::Regions,

    #[command(flatten)]
    watched: watched::Watched,
}

#[derive(Subcommand)]
enum Ask {
    Status(Status),
}

/// Show the state of the daemon
#[derive(Args)]
struct Status {
    /// The daemon's socket [default: $DOMICILE_SOCKET, or /run/domicile/daemon.sock]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

#[derive(Args)]
struct Serve {
    /// Socket to serve at [default: $DOMICILE_SOCKET, or /run/domicile/daemon.sock]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Memory to hold frames in: bytes, such as 512M or 4GiB, or a percentage of what is available at the start. Never
    /// more than the daemon's control group leaves
    #[arg(long, value_name = "BYTES|PERCENT", default_value = "25%")]
    stock: Amount,

    /// Memory of handed-out frames that one user may hold: bytes, or a percentage of the stock
    #[arg(long, value_name = "BYTES|PERCENT", default_value = "50%")]
    quota: Amount,

    /// Serve metrics for Prometheus here: a Unix socket, or an address of this machine such as 127.0.0.1:9464
    #[arg(long, value_name = "PATH|ADDRESS")]
    metrics: Option<At>,

    /// Format of the log on standard error
    #[arg(long, value_enum, default_value_t = Log::Text)]
    log: Log,

    /// Also log each connection
    #[arg(long, short)]
    verbose: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Log {
    /// One line of text for each entry
    Text,
    /// One JSON object on each line
    Json,
}

/// An amount of memory, absolute or as a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Amount {
    Bytes(u64),
    Percent(u64),
}

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Amount, String> {
        let wrong = || format!("{text:?} is no amount; write bytes, such as 67108864, 512M or 4G, or 1% to 100%");
        if let Some(percent) = text.strip_suffix('%') {
            let percent = percent.parse().ok().filter(|percent| (1..=100).contains(percent));
            return percent.map(Amount::Percent).ok_or_else(wrong);
        }
        results::quantities::bytes(text).map(Amount::Bytes).map_err(|_| wrong())
    }
}

impl Amount {
    fn of(self, whole: u64) -> u64 {
        match self {
            Amount::Bytes(bytes) => bytes,
            Amount::Percent(percent) => (u128::from(whole) * u128::from(percent) / 100) as u64,
        }
    }
}

impl Daemon {
    pub fn run(&self, console: &mut Console) -> Done {
        match &self.ask {
            Some(Ask::Status(status)) => status.run(console),
            None if self.homes.is_wanted() => self.homes.run(&self.watched, console),
            None if self.regions.is_wanted() => self.regions.run(&self.watched, console),
            None => {
                self.watched.refuse()?;
                self.serve.run()
            }
        }
    }
}

fn socket(given: Option<&PathBuf>) -> PathBuf {
    given.cloned().unwrap_or_else(daemon::socket)
}

impl Serve {
    fn run(&self) -> Done {
        let _written = self.log();
        let root = Root::default();
        let colors = discover(Unknown::Measure).map_err(|error| {
            Failure::work(format!(
                "{error}; DOMICILE_COLORS=force:FIRST_BIT:BITS:BYTES forces colors, such as force:12:4:65536"
            ))
        })?;
        let caches = sharers(&root, &colors.cache).map_err(Failure::work)?;
        let machine = pressure::Memory::read(&root).map_err(Failure::work)?;
        // In a group with a limit, a tenth is left to its other processes, as on the whole machine.
        let groups = groups::left(&root);
        let left = groups
            .iter()
            .map(|group| group.available.saturating_sub(group.total / 10));
        let available = left.fold(machine.available, u64::min);
        let stock = self.stock.of(available);
        let socket = socket(self.socket.as_ref());
        if socket == Path::new(SOCKET) {
            // The folder is on a file system that is empty after each boot.
            make_folder(&socket)?;
        }
        let mut config = Config::new(socket, colors, caches, stock);
        config.quota = self.quota.of(stock);
        config.metrics = self.metrics.clone();
        let mut signals = Caught::begin().map_err(|error| Failure::work(format!("signals: {error}")))?;
        let mut server = Server::start(config).map_err(Failure::work)?;
        let notify = |state| {
            if let Err(error) = service::notify(state) {
                tracing::warn!(%error, variable = service::VARIABLE, "the service manager cannot be notified");
            }
        };
        notify("READY=1");
        loop {
            server
                .run(signals.as_fd())
                .map_err(|error| Failure::work(format!("the daemon cannot go on: {error}")))?;
            let mut came = std::iter::from_fn(|| signals.take());
            if came.any(|signal| signal.number != signals::HANGUP) {
                break;
            }
            tracing::info!("SIGHUP: there are no settings to read anew; going on");
        }
        tracing::info!("stopping");
        notify("STOPPING=1");
        Ok(ExitCode::SUCCESS)
    }

    /// Begins the log. A separate thread writes it, and drops lines that cannot be written: a full disk, a closed pipe
    /// or one that nobody reads must not affect clients. Dropping the guard writes the remaining lines.
    fn log(&self) -> WorkerGuard {
        let (stderr, guard) = NonBlockingBuilder::default()
            .lossy(true)
            .buffered_lines_limit(LOG_LINES)
            .thread_name("log")
            .finish(std::io::stderr());
        let level = if self.verbose {
            LevelFilter::DEBUG
        } else {
            LevelFilter::INFO
        };
        let log = tracing_subscriber::fmt()
            .with_writer(stderr)
            .log_internal_errors(false)
            .with_max_level(level)
            .with_target(false);
        match self.log {
            Log::Json => log.json().flatten_event(true).init(),
            // The journal adds the time of each line itself.
            Log::Text if std::env::var_os("JOURNAL_STREAM").is_some() => log.with_ansi(false).without_time().init(),
            Log::Text => log.with_ansi(std::io::stderr().is_terminal()).init(),
        }
        guard
    }
}

fn make_folder(socket: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::DirBuilderExt;
    let Some(folder) = socket.parent() else { return Ok(()) };
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o755).create(folder);
    made.map_err(|error| {
        Failure::work(format!(
            "cannot make {}: {error}; run the daemon as root, or name a socket with --socket",
            folder.display()
        ))
    })
}

impl Status {
    fn run(&self, console: &mut Console) -> Done {
        let socket = socket(self.socket.as_ref());
        let mut client = Client::connect(&socket).map_err(Failure::work)?;
        let status = client.status().map_err(Failure::work)?;
        let by_color = client.stock().map_err(Failure::work)?;
        let (free, together) = client.available(&[]).map_err(Failure::work)?;
        let colors = client.colors();
        let source = format!("{:?}", colors.source).to_lowercase();
        // The caller of this command also has a connection.
        let clients = status.clients.saturating_sub(1);
        let limit = (status.limit < u64::MAX).then_some(status.limit);
        let status = DaemonStatus {
            socket: socket.display().to_string(),
            process: status.process,
            up_seconds: status.up_seconds,
            clients: clients.into(),
            colors: DaemonColors {
                count: colors.count(),
                first_bit: colors.first_bit,
                bytes: colors.color_bytes,
                cache: colors.cache.clone(),
                source,
            },
            frames: DaemonFrames {
                at_hand: status.stock,
                target: status.target,
                by_color,
                released: status.released,
                hits: status.hits,
                misses: status.misses,
                returned: status.returned,
                held: status.held,
            },
            cache_free_bytes: FreeCache {
                private_slots: free,
                one_slot_on_all_cpus: together,
            },
            quota_bytes: status.quota,
            pressure: DaemonPressure {
                releases: status.pressure,
                frames: status.pressure_frames,
            },
            memory: DaemonMemory {
                own_bytes: status.own,
                limit_bytes: limit,
                left_bytes: limit.map(|_| status.left),
            },
            looks_given_up: status.given_up,
        };
        if console.json() {
            console.line(&saved(&status))?;
        } else {
            console.text(&report::daemon(&status).facts(NAMES))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts() {
        assert_eq!("4G".parse(), Ok(Amount::Bytes(4 << 30)));
        assert_eq!("256MiB".parse(), Ok(Amount::Bytes(256 << 20)));
        assert_eq!("256 MiB".parse(), Ok(Amount::Bytes(256 << 20)));
        assert_eq!("65536".parse(), Ok(Amount::Bytes(65536)));
        assert_eq!("25%".parse(), Ok(Amount::Percent(25)));
        for wrong in [
            "",
            "G",
            "%",
            "0%",
            "101%",
            "-1",
            "4iB",
            "iB",
            "4GB",
            "99999999999T",
            "4é",
        ] {
            assert!(wrong.parse::<Amount>().is_err(), "{wrong}");
        }
        assert_eq!(Amount::Percent(50).of(u64::MAX), u64::MAX / 2);
    }
}
