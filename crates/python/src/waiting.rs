//! Long calls: on a thread of their own, while this one waits for the end or for Ctrl-C.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// How often signals are looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Thrown where the work is to end; nobody sees it.
pub struct Interrupted;

/// Whether the work is still wanted.
pub struct Wanted(AtomicBool);

impl Wanted {
    /// Ends the work here if it is not. Called by the work now and then, on any of its threads.
    pub fn or_end(&self) {
        if !self.0.load(Ordering::Relaxed) {
            // Unwinds through the simulator, whose threads hand a panic on to whoever waits for them.
            resume_unwind(Box::new(Interrupted));
        }
    }
}

/// Does some work without the interpreter's lock.
///
/// Errors: what a signal handler of Python raised (Ctrl-C: `KeyboardInterrupt`). The work has ended by then.
pub fn wait_for<T: Send>(py: Python<'_>, work: impl FnOnce(&Wanted) -> T + Send) -> PyResult<T> {
    let wanted = Wanted(AtomicBool::new(true));
    py.detach(|| {
        std::thread::scope(|scope| {
            let (done, ended) = channel();
            let wanted = &wanted;
            let worker = scope.spawn(move || {
                let found = work(wanted);
                // Who waits may have been interrupted just now.
                let _ = done.send(());
                found
            });
            let mut raised = None;
            // Disconnected: the work panicked.
            while raised.is_none() && ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                raised = Python::attach(|py| py.check_signals()).err();
            }
            if raised.is_some() {
                wanted.0.store(false, Ordering::Relaxed);
            }
            match (worker.join(), raised) {
                (_, Some(error)) => Err(error),
                (Ok(found), None) => Ok(found),
                // The work ended itself; it knows why.
                (Err(panic), None) if panic.is::<Interrupted>() => Err(PyRuntimeError::new_err("the work ended early")),
                (Err(panic), None) => resume_unwind(panic),
            }
        })
    })
}
