//! A memory barrier in all threads of this process at once (`membarrier(2)`), for protocols in which one side is rare and
//! the other must cost nothing: the frequent side then needs no instruction of its own.

use std::io;

const REGISTER: libc::c_int = libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
const BARRIER: libc::c_int = libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED;

/// Says that this process will ask for barriers; to say it twice does no harm.
///
/// Errors: ENOSYS or EINVAL before Linux 4.14 and where CPUs are isolated (`nohz_full`); EPERM if a container forbids it.
pub fn announce() -> io::Result<()> {
    ask(REGISTER)
}

/// Ensures: every thread of this process has passed a full memory barrier between the beginning of this call and its end.
///
/// Needs: [`announce`] before, in this process. Errors: as there; ENOMEM; then nothing is promised.
pub fn in_all_threads() -> io::Result<()> {
    ask(BARRIER)
}

fn ask(command: libc::c_int) -> io::Result<()> {
    // SAFETY: the call takes numbers, and changes no memory.
    match unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn barriers_come_once_they_were_announced() {
        if let Err(error) = super::announce() {
            return harness::not_here(format_args!("no barriers in other threads: {error}"));
        }
        super::announce().unwrap();
        super::in_all_threads().unwrap();
    }
}
