//! Protection keys: access to pages taken and given back without a system call, where the processor
//! has them (`pkeys(7)`).

use std::io;

/// Takes a key and gives it back.
///
/// Errors: EINVAL or ENOSPC if the processor or the kernel has none, or all are taken; ENOSYS.
pub fn try_key() -> io::Result<()> {
    // SAFETY: no flags, no initial restriction; the call touches no memory.
    let key = unsafe { libc::syscall(libc::SYS_pkey_alloc, 0, 0) };
    if key < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the key was just given to us and no page has it.
    if unsafe { libc::syscall(libc::SYS_pkey_free, key) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_given_back() {
        // There are 16 at most: taking more than that in turn shows that none is kept.
        let first = try_key().is_ok();
        assert!((0..40).all(|_| try_key().is_ok() == first));
    }
}
