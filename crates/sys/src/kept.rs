//! Descriptors that are kept in a process whose program knows nothing of them.
//!
//! A program may close all descriptors that it did not open (`closefrom`, as daemons do), and gets the next file by
//! a number that was ours. So each use and each close of a number first checks the file that it names. A close by
//! another thread just after the check goes unnoticed.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// The identity of an open file, distinct from all other open files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    /// The offset of the next read, for a file that anybody may open a second time.
    place: Option<u64>,
}

/// A descriptor that is ours as long as its number names the same file as at first.
#[derive(Debug)]
pub struct Kept {
    number: RawFd,
    identity: Identity,
}

/// The lowest number of kept descriptors: programs count on the numbers of the files that they open.
static FROM: AtomicI32 = AtomicI32::new(0);

/// The address of the table: it is read while pages are in flight.
pub(crate) fn place() -> usize {
    &raw const FROM as usize
}

/// Sets the lowest number of kept descriptors from now on, if the limit of open files allows.
pub fn out_of_the_way(from: RawFd) {
    FROM.store(from, Ordering::Relaxed);
}

/// Nobody reads that far into a file of `/proc`.
const FAR: u64 = 0x0d0c_11e5_0000_0000;
/// Files that were kept so far. Each gets a place of its own: one that is opened after the program has closed another gets
/// that one's number, and is the same file.
static FILES: AtomicU64 = AtomicU64::new(0);

impl Kept {
    /// Pre: no other open file has the same inode. Sockets have one each, and so have userfaultfds (Linux 5.12).
    pub fn new(file: OwnedFd) -> io::Result<Kept> {
        Kept::with(file, false)
    }

    /// A file that the program may have opened as well. Pre: it is only read at places that are given.
    pub fn file(file: File) -> io::Result<Kept> {
        let place = FAR + FILES.fetch_add(1, Ordering::Relaxed) % u64::from(u32::MAX);
        rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(place))?;
        Kept::with(file.into(), true)
    }

    fn with(file: OwnedFd, placed: bool) -> io::Result<Kept> {
        let from = FROM.load(Ordering::Relaxed);
        let file = match file.as_raw_fd() < from {
            true => rustix::io::fcntl_dupfd_cloexec(&file, from).unwrap_or(file),
            false => file,
        };
        let identity = identity(file.as_fd(), placed)?;
        Ok(Kept {
            number: file.into_raw_fd(),
            identity,
        })
    }

    /// The descriptor, now.
    ///
    /// Errors: EBADF if it is gone, or the number is another file's.
    pub fn get(&self) -> io::Result<BorrowedFd<'_>> {
        let now = identity(self.as_fd(), self.identity.place.is_some())?;
        if now == self.identity {
            Ok(self.as_fd())
        } else {
            Err(io::Error::from_raw_os_error(libc::EBADF))
        }
    }

    pub fn is_ours(&self) -> bool {
        self.get().is_ok()
    }
}

/// No identity check: for uses that do no harm to another's file.
impl AsFd for Kept {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the number is none of those that Rust has no name for. It is borrowed from no owner: where the program
        // has closed it the kernel refuses it, or it is the program's, of which this module takes care.
        unsafe { BorrowedFd::borrow_raw(self.number) }
    }
}

impl AsRawFd for Kept {
    fn as_raw_fd(&self) -> RawFd {
        self.number
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.is_ours() {
            // SAFETY: the number names what was given to us, and nobody else closes it as theirs.
            drop(unsafe { OwnedFd::from_raw_fd(self.number) });
        }
    }
}

fn identity(file: BorrowedFd<'_>, placed: bool) -> io::Result<Identity> {
    let about = rustix::fs::fstat(file)?;
    let place = match placed {
        true => Some(rustix::fs::tell(file)?),
        false => None,
    };
    Ok(Identity {
        device: about.st_dev,
        inode: about.st_ino,
        place,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Puts a file in the place of a number, as a program does that closed it before.
    fn replace(number: RawFd, by: &impl AsRawFd) {
        // SAFETY: the number is that of a `Kept`, which notices.
        assert_eq!(unsafe { libc::dup2(by.as_raw_fd(), number) }, number);
    }

    #[test]
    fn what_is_not_ours_any_more_is_neither_used_nor_closed() {
        let (mut reader, writer) = io::pipe().unwrap();
        let kept = Kept::new(writer.try_clone().unwrap().into()).unwrap();
        assert!(kept.is_ours());
        let number = kept.as_raw_fd();
        let other = tempfile::tempfile().unwrap();
        replace(number, &other);
        drop((writer, other));
        assert_eq!(kept.get().unwrap_err().raw_os_error(), Some(libc::EBADF));
        drop(kept);
        // SAFETY: the duplicate that `replace` left behind, which nobody else owns.
        let mut left = File::from(unsafe { OwnedFd::from_raw_fd(number) });
        left.write_all(b"it is open").unwrap();
        // The pipe has no writer any more: the end shows.
        assert_eq!(io::Read::read(&mut reader, &mut [0]).unwrap(), 0);
    }

    #[test]
    fn another_open_file_of_the_same_name_is_not_ours() {
        let open = || File::open("/proc/self/pagemap").unwrap();
        let kept = Kept::file(open()).unwrap();
        assert!(kept.is_ours());
        let number = kept.as_raw_fd();
        replace(number, &open());
        assert!(!kept.is_ours());
        drop(kept);
        // SAFETY: as above.
        let left = File::from(unsafe { OwnedFd::from_raw_fd(number) });
        assert!(left.metadata().is_ok());
    }

    #[test]
    fn what_is_ours_is_closed_in_the_end() {
        let (mut reader, writer) = io::pipe().unwrap();
        drop(Kept::new(writer.into()).unwrap());
        assert_eq!(io::Read::read(&mut reader, &mut [0]).unwrap(), 0);
    }

    #[test]
    fn a_file_that_is_opened_anew_by_the_same_number_is_not_closed_with_the_old_one() {
        let open = || File::open("/proc/self/pagemap").unwrap();
        let mut kept = Kept::file(open()).unwrap();
        for _ in 0..3 {
            // Does the same as `closefrom`, and opens a new file that gets the number.
            let number = kept.as_raw_fd();
            let again = open();
            // SAFETY: the number is that of a `Kept`, which notices; the file behind it becomes another one.
            unsafe { libc::dup3(again.as_raw_fd(), number, libc::O_CLOEXEC) };
            drop(again);
            assert!(!kept.is_ours());
            // SAFETY: the number was made above, and is nobody's else.
            let new = Kept::file(unsafe { File::from_raw_fd(number) }).unwrap();
            kept = new;
            assert!(kept.is_ours(), "the new one was closed with the old one");
        }
    }
}
