//! The daemon's one thread that serves: it waits, answers, and in between looks after the stock.
//!
//! One thread is enough, as no request takes longer than a fraction of a millisecond, and it keeps the promise of the
//! handing over simple: nothing of the daemon itself comes between the release of frames and the client who is to get
//! them. Nothing here waits for a client: the daemon hangs up on one that does not take its answer, or sends bytes that
//! are no message, and lets one that asks too much wait. Only a look at a client's address space may have to wait for
//! the client, so other threads do that ([`super::looks`]): the request is answered with their result, or refused if it
//! does not come in time.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use policy::slots::{Allocator, Caches, InvalidCaches};
use sys::Root;
use sys::affinity::Wanderer;
use sys::frames::Flags;
use sys::packet::{Listener, Peer, open_to};
use sys::pressure::{Alarm, Memory};
use sys::ready::{Ready, Wanted};

mod callers;
mod chores;
mod looking;

use super::broker::{Broker, Calm};
use super::keepers::Keepers;
use super::looks::Looks;
use super::metrics::Metrics;
use super::pressure::{Watch, least};
use super::scrape::{At, Door, Scrape};
use super::session::Session;
use super::stock::Stock;
use super::users::{Limits, Users};
use super::wire::{COLORS, MESSAGE_BYTES};
use crate::{Colors, PAGE_BYTES};

/// How the daemon is to run.
#[derive(Clone, Debug)]
pub struct Config {
    pub socket: PathBuf,
    pub colors: Colors,
    /// Cpus of each cache that has these colors.
    pub caches: Vec<Vec<u32>>,
    /// Bytes of frames to keep at hand.
    pub stock: u64,
    /// Bytes of frames that one user may hold.
    pub quota: u64,
    /// The address at which metrics are served.
    pub metrics: Option<At>,
    /// Connections in all, and of one user.
    pub clients: u32,
    pub clients_of_user: u32,
    /// The root below which `/proc` is read.
    pub root: Root,
    /// Between two looks at the machine's memory.
    pub every: Duration,
}

impl Config {
    /// A daemon at `socket` for these colors, with everything else as usual: half of the stock for one user, 1024
    /// connections and 64 of a user.
    pub fn new(socket: PathBuf, colors: Colors, caches: Vec<Vec<u32>>, stock: u64) -> Config {
        Config {
            socket,
            colors,
            caches,
            stock,
            quota: stock / 2,
            metrics: None,
            clients: 1024,
            clients_of_user: 64,
            root: Root::default(),
            every: Duration::from_secs(1),
        }
    }
}

/// Why the daemon cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    #[error(
        "frame numbers are hidden from this process: it needs CAP_SYS_ADMIN; run it as root, or by the systemd unit domicile.service"
    )]
    Unprivileged,
    #[error("a daemon answers at {} already; stop it, or name another socket", .0.display())]
    Running(PathBuf),
    #[error("{} exists and is no socket; remove it, or name another one", .0.display())]
    InTheWay(PathBuf),
    #[error("the folder of the socket {} is missing; make it first, or name another socket", .0.display())]
    NoFolder(PathBuf),
    #[error("{what} {}: {error}", .path.display())]
    Path {
        what: &'static str,
        path: PathBuf,
        error: io::Error,
    },
    #[error("{0} colors are more than the daemon can speak of, {COLORS}")]
    Colors(u32),
    #[error("the caches: {0}")]
    Caches(#[from] InvalidCaches),
    #[error("a stock of {0} bytes; allowed: from 1 MiB up to all memory")]
    Stock(u64),
    #[error("{0}: {1}")]
    System(&'static str, io::Error),
}

/// Ready sources have names: these, and from [`FIRST`] on two for each connection.
const LISTENER: u64 = 0;
const STOP: u64 = 1;
const ALARM: u64 = 2;
const DOOR: u64 = 3;
const SEEN: u64 = 4;
const FIRST: u64 = 16;
/// Names of those who ask for metrics have this bit.
const SCRAPE: u64 = 1 << 63;

/// A new connection must greet within this time, and a request for metrics must end within it.
const MANNERS: Duration = Duration::from_secs(5);
/// Between two rounds of collecting that did not find enough, at first and at most.
const REST: Duration = Duration::from_secs(2);

pub struct Server {
    config: Config,
    broker: Broker,
    listener: Listener,
    door: Option<Door>,
    /// Kept so that it stays set.
    _alarm: Option<Alarm>,
    ready: Ready,
    sessions: HashMap<u64, Session>,
    scrapes: HashMap<u64, Scrape>,
    next_name: u64,
    /// Connections that asked too much, and when they are listened to again.
    waiting: Vec<(Instant, u64)>,
    looks: Looks,
    /// The connection that each pending look is for, and the looks' deadlines, in order.
    looked_for: HashMap<u64, u64>,
    look_until: VecDeque<(Instant, u64)>,
    /// Looks for frames of connections that ended, by user: which, and for whose.
    searches: HashMap<u32, (u64, u64)>,
    /// True while the listener is not watched.
    deaf: bool,
    watch: Watch,
    alarmed: bool,
    next_look: Instant,
    next_chore: Instant,
    /// Frames that may be collected until the next look, and that are to be given up.
    allowance: usize,
    excess: usize,
    rest: Duration,
    collect_from: Instant,
    /// Frames that may be collected until memory is looked at again, whatever the last look found.
    unwatched: usize,
    /// Frames released up to the last look.
    seen_released: u64,
    next_complaint: Instant,
    /// Apart from the daemon's own complaints: clients that make trouble shall not hide any.
    next_of_client: Instant,
    /// Processes that hung up and keep their frames.
    keepers: Keepers,
    /// The socket as it was made.
    made: Option<(u64, u64)>,
    /// True while the door is not watched.
    shut: bool,
}

impl Server {
    /// Opens the socket; clients may connect from now on, and are answered once [`Server::run`] runs.
    pub fn start(config: Config) -> Result<Server, ServerError> {
        let now = Instant::now();
        let count = config.colors.count();
        if count as usize > COLORS {
            return Err(ServerError::Colors(count));
        }
        let frames = config.stock / PAGE_BYTES as u64;
        let total = Memory::read(&config.root).map_or(u64::MAX, |memory| memory.total);
        let target = usize::try_from(frames).map_err(|_| ServerError::Stock(config.stock))?;
        if config.stock < 1 << 20 || config.stock > total {
            return Err(ServerError::Stock(config.stock));
        }
        // Without it nobody would know when frames are free again.
        let hidden = |error: io::Error| match error.kind() {
            io::ErrorKind::PermissionDenied => ServerError::Unprivileged,
            _ => ServerError::System("/proc/kpageflags", error),
        };
        Flags::open().map_err(hidden)?;
        let limit = least(&sys::groups::left(&config.root));
        if let Some(limit) = limit.filter(|limit| config.stock > limit.total) {
            tracing::warn!(
                stock_bytes = config.stock,
                limit_bytes = limit.total,
                "the control group has less memory than the stock: as much is held as there is room for"
            );
        }
        let stock = Stock::new(config.colors.clone(), target).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => ServerError::Unprivileged,
            _ => ServerError::System("the stock", error),
        })?;
        let ledger = Allocator::new(Caches {
            colors: count,
            color_bytes: config.colors.color_bytes,
            page_bytes: PAGE_BYTES as u64,
            cpus: config.caches.clone(),
        })?;
        let listener = listen(&config.socket)?;
        let made = identity(&config.socket);
        let door = match &config.metrics {
            None => None,
            Some(at) => {
                let path = match at {
                    At::Path(path) => path.clone(),
                    At::Loopback(address) => address.to_string().into(),
                };
                if let At::Path(path) = at {
                    clear(path)?;
                }
                let opened = Door::open(at);
                Some(opened.map_err(|error| ServerError::Path {
                    what: "metrics at",
                    path,
                    error,
                })?)
            }
        };
        let ready = Ready::new().map_err(|error| ServerError::System("epoll", error))?;
        let watched = |error| ServerError::System("watching the socket", error);
        ready.watch(&listener, LISTENER, Wanted::Read).map_err(watched)?;
        if let Some(door) = &door {
            ready.watch(door, DOOR, Wanted::Read).map_err(watched)?;
        }
        let looks = Looks::new().map_err(|error| ServerError::System("an eventfd", error))?;
        ready.watch(&looks, SEEN, Wanted::Read).map_err(watched)?;
        // Three descriptors for each connection.
        let room = Ready::room_for(u64::from(config.clients) * 3 + 64);
        let clients = config.clients.min(room.saturating_sub(64) / 3);
        let alarm = if config.root.is_live() { alarm(&ready) } else { None };
        let limits = Limits {
            frames: config.quota / PAGE_BYTES as u64,
            connections: config.clients_of_user,
        };
        tracing::info!(
            socket = %config.socket.display(),
            colors = config.colors.count(),
            source = ?config.colors.source,
            stock_bytes = config.stock,
            quota_bytes = config.quota,
            "serving"
        );
        Ok(Server {
            broker: Broker {
                stock,
                users: Users::new(limits),
                metrics: Metrics::default(),
                ledger,
                wanderer: Wanderer::new().map_err(|error| ServerError::System("the cpus to run on", error))?,
                started: now,
                clients: 0,
                takes_back: true,
                calm: Calm::over(now),
                pressure_frames: 0,
                own: sys::pressure::own(&config.root).unwrap_or(0),
                room: least(&sys::groups::left(&config.root)),
            },
            config: Config { clients, ..config },
            listener,
            door,
            _alarm: alarm,
            ready,
            sessions: HashMap::new(),
            scrapes: HashMap::new(),
            next_name: FIRST,
            waiting: Vec::new(),
            looks,
            looked_for: HashMap::new(),
            look_until: VecDeque::new(),
            searches: HashMap::new(),
            deaf: false,
            watch: Watch::default(),
            alarmed: false,
            next_look: now,
            next_chore: now,
            allowance: 0,
            excess: 0,
            rest: REST,
            collect_from: now,
            unwatched: 0,
            seen_released: 0,
            next_complaint: now,
            next_of_client: now,
            keepers: Keepers::default(),
            made,
            shut: false,
        })
    }

    /// Serves until `stop` has something to read. May be called again then, to go on.
    pub fn run(&mut self, stop: BorrowedFd<'_>) -> io::Result<()> {
        self.ready.watch(&stop, STOP, Wanted::Read)?;
        let done = self.serve_until_stopped();
        self.ready.forget(&stop)?;
        done
    }

    fn serve_until_stopped(&mut self) -> io::Result<()> {
        // A client that waits for frames should not wait for others' turns on its cpu, which may take frames themselves.
        let _brisk = sys::affinity::brisk();
        let mut names = Vec::new();
        let mut buffer = vec![0; MESSAGE_BYTES + 1];
        loop {
            let now = Instant::now();
            if now >= self.next_look {
                self.look_around(now);
            }
            self.ready.wait(self.patience(now), &mut names)?;
            let now = Instant::now();
            for &name in &names {
                match name {
                    STOP => return Ok(()),
                    LISTENER => self.welcome(now),
                    ALARM => {
                        self.alarmed = true;
                        self.next_look = now;
                    }
                    DOOR => self.open_door(now),
                    SEEN => self.go_on(now),
                    name if name & SCRAPE != 0 => self.scrape(name, now),
                    name if name % 2 == 0 => self.serve(name, &mut buffer),
                    // The process ended.
                    name => self.hang_up(name - 1, "its process ended"),
                }
            }
            self.give_up_looks(now);
            self.listen_again(now);
            if (names.is_empty() || now >= self.next_chore) && now >= self.broker.calm.until() {
                self.chore(now);
            }
        }
    }

    /// The time for which the daemon may wait: none while there is something to do.
    fn patience(&self, now: Instant) -> Duration {
        let mut until = self.next_look;
        if self.excess > 0 || self.may_collect() {
            until = until.min(self.broker.calm.until().max(self.collect_from));
        }
        if self.excess > 0 {
            until = until.min(self.broker.calm.until());
        }
        if let Some(first) = self.waiting.iter().map(|(at, _)| *at).min() {
            until = until.min(first);
        }
        if let Some((first, _)) = self.look_until.front() {
            until = until.min(*first);
        }
        until.saturating_duration_since(now)
    }

    fn may_collect(&self) -> bool {
        self.allowance > 0 && self.broker.stock.hungry()
    }

    /// Logs a trouble, but not as often as somebody may make it.
    fn complain(&mut self, now: Instant, what: &str) {
        if now >= self.next_complaint {
            self.next_complaint = now + Duration::from_secs(1);
            tracing::warn!("{what}");
        }
    }

    /// The same for what clients may cause.
    fn complain_of(&mut self, now: Instant, process: u32, user: u32, what: &str) {
        if now >= self.next_of_client {
            self.next_of_client = now + Duration::from_secs(1);
            tracing::warn!(process, user, "a client: {what}");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The socket may belong to another daemon by now.
        if self.made.is_some() && self.made == identity(&self.config.socket) {
            let _ = fs::remove_file(&self.config.socket);
        }
    }
}

/// Opens the socket for all users.
fn listen(path: &Path) -> Result<Listener, ServerError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if folder.is_some_and(|folder| !folder.is_dir()) {
        return Err(ServerError::NoFolder(path.to_path_buf()));
    }
    clear(path)?;
    let fail = |error| ServerError::Path {
        what: "the socket",
        path: path.to_path_buf(),
        error,
    };
    let listener = Listener::bind(path).map_err(fail)?;
    open_to(path, 0o666).map_err(fail)?;
    Ok(listener)
}

/// The identity of a file, whatever it is called.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|there| (there.dev(), there.ino()))
}

/// Removes the socket that a daemon which was killed has left, and nothing else: one at which nobody listens.
fn clear(path: &Path) -> Result<(), ServerError> {
    let Ok(there) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !there.file_type().is_socket() {
        return Err(ServerError::InTheWay(path.to_path_buf()));
    }
    // Only by trying its kind is a socket of another kind distinguished from a dead one.
    let nobody = |tried: io::Result<()>| tried.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if !nobody(Peer::connect(path).map(drop)) && !nobody(UnixStream::connect(path).map(drop)) {
        return Err(ServerError::Running(path.to_path_buf()));
    }
    fs::remove_file(path).map_err(|error| ServerError::Path {
        what: "removing the old socket",
        path: path.to_path_buf(),
        error,
    })
}

/// The kernel's alarm for when tasks waited for memory for 200 ms within two seconds. Shorter windows are for those
/// with CAP_SYS_RESOURCE.
fn alarm(ready: &Ready) -> Option<Alarm> {
    let alarm = Alarm::set(Duration::from_millis(200), Duration::from_secs(2));
    let watched = alarm.and_then(|alarm| ready.watch(&alarm, ALARM, Wanted::Event).map(|()| alarm));
    if let Err(error) = &watched {
        tracing::warn!(%error, "no alarm from /proc/pressure/memory: memory is looked at once a second only");
    }
    watched.ok()
}
