//! The client's side of the daemon: a source of frames, and a ledger shared with all other programs.
//!
//! A client that loses its daemon loses nothing that it holds: its pages are ordinary anonymous memory. The next call
//! after a loss connects again; [`Client::adopt`] and [`Client::claim`] report frames held and colors in use to the new
//! daemon. A child of fork is a client of its own.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use policy::slots::{ColorSet, Kind};
use sys::packet::{self, Peer, Received};

mod fill;

use super::wire::{Answer, LOOK_PAGES, MESSAGE_BYTES, Malformed, Refusal, Request, Run, Status, UNKNOWN, VERSION};
use crate::{Colors, Error, PAGE_BYTES, Pages, Supply};

/// The daemon's socket unless [`SOCKET_VARIABLE`] names another.
pub const SOCKET: &str = "/run/domicile/daemon.sock";
/// Names the daemon's socket.
pub const SOCKET_VARIABLE: &str = "DOMICILE_SOCKET";

/// The daemon's socket: the one that the environment names, else the usual one.
pub fn socket() -> PathBuf {
    named(std::env::var_os(SOCKET_VARIABLE))
}

fn named(by_environment: Option<OsString>) -> PathBuf {
    let named = by_environment.filter(|path| !path.is_empty());
    named.map_or_else(|| SOCKET.into(), PathBuf::from)
}

/// How long an answer may take. The daemon needs less than a millisecond, but must get a cpu first.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a daemon that did not answer is left alone at first, and at most: the pause doubles with each time.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(32)];

/// How long it may take to be accepted.
const CONNECTING: Duration = Duration::from_secs(1);

/// Why the daemon did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    #[error("no daemon answers at {}: {error}; start one with `domicile daemon`, or go without", .path.display())]
    Absent { path: PathBuf, error: io::Error },
    #[error("the daemon has gone away: {0}")]
    Lost(io::Error),
    #[error("the daemon did not answer in {} seconds", PATIENCE.as_secs())]
    Slow,
    #[error("{text}")]
    Refused { why: Refusal, text: String },
    #[error("the daemon's answer cannot be understood: {0}")]
    Malformed(#[from] Malformed),
    #[error("the daemon's answer is that to something else")]
    Unexpected,
    #[error("pages {start:#x} and {count} more: {error}")]
    Pages {
        start: usize,
        count: usize,
        error: io::Error,
    },
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Error {
        Error::Unavailable {
            what: "the daemon".into(),
            why: error.to_string(),
        }
    }
}

/// Colors that the ledger has written to a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The number to free it by.
    pub set: u64,
    /// Its slot; 0 if it has none.
    pub slot: u64,
    pub colors: ColorSet,
    /// In which caches, by their place in the daemon's list.
    pub caches: Vec<usize>,
}

/// A connection to the daemon.
pub struct Client {
    path: PathBuf,
    peer: Option<Peer>,
    process: u32,
    colors: Colors,
    connections: u64,
    /// The end and the length of the pause in which an unresponsive daemon is left alone.
    pause: Option<(Instant, Duration)>,
    /// Pages of the last filling that the stock had no frames for.
    lacking: usize,
    buffer: Vec<u8>,
}

impl Client {
    /// The daemon at the socket that the environment names, or at the usual one.
    pub fn find() -> Result<Client, ClientError> {
        Client::connect(&socket())
    }

    pub fn connect(path: &Path) -> Result<Client, ClientError> {
        let mut client = Client {
            path: path.to_path_buf(),
            peer: None,
            process: 0,
            colors: Colors {
                first_bit: 12,
                bits: 0,
                color_bytes: 0,
                cache: String::new(),
                source: crate::Source::Forced,
            },
            connections: 0,
            pause: None,
            lacking: 0,
            buffer: vec![0; MESSAGE_BYTES + 1],
        };
        client.greet()?;
        Ok(client)
    }

    /// The daemon's names for colors.
    pub fn colors(&self) -> &Colors {
        &self.colors
    }

    /// The number of connections so far. Once it has grown, the daemon knows nothing of the time
    /// before.
    pub fn connections(&self) -> u64 {
        self.connections
    }

    fn greet(&mut self) -> Result<(), ClientError> {
        // A daemon that does not accept, stopped or drowned in connections, is as good as none.
        match Peer::connect_within(&self.path, CONNECTING) {
            Ok(peer) => self.peer = Some(peer),
            Err(error) => {
                if error.kind() == io::ErrorKind::TimedOut {
                    self.leave_alone();
                }
                let path = self.path.clone();
                return Err(ClientError::Absent { path, error });
            }
        }
        self.process = std::process::id();
        match self.exchange(&Request::Hello { version: VERSION })? {
            Answer::Welcome { colors, .. } => self.colors = colors,
            _ => return Err(ClientError::Unexpected),
        }
        self.connections += 1;
        Ok(())
    }

    /// One request and its answer. After an error other than a refusal the connection is gone.
    fn ask(&mut self, request: &Request) -> Result<Answer, ClientError> {
        if self.peer.as_ref().is_some_and(|peer| !peer.is_ours()) {
            // The program closed the descriptor without knowing it. The daemon's grants to the caller are
            // lost with it.
            self.peer = None;
            return Err(ClientError::Lost(io::ErrorKind::NotConnected.into()));
        }
        // A caller that waits for a hanging daemon would hang with it, again with every call.
        if self.peer.is_none() && self.pause.is_some_and(|(until, _)| Instant::now() < until) {
            return Err(ClientError::Slow);
        }
        if self.peer.is_none() || self.process != std::process::id() {
            self.greet()?;
        }
        self.exchange(request)
    }

    /// For a while, and for longer each time.
    fn leave_alone(&mut self) {
        let [first, longest] = PAUSES;
        let pause = self.pause.map_or(first, |(_, last)| (last * 2).min(longest));
        self.pause = Some((Instant::now() + pause, pause));
    }

    fn exchange(&mut self, request: &Request) -> Result<Answer, ClientError> {
        let answer = self.try_to_exchange(request);
        match &answer {
            Err(ClientError::Slow) => self.leave_alone(),
            _ => self.pause = None,
        }
        match &answer {
            Ok(_) => {}
            Err(ClientError::Refused { why, .. }) if *why != Refusal::Protocol => {}
            Err(_) => self.peer = None,
        }
        answer
    }

    fn try_to_exchange(&mut self, request: &Request) -> Result<Answer, ClientError> {
        let peer = self.peer.as_ref().ok_or(ClientError::Unexpected)?;
        // The daemon's last message before it hung up tells more than the hang-up.
        let sent = peer.send(&request.encode());
        let until = Instant::now() + PATIENCE;
        let bytes = loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ClientError::Slow);
            }
            // A signal may end the wait early.
            let milliseconds = left.as_millis().max(1) as u32;
            if !packet::wait(&[peer.as_fd()], milliseconds).map_err(ClientError::Lost)?[0] {
                continue;
            }
            if !peer.is_ours() {
                return Err(ClientError::Lost(io::ErrorKind::NotConnected.into()));
            }
            match peer.receive(&mut self.buffer).map_err(ClientError::Lost)? {
                Received::Message(bytes) => break bytes,
                Received::Nothing => {}
                Received::End => {
                    let why = sent.err().unwrap_or_else(|| io::ErrorKind::ConnectionReset.into());
                    return Err(ClientError::Lost(why));
                }
            }
        };
        match Answer::decode(&self.buffer[..bytes])? {
            Answer::Refused { why, text } => Err(ClientError::Refused { why, text }),
            answer => Ok(answer),
        }
    }

    /// The daemon's state.
    pub fn status(&mut self) -> Result<Status, ClientError> {
        match self.ask(&Request::Status)? {
            Answer::Status(status) => Ok(status),
            _ => Err(ClientError::Unexpected),
        }
    }

    /// Frames at hand by color.
    pub fn stock(&mut self) -> Result<Vec<u64>, ClientError> {
        match self.ask(&Request::Stock)? {
            Answer::Stock { frames } => Ok(frames),
            _ => Err(ClientError::Unexpected),
        }
    }

    /// Bytes of cache for private slots that nobody has, on the caches of these cpus (none: all): in all of them
    /// together, and for one slot on all of them in each.
    pub fn available(&mut self, cpus: &[u32]) -> Result<(u64, u64), ClientError> {
        match self.ask(&Request::Available { cpus: cpus.to_vec() })? {
            Answer::Free { bytes, together } => Ok((bytes, together)),
            _ => Err(ClientError::Unexpected),
        }
    }

    /// A slot of so many bytes in each cache that it will be used on.
    pub fn slot(&mut self, bytes: u64, kind: Kind) -> Result<u64, ClientError> {
        let private = kind == Kind::Private;
        match self.ask(&Request::Slot { bytes, private })? {
            Answer::Slot { slot } => Ok(slot),
            _ => Err(ClientError::Unexpected),
        }
    }

    /// Colors for a data set of so many bytes that threads on `cpus` use, in a slot or with as little cache as can be.
    pub fn allocate(&mut self, slot: Option<u64>, bytes: u64, cpus: &[u32]) -> Result<Granted, ClientError> {
        let cpus = cpus.to_vec();
        let answer = self.ask(&Request::Allocate { slot, bytes, cpus })?;
        granted(answer)
    }

    /// Has the ledger record colors that an earlier daemon had granted.
    pub fn claim(&mut self, kind: Kind, cpus: &[u32], colors: &ColorSet) -> Result<Granted, ClientError> {
        let answer = self.ask(&Request::Claim {
            private: kind == Kind::Private,
            cpus: cpus.to_vec(),
            colors: colors.iter().map(|color| color as u16).collect(),
        })?;
        granted(answer)
    }

    /// A data set is gone; its frames are given back apart from this ([`Supply::give_back`]).
    pub fn free(&mut self, set: u64) -> Result<(), ClientError> {
        self.done(&Request::Free { set })
    }

    /// Closes a slot without data sets.
    pub fn close(&mut self, slot: u64) -> Result<(), ClientError> {
        self.done(&Request::Close { slot })
    }

    fn done(&mut self, request: &Request) -> Result<(), ClientError> {
        match self.ask(request)? {
            Answer::Done => Ok(()),
            _ => Err(ClientError::Unexpected),
        }
    }

    /// Reports pages whose frames a daemon which is gone had handed over; how many count now.
    pub fn adopt(&mut self, pages: Pages) -> Result<u64, ClientError> {
        let mut sum = 0;
        for run in runs(pages) {
            sum += u64::from(self.count(&Request::Adopt { run })?);
        }
        Ok(sum)
    }

    fn count(&mut self, request: &Request) -> Result<u32, ClientError> {
        match self.ask(request)? {
            Answer::Count { pages } => Ok(pages),
            _ => Err(ClientError::Unexpected),
        }
    }

    /// The colors of pages that hold frames from the daemon, wherever they were moved to; `None` of others.
    pub fn look(&mut self, pages: Pages) -> Result<Vec<Option<u16>>, ClientError> {
        let mut colors = Vec::with_capacity(pages.count);
        for run in runs(pages) {
            match self.ask(&Request::Look { run })? {
                Answer::Colors { of } if of.len() == run.count as usize => {
                    colors.extend(of.into_iter().map(|color| (color != UNKNOWN).then_some(color)));
                }
                _ => return Err(ClientError::Unexpected),
            }
        }
        Ok(colors)
    }
}

impl Supply for Client {
    /// Pre: besides what the trait says, none of the pages may become part of a huge one ([`sys::memory::no_huge`]).
    ///
    /// Errors: no daemon; a refusal, for one of the quota. Then the pages are absent, or hold zeros.
    unsafe fn fill(&mut self, into: Pages, want: &[u16]) -> Result<Vec<Option<u16>>, Error> {
        assert_eq!(into.count, want.len(), "one color for each page");
        if want.is_empty() {
            return Ok(Vec::new());
        }
        // SAFETY: the caller's promise.
        Ok(unsafe { self.fill_pages(into, want) }?)
    }

    unsafe fn give_back(&mut self, pages: Pages) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        Ok(unsafe { self.give_back_pages(pages) }?)
    }

    /// As [`Client::look`]: the daemon reports the frames that it handed out, and no others.
    fn look(&mut self, pages: Pages) -> Result<Vec<Option<u16>>, Error> {
        Ok(Client::look(self, pages)?)
    }

    fn lacking(&self) -> usize {
        self.lacking
    }

    fn by_color(&mut self) -> Result<Vec<u64>, Error> {
        Ok(self.stock()?)
    }
}

fn granted(answer: Answer) -> Result<Granted, ClientError> {
    match answer {
        Answer::Granted {
            set,
            slot,
            colors,
            caches,
        } => Ok(Granted {
            set,
            slot,
            colors: colors.into_iter().map(u32::from).collect(),
            caches: caches.into_iter().map(|cache| cache as usize).collect(),
        }),
        _ => Err(ClientError::Unexpected),
    }
}

/// Runs of pages, each as long as one request allows.
fn runs(pages: Pages) -> impl Iterator<Item = Run> {
    (0..pages.count).step_by(LOOK_PAGES).map(move |first| Run {
        start: (pages.start + first * PAGE_BYTES) as u64,
        count: (pages.count - first).min(LOOK_PAGES) as u32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_is_where_the_variable_says() {
        assert_eq!(named(None), Path::new("/run/domicile/daemon.sock"));
        assert_eq!(named(Some("".into())), Path::new("/run/domicile/daemon.sock"));
        assert_eq!(named(Some("/tmp/s".into())), Path::new("/tmp/s"));
    }
}
