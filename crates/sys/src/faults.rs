//! userfaultfd: pages are taken out and put in while threads that touch them wait.
//!
//! A span registered with a [`Faults`] makes every thread that touches an absent page of it wait until the page is
//! put in or the span unregistered. The one that puts pages in must therefore never touch such a page itself.
//!
//! All spans registered with one userfaultfd belong together. While a change of one of its spans is unread, the
//! kernel refuses to take, put, copy and zero with it ([`Stop::Again`]). It refuses from before the change until
//! the thread that made it has been woken. A page that was taken with the userfaultfd of its own span is therefore
//! where the events read so far place it.
//!
//! [`Faults::put`], [`Faults::copy`] and [`Faults::zero`] only ever fill absent pages, and taking
//! pages out needs an [`Area`] to hold them; but while they are out, and if they are not put back,
//! the span's content is not what its owner left there. So all of these are `unsafe`: the caller
//! promises that the owner never notices. [`Faults::shift`] works between areas alone and is safe.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

mod events;
mod held;
mod transfer;

use rustix::ioctl::{Opcode, opcode};

use crate::kept::Kept;
use crate::memory::{Area, PAGE, Span};

pub use events::Event;
pub use held::Void;
use transfer::{Ours, Transfer, transfer};

/// The accesses that wait for a missing page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The program's and the kernel's on its behalf, as in `read(2)` into such a page.
    Kernel,
    /// The program's alone: a system call that meets a missing page fails (EFAULT).
    UserOnly,
}

/// How it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    SystemCall,
    /// `/dev/userfaultfd`
    Device,
}

/// The features of this kernel's userfaultfd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features(u64);

impl Features {
    const EVENT_FORK: u64 = 1 << 1;
    const EVENT_REMAP: u64 = 1 << 2;
    const EVENT_REMOVE: u64 = 1 << 3;
    const EVENT_UNMAP: u64 = 1 << 6;
    const MOVE: u64 = 1 << 16;
    const EVENTS: u64 = Features::EVENT_REMAP | Features::EVENT_REMOVE | Features::EVENT_UNMAP;

    /// UFFDIO_MOVE (Linux 6.8).
    pub fn moves(self) -> bool {
        self.0 & Features::MOVE != 0
    }

    /// Returns whether it reports `mremap`, `munmap` and `madvise` upon its spans, and these wait
    /// for it.
    pub fn events(self) -> bool {
        self.0 & Features::EVENTS == Features::EVENTS
    }
}

/// Why pages stay where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The page is absent where it was to be taken from (ENOENT); or the span is no longer there
    /// or no longer registered.
    Hole,
    /// It is shared with another process since a fork, or pinned by a device (EBUSY).
    Busy,
    /// The mapping is being changed, or the page handled by the kernel; try again (EAGAIN).
    Again,
    /// There is a page already (EEXIST).
    Occupied,
    /// Mappings that do not fit each other: access, locked or not, not anonymous (EINVAL).
    Unfit,
    /// Another error, by its number.
    Other(i32),
}

/// The progress of an operation: `bytes` from the start on are done, and the reason why not more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub bytes: usize,
    pub stop: Option<Stop>,
}

/// A userfaultfd of this process, and no other: a child of fork must open its own.
#[derive(Debug)]
pub struct Faults {
    fd: Kept,
    scope: Scope,
    door: Door,
    offered: Features,
    /// True if this user may receive fork events.
    forks: bool,
}

const GROUP: u8 = 0xaa;

#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct Range {
    start: u64,
    bytes: u64,
}

#[repr(C)]
struct Register {
    range: Range,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct Zero {
    range: Range,
    mode: u64,
    done: i64,
}

impl Faults {
    /// Opens one that makes kernel accesses wait too if this user may, by system call or device,
    /// else one for the program's accesses alone. `events` asks for [`Event::Moved`],
    /// [`Event::Emptied`] and [`Event::Unmapped`] where the kernel can report them, and for [`Event::Forked`] where this user
    /// may (CAP_SYS_PTRACE).
    ///
    /// Errors: those of the last way tried: EPERM, ENOSYS ...
    pub fn open(events: bool) -> io::Result<Faults> {
        Faults::open_for(Scope::Kernel, events).or_else(|_| Faults::open_for(Scope::UserOnly, events))
    }

    /// Opens one of this scope, or says why not.
    pub fn open_for(scope: Scope, events: bool) -> io::Result<Faults> {
        // A userfaultfd can be asked only once for the kernel's features, so enabling them takes a
        // second one.
        let (first, _) = descriptor(scope)?;
        let offered = Features(handshake(first.as_fd(), 0)?);
        drop(first);
        let (fd, _) = descriptor(scope)?;
        let forks = offered.0 & Features::EVENT_FORK != 0 && handshake(fd.as_fd(), Features::EVENT_FORK).is_ok();
        drop(fd);
        Faults::agreed(scope, offered, forks, events)
    }

    /// Another one of the same scope; `events` as for [`open`](Faults::open).
    pub fn another(&self, events: bool) -> io::Result<Faults> {
        Faults::agreed(self.scope, self.offered, self.forks, events)
    }

    fn agreed(scope: Scope, offered: Features, forks: bool, events: bool) -> io::Result<Faults> {
        let (fd, door) = descriptor(scope)?;
        let wished = if events { Features::EVENTS } else { 0 };
        let wished = if events && forks {
            wished | Features::EVENT_FORK
        } else {
            wished
        };
        handshake(fd.as_fd(), offered.0 & (Features::MOVE | wished))?;
        Ok(Faults {
            fd: Kept::new(fd)?,
            scope,
            door,
            offered,
            forks,
        })
    }

    /// The same one by another number, which the program may close alone.
    ///
    /// Errors: EBADF if this one is closed; EMFILE.
    pub fn twin(&self) -> io::Result<Faults> {
        Ok(Faults {
            fd: Kept::new(self.fd.get()?.try_clone_to_owned()?)?,
            scope: self.scope,
            door: self.door,
            offered: self.offered,
            forks: self.forks,
        })
    }

    /// Returns whether it is still open: the program may have closed it without knowing.
    pub fn is_ours(&self) -> bool {
        self.fd.is_ours()
    }

    pub fn scope(&self) -> Scope {
        self.scope
    }

    pub fn door(&self) -> Door {
        self.door
    }

    pub fn features(&self) -> Features {
        self.offered
    }

    /// Returns whether it reports forks, if events were requested.
    pub fn hears_forks(&self) -> bool {
        self.forks
    }

    /// From now on threads that touch absent pages of the span wait.
    ///
    /// Errors: EBUSY if part of it is registered with another one, EINVAL if nothing or
    /// something unfit is mapped, EPERM for files that may not be written.
    ///
    /// Unmapped parts are skipped silently, and mappings made there later are not registered: see
    /// [`holds`](Faults::holds).
    pub fn register(&self, span: Span) -> io::Result<()> {
        const MISSING: u64 = 1;
        let mut register = Register {
            range: range(span),
            mode: MISSING,
            ioctls: 0,
        };
        // SAFETY: the structure is what UFFDIO_REGISTER wants, and lives.
        unsafe { self.ask(opcode::read_write::<Register>(GROUP, 0x00), &mut register) }
    }

    /// Unregisters a span and wakes all waiters in it, which go on with the pages that are there.
    ///
    /// Errors: EINVAL if nothing is mapped in part of it (the rest keeps its registration).
    pub fn unregister(&self, span: Span) -> io::Result<()> {
        let mut range = range(span);
        // SAFETY: the structure is what UFFDIO_UNREGISTER wants, and lives.
        unsafe { self.ask(opcode::read::<Range>(GROUP, 0x01), &mut range) }
    }

    /// Wakes the threads that wait in the span: they look again.
    pub fn wake(&self, span: Span) -> io::Result<()> {
        let mut range = range(span);
        // SAFETY: the structure is what UFFDIO_WAKE wants, and lives.
        unsafe { self.ask(opcode::read::<Range>(GROUP, 0x02), &mut range) }
    }

    /// Takes pages of somebody's span out, with their frames, into absent pages of an area that is
    /// registered here. Their place is absent afterwards.
    ///
    /// Pre: the area's pages are absent. (Where the kernel says that one is filled, those that are there count as taken
    /// out just now.) Post: the first `bytes` are out, all others where they were.
    ///
    /// # Safety
    /// Nobody finds the place empty: until each page is put back, or its owner has given it up, the span stays
    /// registered with a [`Faults`] through which only the page itself is put in, or nobody touches it; and no fork
    /// takes place. Or else the owner no longer needs the content.
    pub unsafe fn take(&self, from: Span, into: &mut Area, page: usize) -> Progress {
        let to = into.part(page, from.bytes / PAGE);
        self.move_pages(to, from.start, Ours::Takes)
    }

    /// Puts pages of an area, with their frames, into absent pages of a span that is registered here, and wakes their
    /// waiters. They are absent in the area afterwards.
    ///
    /// Pre: the area has these pages. (Where the kernel says that a place is filled, those that are absent count as put
    /// in just now.) Post: the first `bytes` are in, all others where they were.
    ///
    /// # Safety
    /// The pages' content is the one that the owner of the span expects there: the content taken out, or zeros if the
    /// pages were never touched, or emptied.
    pub unsafe fn put(&self, from: &mut Area, page: usize, to: Span) -> Progress {
        let from = from.part(page, to.bytes / PAGE);
        self.move_pages(to, from.start, Ours::Gives)
    }

    /// Moves pages with their frames from one area to absent pages of another one, which is
    /// registered here.
    ///
    /// Pre: as of [`take`](Faults::take). Post: the first `bytes` are moved and absent where they were, all others as
    /// before.
    pub fn shift(&self, from: &mut Area, first: usize, into: &mut Area, page: usize, count: usize) -> Progress {
        let to = into.part(page, count);
        self.move_pages(to, from.part(first, count).start, Ours::Takes)
    }

    /// Fills absent pages of a span that is registered here with the content of an area's pages, in
    /// frames of the kernel's choice, and wakes their waiters.
    ///
    /// # Safety
    /// As for [`put`](Faults::put).
    pub unsafe fn copy(&self, from: &Area, page: usize, to: Span) -> Progress {
        let from = from.part(page, to.bytes / PAGE);
        let request = opcode::read_write::<Transfer>(GROUP, 0x03);
        // SAFETY: the structure is what UFFDIO_COPY wants; the kernel checks the addresses and fills absent pages
        // only. The caller promised what the owner expects.
        transfer(to, from.start, |transfer| unsafe { self.ask(request, transfer) }, |_| 0)
    }

    /// Fills absent pages of a span that is registered here with zeros, and wakes their waiters.
    ///
    /// # Safety
    /// None of the pages is taken out: absent pages that were not taken are zeros already.
    pub unsafe fn zero(&self, span: Span) -> Progress {
        let mut zero = Zero {
            range: range(span),
            mode: 0,
            done: 0,
        };
        // SAFETY: the structure is what UFFDIO_ZEROPAGE wants; absent pages only are filled, which the
        // caller promises to be zeros already.
        let asked = unsafe { self.ask(opcode::read_write::<Zero>(GROUP, 0x04), &mut zero) };
        Progress {
            bytes: usize::try_from(zero.done).unwrap_or(0),
            stop: asked.err().map(|error| stop(&error)),
        }
    }

    /// # Safety
    /// `structure` is what the request wants.
    unsafe fn ask<T>(&self, request: Opcode, structure: &mut T) -> io::Result<()> {
        // SAFETY: as our caller promises; the structure is borrowed for the call.
        unsafe { ask(self.fd.as_fd(), request, structure) }
    }
}

impl AsFd for Faults {
    /// Readable when there is an event.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// # Safety
/// `structure` is what the request wants.
unsafe fn ask<T>(fd: BorrowedFd<'_>, request: Opcode, structure: &mut T) -> io::Result<()> {
    // SAFETY: as our caller promises; the structure is borrowed for the call.
    if unsafe { libc::ioctl(fd.as_raw_fd(), request as _, &raw mut *structure) } == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

fn range(span: Span) -> Range {
    Range {
        start: span.start as u64,
        bytes: span.bytes as u64,
    }
}

fn stop(error: &io::Error) -> Stop {
    match error.raw_os_error().unwrap_or(0) {
        libc::ENOENT => Stop::Hole,
        libc::EBUSY => Stop::Busy,
        libc::EAGAIN => Stop::Again,
        libc::EEXIST => Stop::Occupied,
        libc::EINVAL => Stop::Unfit,
        other => Stop::Other(other),
    }
}

/// Opens one without a word said yet.
fn descriptor(scope: Scope) -> io::Result<(OwnedFd, Door)> {
    const USER_MODE_ONLY: libc::c_int = 1;
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
    let extra = match scope {
        Scope::Kernel => 0,
        Scope::UserOnly => USER_MODE_ONLY,
    };
    // SAFETY: the call takes flags alone and returns a descriptor or an error.
    let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, flags | extra) };
    if fd >= 0 {
        // SAFETY: a descriptor that the kernel has just given us.
        return Ok((unsafe { OwnedFd::from_raw_fd(fd as i32) }, Door::SystemCall));
    }
    let refused = io::Error::last_os_error();
    let Ok(device) = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_CLOEXEC)
        .open("/dev/userfaultfd")
    else {
        return Err(refused);
    };
    // SAFETY: USERFAULTFD_IOC_NEW takes flags alone and returns a descriptor or an error.
    let fd = unsafe { libc::ioctl(device.as_raw_fd(), opcode::none(GROUP, 0x00) as _, flags | extra) };
    if fd < 0 {
        return Err(refused);
    }
    // SAFETY: a descriptor that the kernel has just given us.
    Ok((unsafe { OwnedFd::from_raw_fd(fd) }, Door::Device))
}

/// Agrees on features; returns those that the kernel has.
fn handshake(fd: BorrowedFd<'_>, features: u64) -> io::Result<u64> {
    let mut api = Api {
        api: 0xaa,
        features,
        ioctls: 0,
    };
    // SAFETY: the structure is what UFFDIO_API wants, and lives.
    unsafe { ask(fd, opcode::read_write::<Api>(GROUP, 0x3f), &mut api)? };
    Ok(api.features)
}

#[cfg(test)]
mod tests;
