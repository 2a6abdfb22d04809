//! Machines that a test makes up for the daemon: a tree of the files that say how much memory there is.

use std::path::Path;

use live::PAGE_BYTES;
use live::daemon::Client;

use crate::slow::daemon::house::eventually;

/// A tree for [`Wish::root`](super::house::Wish::root): a machine of 4 GiB with so much memory available, whose tasks wait for memory so many
/// percent of the time.
pub fn machine(folder: &Path, available_mib: u64, stalled: &str) {
    std::fs::create_dir_all(folder.join("proc/pressure")).unwrap();
    std::fs::create_dir_all(folder.join("proc/self")).unwrap();
    let available = available_mib << 10;
    put(
        folder,
        "meminfo",
        &format!("MemTotal: {} kB\nMemAvailable: {available} kB\n", 4096 << 10),
    );
    put(
        folder,
        "pressure/memory",
        &format!("some avg10={stalled} avg60=0.00 avg300=0.00 total=0\n"),
    );
}

/// Puts a file into a tree's `/proc`: whole, or as it was, since the daemon may read at any moment.
fn put(folder: &Path, name: &str, text: &str) {
    let fresh = folder.join("proc/fresh");
    std::fs::write(&fresh, text).unwrap();
    std::fs::rename(&fresh, folder.join("proc").join(name)).unwrap();
}

/// Waits until the daemon has seen the current state of its [`machine`].
pub fn seen(client: &mut Client, folder: &Path) {
    // The daemon reports how much memory it has as the machine tells it. It reads that after the rest, so the first of
    // these numbers may come with the machine's earlier state.
    for pages in [1001, 1002] {
        put(folder, "self/statm", &format!("2000 {pages} 0 0 0 0 0\n"));
        eventually("the daemon looks at its machine", || {
            client.status().unwrap().own == pages * PAGE_BYTES as u64
        });
    }
}
