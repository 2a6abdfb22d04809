//! A plugin of QEMU's TCG that writes the references of a whole machine, kernel and programs, into a trace: physical
//! addresses, a thread of the trace for each cpu. `capture/qemu/run` boots a guest with it.
//!
//! | module | what it is |
//! | --- | --- |
//! | `plugin` | QEMU's interface: its callbacks, and its functions that the plugin calls; the only unsafe module |
//! | `options` | the plugin's options on QEMU's command line |
//! | `marker` | the instruction with which a guest begins and ends recording |
//! | `frames` | the frames of the pages that a cpu referenced last, and what invalidates them |
//! | `places` | the instructions of translated blocks, and the sites of their references |
//! | `scribe` | writes the cpus' references into a trace, on a separate thread |
//!
//! A callback of a reference looks up its frame and its site, and appends the reference, in the format of the trace's
//! writer, to a batch of its cpu. It takes no lock. QEMU is queried for a physical address only if `frames` does not
//! know it. Full batches go to the scribe.

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
