//! Touches of pages that were taken out for a while (`UFFDIO_MOVE`), whose threads a userfaultfd reports.
//!
//! **What a count would be.** The first touch, read or write, of a page of a small window that was taken out, with its
//! thread. Only the process itself can take pages out, so this needs a part in the program, which must put them back
//! before a fork, a system call or a change of the mapping meets one. That part is not implemented; [`probe`] tells if
//! the kernel supports it.

use sys::faults::Faults;

use super::Probed;

pub const NAME: &str = "taken-pages";

pub fn probe() -> Probed {
    let faults = Faults::open(false).map_err(|error| format!("no userfaultfd is to be had here: {error}"))?;
    // A kernel that moves pages names threads, too: that is older (Linux 4.14).
    Err(match faults.features().moves() {
        true => {
            "the kernel could take pages out and name who touches them (UFFDIO_MOVE, UFFD_FEATURE_THREAD_ID); a part in the \
             program that does so is not implemented"
        }
        false => "the kernel cannot take pages out of a process (UFFDIO_MOVE, Linux 6.8)",
    }
    .to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_why_it_is_none() {
        let why = probe().map(|_| ()).unwrap_err();
        assert!(why.contains("UFFD") || why.contains("userfaultfd"), "{why}");
    }
}
