//! What moving pages takes: as `live::homes` does it, in batches and with its checks, and as one call of the kernel for all of
//! them, in turns. JSON: nanoseconds a page of each round.
//!
//! `cargo run --release -p domicile-live --example moves [ROUNDS [PAGES]]`
//!
//! With several nodes pages go to and fro between the first two. With one they are asked to where they are: the kernel then
//! looks at each and copies none, so that what is on top of its call shows more than it would.

use std::time::{Duration, Instant};

use live::homes::{Here, Linux, Unit, Wanted, carry_out};
use sys::Root;
use sys::memory::{Area, PAGE, Size};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let rounds = numbers.next().unwrap_or(Ok(21))?;
    let pages = numbers.next().unwrap_or(Ok(8192))?;
    let all: Vec<u32> = sys::nodes::nodes(&Root::default())?
        .iter()
        .map(|node| node.number)
        .collect();
    let nodes: Vec<u32> = all.iter().copied().take(2).collect();
    let to = |turn: usize| nodes[turn % nodes.len()];
    let area = Area::map(pages * PAGE, Size::Small)?;
    (0..pages).for_each(|page| area.set_word(page, 0, 1));
    let addresses: Vec<usize> = (0..pages).map(|page| area.start() + page * PAGE).collect();
    let mut linux = Here::default();
    let process = std::process::id();
    let (mut kernel, mut ours) = (Vec::new(), Vec::new());
    // Before each of both the pages are on the node that the turn before left them on.
    for turn in 0..rounds {
        let begin = Instant::now();
        let moved = linux.move_to(process, &addresses, &vec![to(2 * turn + 1); pages])?;
        kernel.push(begin.elapsed());
        check(
            moved.iter().filter(|page| **page == Ok(to(2 * turn + 1))).count(),
            pages,
        )?;
        let node = to(2 * turn);
        let wanted = |&address: &usize| Wanted {
            unit: Unit { address, pages: 1 },
            node,
        };
        let begin = Instant::now();
        let became = carry_out(
            &mut linux,
            process,
            addresses.iter().map(wanted).collect(),
            Duration::MAX,
        );
        ours.push(begin.elapsed());
        check(became.iter().filter(|(_, became)| became.is_ok()).count(), pages)?;
    }
    let each = |times: &[Duration]| -> Vec<f64> {
        let pages = pages as f64;
        times.iter().map(|time| time.as_nanos() as f64 / pages).collect()
    };
    println!(
        "{{\"nodes\": {}, \"pages\": {pages}, \"kernel\": {:?}, \"ours\": {:?}}}",
        all.len(),
        each(&kernel),
        each(&ours)
    );
    Ok(())
}

fn check(moved: usize, pages: usize) -> Result<(), String> {
    match moved == pages {
        true => Ok(()),
        false => Err(format!("only {moved} of {pages} pages are where they were to go")),
    }
}
