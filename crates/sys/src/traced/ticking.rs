//! A timer of the tracing thread, which looks after a program that does not stop by itself.

use std::io;
use std::marker::PhantomData;

/// While this lives, the calling thread's waits are broken off once in a period.
pub struct Ticking {
    timer: libc::timer_t,
    _here: PhantomData<*const ()>,
}

impl Ticking {
    /// A signal of its own: a program's `SIGALRM` is not ours to use.
    fn signal() -> i32 {
        libc::SIGRTMIN() + 7
    }

    pub fn every(period: std::time::Duration) -> io::Result<Ticking> {
        extern "C" fn nothing(_signal: i32) {}
        // SAFETY: an all-zero action with a handler that does nothing; without SA_RESTART, so that waits are broken off.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as extern "C" fn(i32) as usize;
            if libc::sigaction(Self::signal(), &raw const action, std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        // SAFETY: an all-zero event, filled in below.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = Self::signal();
        // SAFETY: gettid(2) takes nothing.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let mut timer: libc::timer_t = std::ptr::null_mut();
        // SAFETY: both are valid for the call.
        if unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let ticking = Ticking {
            timer,
            _here: PhantomData,
        };
        let time = libc::timespec {
            tv_sec: period.as_secs() as libc::time_t,
            tv_nsec: period.subsec_nanos().max(1).into(),
        };
        let times = libc::itimerspec {
            it_interval: time,
            it_value: time,
        };
        // SAFETY: the timer is ours; the times are valid for the call.
        if unsafe { libc::timer_settime(timer, 0, &raw const times, std::ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(ticking)
    }
}

impl Drop for Ticking {
    fn drop(&mut self) {
        // SAFETY: the timer is ours and is deleted once.
        unsafe { libc::timer_delete(self.timer) };
    }
}
