//! The run-time's own files, away from the program's.
//!
//! Programs rely on the numbers of the files that they open, close all unknown ones (daemons), and replace files by
//! number (shells). So ours get high numbers, and closing them in a loop over all numbers has no effect: otherwise the
//! program would get a number under which the engine still expects its own file.

use std::ffi::{c_int, c_uint};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use crate::{aside, placing};

/// The first number of ours, if the limit of open files allows it.
const FROM: c_int = 400;
/// The most files of ours that are remembered.
const MOST: usize = 32;

static OURS: [Ours; MOST] = [const { Ours::none() }; MOST];

/// A number, and the file that it named when it was ours: the program may since have put its own file there (`dup2`).
struct Ours {
    number: AtomicI32,
    device: AtomicU64,
    inode: AtomicU64,
}

impl Ours {
    const fn none() -> Ours {
        Ours {
            number: AtomicI32::new(-1),
            device: AtomicU64::new(0),
            inode: AtomicU64::new(0),
        }
    }

    fn remember(&self, number: c_int) {
        if let Some((device, inode)) = named(number) {
            self.device.store(device, Ordering::Relaxed);
            self.inode.store(inode, Ordering::Relaxed);
            self.number.store(number, Ordering::Relaxed);
        }
    }

    /// The number, if it is still ours. Uses a system call, but not the heap.
    fn number(&self) -> Option<c_int> {
        let number = self.number.load(Ordering::Relaxed);
        if number < 0 {
            return None;
        }
        let ours = (self.device.load(Ordering::Relaxed), self.inode.load(Ordering::Relaxed));
        (named(number) == Some(ours)).then_some(number)
    }
}

/// The file behind a number: its device and inode.
fn named(number: c_int) -> Option<(u64, u64)> {
    let mut about = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: there is room for the answer.
    if unsafe { libc::fstat(number, about.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: fstat succeeded and filled it.
    let about = unsafe { about.assume_init() };
    Some((about.st_dev, about.st_ino))
}

/// Files that are open.
fn open() -> Vec<c_int> {
    let numbers = sys::listing::numbers(Path::new("/proc/self/fd")).unwrap_or_default();
    numbers.into_iter().map(u32::cast_signed).collect()
}

/// Does something that opens files permanently, and remembers them as ours.
pub fn out_of_the_way<T>(act: impl FnOnce() -> T) -> T {
    sys::kept::out_of_the_way(FROM);
    let before = open();
    let fillers = fill();
    let done = act();
    drop(fillers);
    let new = open()
        .into_iter()
        .filter(|file| !before.contains(file) && is_open(*file));
    for (place, file) in OURS.iter().zip(new) {
        place.remember(file);
    }
    done
}

fn is_open(file: c_int) -> bool {
    // SAFETY: asks for a number's flags, and changes nothing.
    unsafe { libc::fcntl(file, libc::F_GETFD) != -1 }
}

/// Takes all numbers below `FROM`.
fn fill() -> Vec<OwnedFd> {
    let mut fillers = Vec::new();
    let Ok(nothing) = std::fs::File::open("/dev/null") else {
        return fillers;
    };
    let nothing = OwnedFd::from(nothing);
    let number = nothing.as_raw_fd();
    fillers.push(nothing);
    loop {
        // SAFETY: a new number for a file of ours.
        let filler = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) };
        if filler == -1 {
            // The limit is lower: then ours go wherever possible.
            let keep = fillers.len() / 2;
            fillers.truncate(keep);
            return fillers;
        }
        // SAFETY: the number was just made, and is only ours.
        fillers.push(unsafe { OwnedFd::from_raw_fd(filler) });
        if filler >= FROM {
            return fillers;
        }
    }
}

/// In a child of fork: closes the parent's files, so that their peers notice when the parent ends.
pub fn leave_to_parent() {
    for ours in &OURS {
        if let Some(file) = ours.number() {
            // SAFETY: a file of the run-time that a child does not need.
            unsafe { crate::next::close(file) };
        }
        ours.number.store(-1, Ordering::Relaxed);
    }
}

/// Returns true if a file is ours, and the program is the caller.
fn guarded(file: c_int) -> bool {
    let of_that_number = OURS.iter().find(|ours| ours.number.load(Ordering::Relaxed) == file);
    // For a program that restricts system calls, none is made; the file that it closes is not used any more.
    match of_that_number.filter(|_| file >= 0 && !placing::inside() && !aside::is_aside()) {
        Some(ours) => kept_error(|| ours.number().is_some()),
        None => false,
    }
}

/// Does something without changing the calling thread's error number.
fn kept_error<T>(act: impl FnOnce() -> T) -> T {
    // SAFETY: the calling thread's own error number.
    let before = unsafe { *libc::__errno_location() };
    let done = act();
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = before };
    done
}

/// # Safety
/// As C's function of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close(file: c_int) -> c_int {
    if guarded(file) {
        // SAFETY: the calling thread's own error number. The program never opened such a file.
        unsafe { *libc::__errno_location() = libc::EBADF };
        return -1;
    }
    // SAFETY: the program's own call.
    unsafe { crate::next::close(file) }
}

/// # Safety
/// As C's function of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // It is called between fork and exec, where other threads may have left the heap in any state: the heap is not
    // used.
    let mut ours = [c_uint::MAX; MOST];
    for (place, file) in ours.iter_mut().zip(&OURS) {
        let number = match aside::is_aside() {
            true => None,
            false => kept_error(|| file.number()),
        };
        *place = number
            .and_then(|number| c_uint::try_from(number).ok())
            .unwrap_or(c_uint::MAX);
    }
    ours.sort_unstable();
    // An empty place has the highest number, which is no file's.
    let ours = ours
        .into_iter()
        .filter(|file| *file != c_uint::MAX && (first..=last).contains(file));
    let mut from = first;
    for file in ours {
        if from < file {
            // SAFETY: the program's own call, without our files.
            let done = unsafe { crate::next::close_range(from, file - 1, flags) };
            if done != 0 {
                return done;
            }
        }
        from = file + 1;
    }
    // The kernel refuses a range that ends before it begins.
    if from > last && from > first {
        return 0;
    }
    // SAFETY: as above.
    unsafe { crate::next::close_range(from, last, flags) }
}

/// # Safety
/// As C's function of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn closefrom(first: c_int) {
    // SAFETY: the same by another name.
    unsafe { close_range(first.max(0) as c_uint, c_uint::MAX, 0) };
}
