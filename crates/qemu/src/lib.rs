//! A plugin of QEMU's TCG that writes what a whole machine references, kernel and programs, into a trace: physical
//! addresses, a thread of the trace for each cpu. `capture/qemu/run` boots a guest with it.
//!
//! | module | what it is |
//! | --- | --- |
//! | `plugin` | QEMU's interface: what it calls, and what is asked of it; the only unsafe one |
//! | `options` | what the plugin is told on QEMU's command line |
//! | `marker` | the instruction with which a guest begins and ends what is recorded |
//! | `frames` | where the pages lay that a cpu referenced last, and what makes that void |
//! | `places` | the instructions of translated blocks, and the sites of their references |
//! | `scribe` | what cpus recorded goes into a trace, on a thread of its own |
//!
//! A callback of a reference looks up its frame and its site, and appends the reference, as the trace's writer takes it, to a batch
//! of its cpu. Nothing is locked there. QEMU is asked for a physical address where `frames` does not know it. Full batches go to
//! the scribe.

#[cfg_attr(
    test,
    allow(dead_code, reason = "QEMU's interface, which uses them, is not there in tests")
)]
mod frames;
#[cfg_attr(test, allow(dead_code, reason = "as above"))]
mod marker;
#[cfg_attr(test, allow(dead_code, reason = "as above"))]
mod options;
#[cfg_attr(test, allow(dead_code, reason = "as above"))]
mod places;
#[cfg(not(test))]
mod plugin;
#[cfg_attr(test, allow(dead_code, reason = "as above"))]
mod scribe;
