//! Carrying out moves: pages of a process to other nodes, in batches, with a look at the clock between them.
//!
//! The kernel is asked for nothing that the process may not have or does not want: nodes outside its cpuset, and memory
//! whose nodes the program chose itself. Each page that the kernel leaves where it is has its own reason.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use sys::move_pages::{PageError, Pages};

use super::linux::{Chosen, Linux, Unit};

/// Pages that are moved by one call at most: the clock is looked at after each. Each call has all cpus hand in their lists of pages
/// first, which with a few hundred pages a call took as long as half of their moves.
const BATCH: u32 = 2048;

/// A unit that is to be moved, and the node of Linux that it is to be moved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub unit: Unit,
    pub node: u32,
}

/// Why a page was left where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Left {
    Gone,
    Absent,
    Shared,
    Busy,
    NoMemory,
    NotAllowed,
    Chosen,
    Refused,
    Late,
    Other(i32),
}

impl Left {
    /// For people.
    pub fn why(self) -> String {
        match self {
            Left::Gone => "the process has ended (ESRCH)".to_string(),
            Left::Absent => "it was unmapped, emptied or swapped out meanwhile (ENOENT, EFAULT)".to_string(),
            Left::Shared => "several processes have it (EACCES)".to_string(),
            Left::Busy => "somebody holds it just now: a device, or the kernel (EBUSY)".to_string(),
            Left::NoMemory => "the node has no memory left for it (ENOMEM)".to_string(),
            Left::NotAllowed => "the process may not have memory of that node (cpuset)".to_string(),
            Left::Chosen => "the program chose the nodes of its memory itself (numactl, mbind)".to_string(),
            Left::Refused => {
                "it may not be moved by this user: that takes the same user, or CAP_SYS_PTRACE (EPERM)".to_string()
            }
            Left::Late => "there was no time for it before the end".to_string(),
            Left::Other(number) => io::Error::from_raw_os_error(number).to_string(),
        }
    }

    fn of_page(error: PageError) -> Left {
        match error {
            PageError::ABSENT | PageError::UNMAPPED => Left::Absent,
            PageError::SHARED => Left::Shared,
            PageError::BUSY | PageError::UNTRIED => Left::Busy,
            PageError::NO_MEMORY => Left::NoMemory,
            other => other.errno().map_or(Left::Busy, Left::Other),
        }
    }

    fn of_call(error: &io::Error) -> Left {
        match error.raw_os_error() {
            Some(ESRCH) => Left::Gone,
            Some(EPERM) => Left::Refused,
            Some(EACCES) => Left::NotAllowed,
            Some(ENOMEM) => Left::NoMemory,
            Some(number) => Left::Other(number),
            None => Left::Busy,
        }
    }
}

// As Linux numbers them on every processor.
const EPERM: i32 = 1;
const ESRCH: i32 = 3;
const ENOMEM: i32 = 12;
const EACCES: i32 = 13;

/// The outcome for each unit.
pub type Became = Vec<(Wanted, Result<(), Left>)>;

/// Moves units of a process, those of one node together, until a moment on [`Linux::now`]'s clock; one batch at least.
///
/// Ensures: each unit is in the answer once; units not reached by that moment are [`Left::Late`].
pub fn carry_out(linux: &mut impl Linux, process: u32, wanted: Vec<Wanted>, until: Duration) -> Became {
    let Some(allowed) = linux.allowed_nodes(process) else {
        return wanted.into_iter().map(|wanted| (wanted, Err(Left::Gone))).collect();
    };
    let chosen = linux.chosen(process);
    let mut became = Vec::with_capacity(wanted.len());
    let mut by_node: BTreeMap<u32, Vec<Wanted>> = BTreeMap::new();
    for wanted in wanted {
        if !allowed.contains(&wanted.node) {
            became.push((wanted, Err(Left::NotAllowed)));
        } else if !agrees(&chosen, wanted) {
            became.push((wanted, Err(Left::Chosen)));
        } else {
            by_node.entry(wanted.node).or_default().push(wanted);
        }
    }
    let mut begun = false;
    for wanted in by_node.into_values() {
        let mut rest = wanted.as_slice();
        let mut refused = None;
        while !rest.is_empty() {
            let (batch, others) = rest.split_at(length(rest));
            rest = others;
            // An error of the node or the process ends the next call, too.
            if let Some(left) = refused {
                became.extend(batch.iter().map(|&wanted| (wanted, Err(left))));
            } else if begun && linux.now() >= until {
                became.extend(batch.iter().map(|&wanted| (wanted, Err(Left::Late))));
            } else {
                begun = true;
                refused = move_batch(linux, process, batch, &mut became);
            }
        }
    }
    became
}

/// Returns whether the program lets others choose the node of this memory.
fn agrees(chosen: &[Chosen], wanted: Wanted) -> bool {
    let after = chosen.partition_point(|chosen| chosen.start <= wanted.unit.address);
    let nodes = after.checked_sub(1).and_then(|at| chosen[at].nodes.as_ref());
    nodes.is_none()
}

/// The number of leading units that make up a batch.
fn length(wanted: &[Wanted]) -> usize {
    let mut pages = 0;
    let fit = wanted.iter().take_while(|wanted| {
        pages += wanted.unit.pages;
        pages <= BATCH
    });
    fit.count().max(1)
}

/// Returns why the call failed as a whole, if it did.
fn move_batch(linux: &mut impl Linux, process: u32, batch: &[Wanted], became: &mut Became) -> Option<Left> {
    let addresses: Vec<usize> = batch.iter().map(|wanted| wanted.unit.address).collect();
    let nodes: Vec<u32> = batch.iter().map(|wanted| wanted.node).collect();
    let (pages, refused) = match linux.move_to(process, &addresses, &nodes) {
        Ok(pages) => (pages, None),
        // Pages before the one that ended the call may have been moved all the same.
        Err(error) => (vec![Err(PageError::UNTRIED); batch.len()], Some(Left::of_call(&error))),
    };
    if pages.iter().all(|page| *page != Err(PageError::UNTRIED)) {
        became.extend(
            batch
                .iter()
                .zip(pages)
                .map(|(&wanted, page)| (wanted, outcome(wanted, page))),
        );
        return None;
    }
    // A page that cannot be moved ends the call, and the kernel reports nothing about the others of its batch.
    let there = linux.nodes_of(process, &addresses);
    let there: Pages = there.unwrap_or_else(|_| vec![Err(PageError::UNTRIED); batch.len()]);
    let mut again = Vec::new();
    for ((&wanted, page), there) in batch.iter().zip(pages).zip(there) {
        match (page, there) {
            (Ok(_), _) => became.push((wanted, outcome(wanted, page))),
            (_, Ok(node)) if node == wanted.node => became.push((wanted, Ok(()))),
            (Err(error), _) if error != PageError::UNTRIED => became.push((wanted, Err(Left::of_page(error)))),
            (_, Err(error)) if error != PageError::UNTRIED => became.push((wanted, Err(Left::of_page(error)))),
            _ => again.push(wanted),
        }
    }
    if let Some(left) = refused {
        became.extend(again.into_iter().map(|wanted| (wanted, Err(left))));
        return refused;
    }
    match again.as_slice() {
        [] => None,
        [one] => {
            became.push((*one, Err(Left::Busy)));
            None
        }
        several => {
            let (first, second) = several.split_at(several.len() / 2);
            let refused = move_batch(linux, process, first, became);
            refused.or(move_batch(linux, process, second, became))
        }
    }
}

fn outcome(wanted: Wanted, page: Result<u32, PageError>) -> Result<(), Left> {
    match page {
        Ok(node) if node == wanted.node => Ok(()),
        // The kernel reports the page's node, and it is another than the wanted one.
        Ok(_) => Err(Left::Busy),
        Err(error) => Err(Left::of_page(error)),
    }
}

#[cfg(test)]
mod tests;
