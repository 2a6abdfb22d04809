//! Running out of memory: an error, and never a lost thread.

use std::process::Command;

use threads::{Error, Keep, Scheduler, Shape, Tour};

/// What the process with little memory prints at its end.
const DONE: &str = "all threads ran";

#[test]
fn running_out_of_memory_loses_no_thread() {
    let itself = std::env::current_exe().unwrap();
    let output = Command::new("sh")
        .args([
            "-c",
            r#"ulimit -v 400000 && exec "$0" --exact memory::with_little_memory --ignored --nocapture --test-threads=1"#,
        ])
        .arg(itself)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains(DONE), "{text}\n{errors}");
}

#[test]
#[ignore = "is run by the test above, in a process that may have 400 MB"]
fn with_little_memory() {
    // A run needs a little memory to begin; a program that gets the error gives some back first.
    let ballast = vec![1u8; 32 << 20];
    let mut scheduler = Scheduler::new(Shape::new(&[64]).unwrap(), Tour::FirstFork);
    let mut forked = 0u64;
    let error = loop {
        assert!(forked < 1 << 30, "memory is not limited here");
        match scheduler.fork(&[forked * 7 % 100_000], [forked; 3]) {
            Ok(_) => forked += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error, Error::OutOfMemory);
    assert_eq!(scheduler.len() as u64, forked);
    assert!(forked > 1 << 20, "{forked} threads");
    drop(ballast);
    let (mut ran, mut sum) = (0u64, 0u64);
    scheduler
        .run(Keep::No, |thread, _| {
            ran += 1;
            sum += thread[0];
        })
        .unwrap();
    assert_eq!((ran, sum), (forked, forked * (forked - 1) / 2));

    // Inside, until that fails too.
    let (mut inside_forked, mut inside_ran) = (0u64, 0u64);
    scheduler.fork(&[0], [0; 3]).unwrap();
    scheduler
        .run(Keep::No, |thread, inside| {
            if thread[0] != 0 {
                inside_ran += 1;
                return;
            }
            while inside.fork(&[inside_forked * 7 % 1_000_000], [1; 3]).is_ok() {
                inside_forked += 1;
            }
        })
        .unwrap();
    assert!(
        inside_forked > 1 << 16 && inside_ran == inside_forked,
        "{inside_ran} of {inside_forked} ran"
    );
    println!("{DONE}");
}
