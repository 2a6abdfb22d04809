//! Messages between processes on one machine: Unix sockets that keep message boundaries, and can
//! hand over a file descriptor. The death of the other side shows as an end of messages.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::kept::Kept;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::sockopt::Timeout;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType,
};

/// A socket that others connect to.
pub struct Listener {
    socket: OwnedFd,
}

/// One connection.
pub struct Peer {
    socket: Kept,
}

/// The result of reading from a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    /// A message of so many bytes.
    Message(usize),
    /// No message at the moment.
    Nothing,
    /// The other side is gone.
    End,
}

impl Listener {
    /// Pre: nothing exists at `path`, which is shorter than 108 bytes. Post: connections queue up
    /// until they are accepted; accepting does not wait.
    pub fn bind(path: &Path) -> io::Result<Listener> {
        let socket = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
        rustix::net::listen(&socket, 4096)?;
        Ok(Listener { socket })
    }

    /// The next connection, if one waits.
    pub fn accept(&self) -> io::Result<Option<Peer>> {
        match rustix::net::accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(socket) => Ok(Some(Peer {
                socket: Kept::new(socket)?,
            })),
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }
}

impl Peer {
    /// Connects to a listener, which waits where too many wait to be accepted already.
    pub fn connect(path: &Path) -> io::Result<Peer> {
        let peer = Peer::unconnected()?;
        rustix::net::connect(&peer.socket, &SocketAddrUnix::new(path)?)?;
        Ok(peer)
    }

    /// As [`Peer::connect`], but waits no longer than `most`, neither for this nor later in [`Peer::send`].
    ///
    /// Pre: `most` is not zero. Errors: kind `TimedOut` if nobody accepts; of a later `send`, `WouldBlock`.
    pub fn connect_within(path: &Path, most: Duration) -> io::Result<Peer> {
        let peer = Peer::unconnected()?;
        let to = SocketAddrUnix::new(path)?;
        let until = Instant::now() + most;
        loop {
            // The kernel keeps to it while it connects, too (net/unix/af_unix.c).
            let left = until.saturating_duration_since(Instant::now());
            let left = left.max(Duration::from_millis(1));
            rustix::net::sockopt::set_socket_timeout(&peer.socket, Timeout::Send, Some(left))?;
            match rustix::net::connect(&peer.socket, &to) {
                Ok(()) => break,
                Err(rustix::io::Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
                // A signal came.
                Err(rustix::io::Errno::INTR) if Instant::now() < until => {}
                Err(rustix::io::Errno::INTR) => return Err(io::ErrorKind::TimedOut.into()),
                Err(error) => return Err(error.into()),
            }
        }
        rustix::net::sockopt::set_socket_timeout(&peer.socket, Timeout::Send, Some(most))?;
        Ok(peer)
    }

    fn unconnected() -> io::Result<Peer> {
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok(Peer {
            socket: Kept::new(socket)?,
        })
    }

    /// Returns whether the descriptor still refers to this connection: a program that knows nothing of it may have
    /// closed it, and its number may now belong to a file of the program's.
    pub fn is_ours(&self) -> bool {
        self.socket.is_ours()
    }

    /// Takes the next message, cut to the size of `buffer`. Does not wait on an accepted connection.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        let mut take = || rustix::net::recv(&self.socket, &mut *buffer, RecvFlags::empty());
        let mut taken = take();
        if let Err(rustix::io::Errno::CONNRESET) = taken {
            // The other side went away with messages of ours unread. Linux says so once, before
            // the messages that it had sent itself.
            taken = take();
        }
        match taken {
            Ok((0, _)) => Ok(Received::End),
            Ok((bytes, _)) => Ok(Received::Message(bytes.min(buffer.len()))),
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => Ok(Received::Nothing),
            Err(rustix::io::Errno::CONNRESET | rustix::io::Errno::PIPE) => Ok(Received::End),
            Err(e) => Err(e.into()),
        }
    }

    /// Sends one message. An error means that the other side is gone or does not listen; no signal
    /// is raised.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        rustix::net::send(&self.socket, message, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Sends one message and a file descriptor with it.
    pub fn send_with(&self, message: &[u8], descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        let descriptors = [descriptor];
        rights.push(SendAncillaryMessage::ScmRights(&descriptors));
        rustix::net::sendmsg(
            &self.socket,
            &[io::IoSlice::new(message)],
            &mut rights,
            SendFlags::NOSIGNAL,
        )?;
        Ok(())
    }
}

/// Sets the users that may connect to a socket, as file permissions. A user that may write to its folder cannot make
/// this change another file: the file at `path` must itself be a socket.
pub fn open_to(path: &Path, mode: u32) -> io::Result<()> {
    use rustix::fs::{FileType, Mode, OFlags};
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) != FileType::Socket {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // The path of the opened file, even if another has taken its place.
    let opened = format!("/proc/self/fd/{}", file.as_raw_fd());
    std::fs::set_permissions(opened, std::os::unix::fs::PermissionsExt::from_mode(mode))
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsFd for Peer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Waits until one of `sources` has something to read or has ended, or `milliseconds` are over or a
/// signal came. Post: one answer for each source, in order.
pub fn wait(sources: &[BorrowedFd<'_>], milliseconds: u32) -> io::Result<Vec<bool>> {
    let mut polled: Vec<PollFd<'_>> = sources
        .iter()
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .collect();
    let time = Timespec {
        tv_sec: i64::from(milliseconds / 1000),
        tv_nsec: i64::from(milliseconds % 1000) * 1_000_000,
    };
    match rustix::event::poll(&mut polled, Some(&time)) {
        Ok(_) => Ok(polled.iter().map(|p| !p.revents().is_empty()).collect()),
        Err(rustix::io::Errno::INTR) => Ok(vec![false; sources.len()]),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_those_of_the_socket_and_of_nothing_else() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let (path, secret) = (folder.path().join("socket"), folder.path().join("secret"));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let _listener = Listener::bind(&path).unwrap();
        for wanted in [0o666, 0o660] {
            open_to(&path, wanted).unwrap();
            assert_eq!(mode(&path), wanted);
        }
        std::fs::write(&secret, "x").unwrap();
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&secret, &path).unwrap();
        assert!(open_to(&path, 0o666).is_err() && open_to(&secret, 0o666).is_err());
        assert_eq!(mode(&secret), 0o600);
    }

    #[test]
    fn nobody_waits_for_ever_to_be_accepted() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let path = folder.path().join("socket");
        let absent = Peer::connect_within(&path, Duration::from_secs(60)).err().unwrap();
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        rustix::net::bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        rustix::net::listen(&socket, 2).unwrap();
        let most = Duration::from_millis(50);
        let mut peers = Vec::new();
        let error = loop {
            match Peer::connect_within(&path, most) {
                Ok(peer) => peers.push(peer),
                Err(error) => break error,
            }
            assert!(peers.len() < 100, "the queue has no end");
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        // The loop fills the socket's buffer, which nobody reads.
        let deaf = std::iter::repeat_with(|| peers[0].send(&[0; 4096]))
            .take(10_000)
            .find_map(Result::err);
        assert_eq!(deaf.map(|error| error.kind()), Some(io::ErrorKind::WouldBlock));
    }

    #[test]
    fn messages_keep_their_boundaries_and_the_end_shows() {
        // TMPDIR may be too long a path for a socket.
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let path = folder.path().join("socket");
        let listener = Listener::bind(&path).unwrap();
        assert!(listener.accept().unwrap().is_none());
        let near = Peer::connect(&path).unwrap();
        assert_eq!(wait(&[listener.as_fd()], 1000).unwrap(), [true]);
        let far = listener.accept().unwrap().unwrap();
        let mut buffer = [0; 16];
        assert_eq!(far.receive(&mut buffer).unwrap(), Received::Nothing);
        near.send(b"one").unwrap();
        near.send(b"three").unwrap();
        assert_eq!(far.receive(&mut buffer).unwrap(), Received::Message(3));
        assert_eq!(far.receive(&mut buffer).unwrap(), Received::Message(5));
        assert_eq!(&buffer[..5], b"three");
        // The peer ends with a message of ours unread; its own last words still arrive.
        far.send(b"answer").unwrap();
        near.send(b"last").unwrap();
        drop(near);
        assert_eq!(far.receive(&mut buffer).unwrap(), Received::Message(4));
        assert_eq!(far.receive(&mut buffer).unwrap(), Received::End);
        assert!(far.send(b"too late").is_err());
    }
}
