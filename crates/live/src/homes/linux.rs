//! The requests of the host to Linux, apart from the pages touched; tests put a made-up machine in its place.

use std::io;
use std::time::{Duration, Instant};

use sys::frames::{Entry, Pagemap, cannot_scan};
use sys::memory::{HUGE, PAGE, Span};
use sys::move_pages::{self, Pages};
use sys::numa_maps::{self, Wish};
use sys::tasks::{self, Task};
use sys::{Problem, Root, clock, nodes, processes, soft_dirty};

/// Pages that move together: one, or all of a huge page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    pub address: usize,
    pub pages: u32,
    /// True if another mapping shares it: another process's, most often.
    pub shared: bool,
}

/// A part of a process's memory, up to the next one's start, and whether its program chose the nodes of it itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    pub start: usize,
    /// The nodes, as Linux numbers them; `None` if the program left the choice to the kernel.
    pub nodes: Option<Vec<u32>>,
}

pub trait Linux {
    /// Time since some moment before the start.
    fn now(&mut self) -> Duration;
    fn sleep(&mut self, time: Duration);
    /// Processor time of the calling thread.
    fn own_time(&mut self) -> Duration;
    /// Free frames of a node of Linux; `None` if it does not say.
    fn free_frames(&mut self, node: u32) -> Option<u64>;
    /// The start time, which tells a process from a later one of the same number; `None` if it is
    /// gone.
    fn began(&mut self, process: u32) -> Option<u64>;
    fn name(&mut self, process: u32) -> String;
    /// The threads of a process; empty if it is gone.
    fn tasks(&mut self, process: u32) -> Vec<Task>;
    /// The nodes whose memory a process may have; `None` if it is gone.
    fn allowed_nodes(&mut self, process: u32) -> Option<Vec<u32>>;
    /// The nodes that the program chose itself, ascending by address; empty if unknown.
    fn chosen(&mut self, process: u32) -> Vec<Chosen>;
    /// Pages of a part of a process's memory that have frames, ascending, at most so many.
    fn units(&mut self, process: u32, span: Span, most: usize) -> io::Result<Vec<Unit>>;
    /// The parts of the span that were written since the last time that this was asked for with `clear`.
    fn written(&mut self, process: u32, span: Span) -> io::Result<Vec<Span>>;
    fn clear_written(&mut self, process: u32);
    fn nodes_of(&mut self, process: u32, addresses: &[usize]) -> io::Result<Pages>;
    fn move_to(&mut self, process: u32, addresses: &[usize], nodes: &[u32]) -> io::Result<Pages>;
    /// The members of a group, of a family, as the processes that are there just now.
    fn members(&mut self, whom: &super::Whom) -> Result<Vec<u32>, sys::SysError>;
}

/// The machine that this runs on.
#[derive(Debug)]
pub struct Here {
    root: Root,
    begun: Instant,
}

impl Default for Here {
    fn default() -> Here {
        Here {
            root: Root::default(),
            begun: Instant::now(),
        }
    }
}

impl Linux for Here {
    fn now(&mut self) -> Duration {
        self.begun.elapsed()
    }

    fn sleep(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn own_time(&mut self) -> Duration {
        clock::thread_time()
    }

    fn free_frames(&mut self, node: u32) -> Option<u64> {
        let bytes = nodes::free_bytes(&self.root, node).ok()?;
        Some(bytes / PAGE as u64)
    }

    fn began(&mut self, process: u32) -> Option<u64> {
        tasks::lives_since(&self.root, process)
    }

    fn name(&mut self, process: u32) -> String {
        self.root.text(&format!("proc/{process}/comm")).unwrap_or_default()
    }

    fn tasks(&mut self, process: u32) -> Vec<Task> {
        tasks::of(&self.root, process).unwrap_or_default()
    }

    fn allowed_nodes(&mut self, process: u32) -> Option<Vec<u32>> {
        processes::allowed_nodes(&self.root, process).ok()
    }

    fn chosen(&mut self, process: u32) -> Vec<Chosen> {
        let mappings = numa_maps::of(&self.root, process).unwrap_or_default();
        let chosen = mappings.into_iter().map(|mapping| Chosen {
            start: mapping.start,
            nodes: match mapping.wish {
                Wish::Default | Wish::Local => None,
                Wish::Bind(nodes) | Wish::Prefer(nodes) | Wish::Interleave(nodes) => Some(nodes),
            },
        });
        chosen.collect()
    }

    fn units(&mut self, process: u32, span: Span, most: usize) -> io::Result<Vec<Unit>> {
        let map = Pagemap::of(process)?;
        let mut found = Vec::new();
        let mut failed = None;
        let mut add = |part: Span, huge: bool| {
            if let Err(error) = divide(&map, part, huge, most, &mut found) {
                failed = Some(error);
            }
            found.len() < most && failed.is_none()
        };
        match map.sizes(span, &mut add) {
            // Linux before 6.7 does not tell huge pages: each part of one is found, and the whole moves.
            Err(error) if cannot_scan(&error) => {
                add(span, false);
            }
            Err(error) => return Err(error),
            Ok(()) => {}
        }
        failed.map_or(Ok(found), Err)
    }

    fn written(&mut self, process: u32, span: Span) -> io::Result<Vec<Span>> {
        let map = Pagemap::of(process)?;
        let mut found = Vec::new();
        soft_dirty::written(&map, span, |part| {
            found.push(part);
            true
        })?;
        Ok(found)
    }

    fn clear_written(&mut self, process: u32) {
        // A process that is gone has nothing to be cleared; one that may not be touched is found
        // out elsewhere.
        let _ = soft_dirty::clear(&self.root, process);
    }

    fn nodes_of(&mut self, process: u32, addresses: &[usize]) -> io::Result<Pages> {
        move_pages::nodes_of(Some(process), addresses)
    }

    fn move_to(&mut self, process: u32, addresses: &[usize], nodes: &[u32]) -> io::Result<Pages> {
        move_pages::move_to(Some(process), addresses, nodes)
    }

    fn members(&mut self, whom: &super::Whom) -> Result<Vec<u32>, sys::SysError> {
        match whom {
            super::Whom::Processes(processes) => Ok(processes.clone()),
            super::Whom::Family(process) => processes::family(&self.root, *process),
            super::Whom::Group(folder) => match processes::of_group(&self.root, folder) {
                // A group that was removed has no processes any more.
                Err(error) if matches!(error.problem, Problem::Absent) => Ok(Vec::new()),
                found => found,
            },
        }
    }
}

/// The units of a part whose pages have frames, added to those found.
fn divide(map: &Pagemap, part: Span, huge: bool, most: usize, found: &mut Vec<Unit>) -> io::Result<()> {
    const TOGETHER: usize = 4096;
    if huge {
        let mut head = part.start / HUGE * HUGE;
        while head < part.end() && found.len() < most {
            let mut entry = [Entry::default()];
            map.read(head, &mut entry)?;
            found.push(Unit {
                address: head,
                pages: (HUGE / PAGE) as u32,
                shared: !entry[0].exclusive(),
            });
            head += HUGE;
        }
        return Ok(());
    }
    let mut entries = vec![Entry::default(); (part.bytes / PAGE).clamp(1, TOGETHER)];
    let mut at = part.start / PAGE * PAGE;
    while at < part.end() && found.len() < most {
        let count = (part.end() - at).div_ceil(PAGE).min(entries.len());
        map.read(at, &mut entries[..count])?;
        let room = most - found.len();
        let present = entries[..count].iter().enumerate().filter(|(_, entry)| entry.present());
        found.extend(present.take(room).map(|(page, entry)| Unit {
            address: at + page * PAGE,
            pages: 1,
            shared: !entry.exclusive(),
        }));
        at += count * PAGE;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use sys::memory::{Area, Size};

    use super::*;

    #[test]
    fn pages_are_found_and_huge_ones_count_as_one() {
        let mut linux = Here::default();
        let mine = std::process::id();
        let area = Area::map(8 * PAGE, Size::Small).unwrap();
        [1, 2, 5].into_iter().for_each(|page| area.set_word(page, 0, 1));
        let units = linux.units(mine, area.span(), 100).unwrap();
        let found: Vec<_> = units.iter().map(|unit| (unit.address - area.start()) / PAGE).collect();
        assert_eq!(found, [1, 2, 5]);
        assert!(units.iter().all(|unit| unit.pages == 1 && !unit.shared));
        assert_eq!(linux.units(mine, area.span(), 2).unwrap().len(), 2);
        let area = Area::map(2 * HUGE, Size::Huge).unwrap();
        area.set_word(600, 0, 1);
        let units = linux.units(mine, area.span(), 100).unwrap();
        // One huge page, or a small page if the kernel had no huge one or does not tell.
        assert!(!units.is_empty());
        if units[0].pages > 1 {
            assert_eq!((units[0].address, units[0].pages), (area.start() + HUGE, 512));
        }
    }

    #[test]
    fn a_process_is_there_until_it_is_gone() {
        let mut linux = Here::default();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let began = linux.began(child.id());
        assert!(began.is_some() && !linux.tasks(child.id()).is_empty());
        assert!(linux.allowed_nodes(child.id()).is_some());
        child.kill().unwrap();
        // Until its parent hears of it, it has ended all the same.
        while linux.began(child.id()).is_some() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(linux.allowed_nodes(child.id()).is_none() && linux.tasks(child.id()).is_empty());
        assert!(linux.units(child.id(), Span::new(0, PAGE), 1).is_err());
    }
}
