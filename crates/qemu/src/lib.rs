//! A plugin of QEMU's TCG that writes what a whole machine references, kernel and programs, into a trace: physical
//! addresses, a thread of the trace for each cpu. `capture/qemu/run` boots a guest with it.
//!
//! | module | what it is |
//! | --- | --- |
//! | `plugin` | QEMU's interface: what it calls, and what is asked of it; the only unsafe one |
//! | `options` | what the plugin is told on QEMU's command line |
//! | `marker` | the instruction with which a guest begins and ends what is recorded |
//! | `scribe` | records of cpus become references of a trace, on a thread of its own |
//!
//! A callback of a reference asks QEMU for the physical address and appends 16 bytes to a buffer of its cpu. Nothing is
//! locked there. Full buffers go to the scribe.

#[cfg_attr(
    test,
    allow(dead_code, reason = "QEMU's interface, which uses them, is not there in tests")
)]
mod marker;
#[cfg_attr(test, allow(dead_code, reason = "as above"))]
mod options;
#[cfg(not(test))]
mod plugin;
#[cfg_attr(test, allow(dead_code, reason = "as above"))]
mod scribe;
