//! Homes for policy `summary-homes`: every byte of every iteration of every loop, counted.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use machine::Machine;
use policy::cdpc::{Access, Communication, Direction, Loop, Schedule, Summary};
use policy::{BestHomes, Page};

use super::cdpc::said;
use super::program::Program;

pub fn make(program: &Program, machine: &Machine) -> BestHomes {
    let homes = said(program)
        .0
        .into_iter()
        .flat_map(|(space, loops)| of(&loops, machine).into_iter().map(move |home| (space, home)));
    let homes = homes.map(|(space, (number, node))| (Page { space, number }, node));
    BestHomes::new(homes.collect::<HashMap<_, _>>())
}

fn of(loops: &[Loop], machine: &Machine) -> BTreeMap<u64, u32> {
    let node_of = |thread: u32| thread % machine.cpus * machine.memory.nodes / machine.cpus;
    let threads = loops.iter().map(|a_loop| a_loop.threads).max().unwrap_or(0);
    let active: BTreeSet<u32> = (0..threads).map(node_of).collect();
    let mut counts = BTreeMap::<u64, BTreeMap<u32, u64>>::new();
    for a_loop in loops {
        let summaries: BTreeMap<String, &Summary> = a_loop.summaries.iter().map(|one| (bytes(one), one)).collect();
        for i in 0..a_loop.iterations {
            for byte in summaries.values().flat_map(|summary| touched(a_loop, summary, i)) {
                let page = counts.entry(byte / machine.page_bytes).or_default();
                *page.entry(node_of(thread_of(a_loop, i))).or_default() += 1;
            }
        }
    }
    let home = |(page, counts): (u64, BTreeMap<u32, u64>)| {
        let most = counts.values().copied().max().unwrap_or(0);
        let tied: Vec<u32> = counts
            .into_iter()
            .filter(|count| count.1 == most)
            .map(|count| count.0)
            .collect();
        let turn = if tied.len() == active.len() { page } else { 0 };
        (page, tied[turn as usize % tied.len()])
    };
    counts.into_iter().map(home).collect()
}

/// The bytes that a summary is about, whatever their use.
fn bytes(summary: &Summary) -> String {
    let mut bytes = summary.clone();
    bytes.name.clear();
    bytes.access = Access::Read;
    if matches!(bytes.communication, Communication::Shift(0) | Communication::Rotate(0)) {
        bytes.communication = Communication::None;
    }
    serde_json::to_string(&bytes).expect("a summary is JSON")
}

fn touched(a_loop: &Loop, summary: &Summary, i: u64) -> impl Iterator<Item = u64> {
    let (i, total) = (i128::from(i), i128::from(a_loop.iterations));
    let (i, shift) = match summary.communication {
        Communication::None => (i, 0),
        Communication::Shift(bytes) => (i, i128::from(bytes)),
        Communication::Rotate(distance) => ((i + i128::from(distance)).rem_euclid(total), 0),
    };
    assert!(
        summary.inner.is_empty() && summary.bytes > 0,
        "no random program has that"
    );
    let start = i128::from(summary.start);
    let array = start..start + i128::from(summary.bytes);
    let first = start + i128::from(summary.offset) + shift + i * i128::from(summary.unit);
    let bytes = (first..first + i128::from(summary.span)).filter(move |byte| array.contains(byte));
    bytes.map(|byte| byte as u64)
}

fn thread_of(a_loop: &Loop, i: u64) -> u32 {
    let (total, threads) = (a_loop.iterations, u64::from(a_loop.threads));
    let longer = total % threads * (total / threads + 1);
    let turn = match a_loop.schedule {
        Schedule::Even if i < longer => i / (total / threads + 1),
        Schedule::Even => total % threads + (i - longer) / (total / threads),
        Schedule::Blocked => i / total.div_ceil(threads),
        Schedule::Chunked(chunk) => i / chunk % threads,
    };
    match a_loop.direction {
        Direction::Forward => turn as u32,
        Direction::Reverse => a_loop.threads - 1 - turn as u32,
    }
}
