//! Folders of `/proc/self` whose entries are numbers: threads, open files.
//!
//! The standard library aborts the process if a folder cannot be closed, as happens when another thread of the program
//! closes all descriptors (`closefrom`) just then. Here that is an error like any other.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::path::Path;

use rustix::fs::RawDir;

use crate::kept::Kept;

/// The numbers in a folder, in the order in which the kernel lists them.
///
/// Errors: those of opening and reading it; EBADF if another thread has closed it meanwhile.
pub fn numbers(folder: &Path) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    visit(folder, |number| numbers.push(number))?;
    Ok(numbers)
}

/// The same one by one, without the heap.
pub fn visit(folder: &Path, found: impl FnMut(u32)) -> io::Result<()> {
    each(folder, |_| (), found)
}

/// `opened` is called between opening and reading.
fn each(folder: &Path, opened: impl Fn(&Kept), mut found: impl FnMut(u32)) -> io::Result<()> {
    // A number that now belongs to another file is not closed.
    let listed = Kept::new(File::open(folder)?.into())?;
    opened(&listed);
    let mut room = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(&listed, &mut room);
    while let Some(entry) = entries.next() {
        let name = entry?;
        if let Some(number) = name.file_name().to_str().ok().and_then(|name| name.parse().ok()) {
            found(number);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn threads_of_this_process_are_listed() {
        let threads = numbers(Path::new("/proc/self/task")).unwrap();
        assert!(
            threads.contains(&std::process::id()) && threads.len() > 1,
            "{threads:?}"
        );
        assert!(numbers(Path::new("/proc/self/nothing")).is_err());
    }

    #[test]
    fn a_folder_that_somebody_else_closed_is_an_error_and_no_end() {
        let close = |folder: &Kept| {
            // SAFETY: the number is that of a `Kept`, which notices.
            assert_eq!(0, unsafe { libc::close(folder.as_raw_fd()) });
        };
        let listed = each(Path::new("/proc/self/task"), close, |_| ());
        assert_eq!(listed.unwrap_err().raw_os_error(), Some(libc::EBADF));
    }
}
