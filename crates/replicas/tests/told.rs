//! What replicated data takes is told to the command that asked for it.

use std::path::Path;

use replicas::{Replicated, SharedReplicas, TOLD, Taken, TextCopies, Way};

const BYTES: usize = 3 * 4096;

/// In a process of its own: the store is looked for once, and the environment names it.
#[test]
fn what_copies_take_is_told_to_the_store() {
    let store = match std::env::var_os(TOLD) {
        Some(path) => TextCopies::open(Path::new(&path)).unwrap(),
        None => TextCopies::create().unwrap(),
    };
    let path = store.path();
    if !harness::alone(
        "told::what_copies_take_is_told_to_the_store",
        &[(TOLD, path.as_os_str())],
    ) {
        return;
    }
    assert_eq!(store.taken(Way::Handles).unwrap(), Taken::default());
    let data = Replicated::new(&[1u8; BYTES]).unwrap();
    let memory = data.state().memory();
    let told = |data, most_bytes| Taken { data, most_bytes };
    assert_eq!(store.taken(Way::Handles).unwrap(), told(1, memory));
    // The old and the new copies.
    data.update(|bytes| bytes[0] = 2).unwrap();
    assert_eq!(store.taken(Way::Handles).unwrap(), told(1, 2 * memory));
    drop(data);
    // What was given back is there for others.
    let others: Vec<_> = (0..2).map(|_| Replicated::new(&[1u8; BYTES]).unwrap()).collect();
    assert_eq!(store.taken(Way::Handles).unwrap(), told(3, 2 * memory));
    let more = Replicated::new(&[1u8; BYTES]).unwrap();
    assert_eq!(store.taken(Way::Handles).unwrap(), told(4, 3 * memory));
    drop((others, more));
    let shared = SharedReplicas::create(&[1u8; BYTES]).unwrap();
    let memory = shared.state().unwrap().memory();
    assert_eq!(store.taken(Way::Mappings).unwrap(), told(1, memory));
    // To write is to collapse: nothing is there twice.
    shared.write(0, &[2]).unwrap();
    shared.replicate().unwrap();
    assert_eq!(store.taken(Way::Mappings).unwrap(), told(1, memory));
    // A child of fork has no part in it.
    // SAFETY: the child makes no threads, and ends by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let made = Replicated::new(&[1u8; BYTES]).is_ok();
        // SAFETY: as above.
        unsafe { libc::_exit(i32::from(!made)) };
    }
    let mut status = 0;
    // SAFETY: the child is ours, and the status lives.
    assert_eq!(child, unsafe { libc::waitpid(child, &raw mut status, 0) });
    assert_eq!((status, store.taken(Way::Handles).unwrap().data), (0, 4));
}
