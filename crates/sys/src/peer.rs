//! The process at the other end of a Unix socket, and what may be asked about it while it lives.
//!
//! A process number says little by itself: the process may be gone and the number given to another. A
//! descriptor of the process (pidfd) ties the two: files opened by number are good if the process
//! still lived afterwards.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags};

use crate::frames::Pagemap;

/// The process that connected, as the kernel saw it then.
#[derive(Debug)]
pub struct Identity {
    pub process: u32,
    pub user: u32,
    pub group: u32,
    life: OwnedFd,
}

impl Identity {
    /// The process that called `connect` for the other end of `socket`.
    ///
    /// Needs: Linux 5.3; from 6.5 on there is no gap in which the process could have been replaced.
    /// Ensures: an error of kind `NotFound` if the process is gone already.
    pub fn of(socket: &impl AsFd) -> io::Result<Identity> {
        let who = rustix::net::sockopt::socket_peercred(socket)?;
        let life = match descriptor_of_peer(socket.as_fd()) {
            Ok(life) => life,
            // Before Linux 6.5.
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => {
                rustix::process::pidfd_open(who.pid, PidfdFlags::empty()).map_err(gone)?
            }
            Err(error) => return Err(error),
        };
        Ok(Identity {
            process: Pid::as_raw(Some(who.pid)) as u32,
            user: who.uid.as_raw(),
            group: who.gid.as_raw(),
            life,
        })
    }

    /// Returns whether the process lives. One that has ended but was not waited for does not.
    pub fn lives(&self) -> bool {
        let mut polled = [PollFd::new(&self.life, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(rustix::event::poll(&mut polled, Some(&now)), Ok(0))
    }

    /// The process's page map. It belongs to the process's current address space: after an exec, it finds
    /// nothing.
    ///
    /// Needs: the right to trace the process. Ensures: it is this process's map and no other's.
    pub fn pagemap(&self) -> io::Result<Pagemap> {
        let map = Pagemap::of(self.process)?;
        if !self.lives() {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        Ok(map)
    }
}

/// Becomes readable when the process ends.
impl AsFd for Identity {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.life.as_fd()
    }
}

fn gone(error: rustix::io::Errno) -> io::Error {
    match error {
        rustix::io::Errno::SRCH | rustix::io::Errno::INVAL => io::Error::from(io::ErrorKind::NotFound),
        other => other.into(),
    }
}

fn descriptor_of_peer(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut descriptor: libc::c_int = -1;
    let mut bytes = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the option's value is one int, and `descriptor` and `bytes` outlive the call.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERPIDFD,
            (&raw mut descriptor).cast(),
            &mut bytes,
        )
    };
    if done != 0 {
        let error = io::Error::last_os_error();
        return Err(match error.raw_os_error() {
            Some(libc::ESRCH | libc::EINVAL | libc::ENODATA) => io::Error::from(io::ErrorKind::NotFound),
            _ => error,
        });
    }
    // SAFETY: the kernel just made this descriptor for us and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::process::{Command, Stdio};

    #[test]
    fn tells_who_connected() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let _near = UnixStream::connect(&path).unwrap();
        let (far, _) = listener.accept().unwrap();
        let who = Identity::of(&far).unwrap();
        assert_eq!(who.process, std::process::id());
        assert_eq!(who.user, rustix::process::getuid().as_raw());
        assert!(who.lives());
        assert!(who.pagemap().is_ok());
    }

    #[test]
    fn a_process_that_ended_is_not_taken_for_another() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let script = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\nsys.stdin.read()";
        let child = Command::new("python3")
            .args(["-c", script, path.to_str().unwrap()])
            .stdin(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else {
            return harness::not_installed("there is no python3");
        };
        let (far, _) = listener.accept().unwrap();
        let who = Identity::of(&far).unwrap();
        assert_eq!(who.process, child.id());
        assert!(who.lives() && who.pagemap().is_ok());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!who.lives());
        assert!(who.pagemap().is_err());
        // An identity asked for only now tells it, too.
        assert!(Identity::of(&far).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) || !who.lives());
    }
}
