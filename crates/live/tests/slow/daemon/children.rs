//! Clients that fork: a child has a connection of its own.

use live::PAGE_BYTES;
use live::daemon::{ClientError, wire::Refusal};
use policy::slots::Kind;

use crate::slow::daemon::house::*;

const ROUNDS: u64 = 200;

#[test]
fn a_child_does_not_speak_on_its_parents_connection() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish::default());
    let mut client = daemon.client_of_full();
    let (_area, into) = area(64);
    client.fill_own(into, &[2; 64]).unwrap();
    let held = client.status().unwrap().held;
    let slot = client.slot(65536, Kind::Private).unwrap();
    let granted = client.allocate(Some(slot), 64 * PAGE_BYTES as u64, &[0]).unwrap();
    // SAFETY: the child has this thread only; what it calls takes no lock that another thread may have held but the
    // allocator's, which the C library readies for the child.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let work = || {
            // Answers of two kinds in turn: one that was meant for the parent would not fit.
            for round in 0..ROUNDS {
                assert_eq!(client.stock().unwrap().len(), COLORS);
                assert!(
                    client.available(&[0]).unwrap().0 <= (COLORS as u64 - 1) << 16,
                    "{round}"
                );
            }
            assert_eq!(client.connections(), 2);
            // The child may not free its parent's frames.
            for done in [client.free(granted.set), client.close(slot)] {
                let why = done.err().unwrap();
                assert!(
                    matches!(
                        why,
                        ClientError::Refused {
                            why: Refusal::Cache,
                            ..
                        }
                    ),
                    "{why}"
                );
            }
            drop(client);
        };
        let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_ok();
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(if worked { 0 } else { 1 }) }
    }
    assert!(child > 0);
    for _ in 0..ROUNDS {
        let slot = client.slot(65536, Kind::Shared).unwrap();
        client.close(slot).unwrap();
        client.status().unwrap();
    }
    let mut status = 0;
    // SAFETY: waits for our own child.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status}");
    // The child's end, too, left the parent all that it had.
    assert_eq!(client.status().unwrap().held, held);
    assert_eq!(client.connections(), 1);
    client.free(granted.set).unwrap();
    client.close(slot).unwrap();
}
