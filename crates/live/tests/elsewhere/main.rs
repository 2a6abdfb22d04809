//! The program moves a range while its pages get other frames. In a process of its own: what a test
//! maps next takes the place that was left, while the engine may still be asked to color it.

#[allow(dead_code)]
#[path = "../engine/memory.rs"]
mod memory;

use std::sync::atomic::{AtomicBool, Ordering};

use live::{Error, Others, Why, Wish};

use memory::{Memory, engine, set};

const MIB: usize = 1 << 20;

#[test]
fn moving_elsewhere_takes_the_content_along() {
    let Some(mut engine) = engine() else { return };
    if !engine.means().running {
        return;
    }
    for round in 0..60 {
        let memory = Memory::alone(2 * MIB);
        let elsewhere = Memory::alone(2 * MIB);
        memory.number();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let mover = scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_micros(50 * (round % 8)));
                // SAFETY: both are ours and as large; what is moved is used at the new place only.
                let at = unsafe {
                    libc::mremap(
                        memory.start as *mut _,
                        memory.bytes,
                        memory.bytes,
                        libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED,
                        elsewhere.start as *mut libc::c_void,
                    )
                };
                over.store(true, Ordering::Relaxed);
                assert_eq!(at as usize, elsewhere.start, "{}", std::io::Error::last_os_error());
                elsewhere.assert_numbered();
            });
            let sets = [set(&[0, 1]), set(&[2, 3]), set(&[4])];
            for chosen in sets.iter().cycle() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                match engine.color(memory.pages(), &Wish::Set(chosen.clone()), Others::Running) {
                    Ok(done) => assert!(done.left.iter().all(|left| left.why != Why::Own), "{done:?}"),
                    // No longer there.
                    Err(Error::Unfit { .. } | Error::System { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            mover.join().unwrap();
        });
        elsewhere.assert_numbered();
        // Its place may be another's by now.
        std::mem::forget(memory);
    }
}
