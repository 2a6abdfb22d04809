//! One watched process, and the touches of it that its policy is told.

use std::collections::HashSet;

use results::HomesSamples;
use sys::memory::{PAGE, Span};

use super::Config;
use super::carry::Wanted;
use super::layout::Layout;
use super::linux::{Linux, Unit};
use super::log::Misses;
use super::sources::{Lost, Touched};
use super::tally::Tally;
use super::whereabouts::Whereabouts;

/// Pages that the kernel is asked of at a time.
const TOGETHER: usize = 4096;

pub struct Watched {
    /// The address space, as policies number it.
    pub space: u32,
    /// Tells the process from a later one of the same number.
    pub began: u64,
    /// Its place in the report.
    pub report: usize,
    pub whereabouts: Whereabouts,
    /// Moves that there was no time for.
    pub late: Vec<Wanted>,
    /// The position at which the next interval continues.
    cursor: usize,
}

/// Misses on a unit's pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub unit: Unit,
    pub misses: Misses,
}

/// The page that stands for a unit.
pub fn number(unit: Unit) -> u64 {
    (unit.address / PAGE) as u64
}

impl Watched {
    pub fn new(space: u32, began: u64, report: usize) -> Watched {
        Watched {
            space,
            began,
            report,
            whereabouts: Whereabouts::default(),
            late: Vec::new(),
            cursor: 0,
        }
    }

    /// The observations to tell of the pages that the process touched; pages passed over are
    /// counted.
    ///
    /// Errors: it is gone, or may not be looked at.
    pub fn seen(
        &mut self,
        process: u32,
        touched: &[Touched],
        linux: &mut impl Linux,
        layout: &Layout,
        config: &Config,
        samples: &mut HomesSamples,
    ) -> Result<Vec<Seen>, Lost> {
        let nodes = self.whereabouts.take();
        let mut found: Vec<(Unit, Touched)> = Vec::new();
        for touched in self.in_turn(touched) {
            if touched.by.is_none() && nodes.is_empty() {
                samples.nobody += pages(touched.span);
                continue;
            }
            let room = config.pages - found.len();
            if room == 0 {
                samples.too_many += pages(touched.span);
                continue;
            }
            let units = linux.units(process, touched.span, room).map_err(|error| lost(&error))?;
            if units.len() == room {
                let end = units.last().map_or(touched.span.end(), |unit| end(*unit));
                self.cursor = end;
                samples.too_many += pages(Span::new(end, touched.span.end().saturating_sub(end)));
            }
            found.extend(units.into_iter().map(|unit| (unit, touched)));
        }
        if found.len() < config.pages {
            self.cursor = 0;
        }
        found.retain(|(unit, _)| {
            if unit.shared {
                samples.of_several_processes += u64::from(unit.pages);
            }
            !unit.shared
        });
        let written = if config.tell_writes {
            written(process, &found, linux).map_err(|error| lost(&error))?
        } else {
            HashSet::new()
        };
        let mut seen = Vec::with_capacity(found.len());
        for part in found.chunks(TOGETHER) {
            let addresses: Vec<usize> = part.iter().map(|(unit, _)| unit.address).collect();
            let there = linux.nodes_of(process, &addresses).map_err(|error| lost(&error))?;
            for (&(unit, touched), there) in part.iter().zip(there) {
                // A page that went away meanwhile, or lies on a node that has just been added, is
                // skipped.
                let Some(served_by) = there.ok().and_then(|node| layout.node(node)) else {
                    continue;
                };
                let write = touched.write.unwrap_or_else(|| written.contains(&unit.address));
                let Some(misses) = self.misses(unit, &touched, &nodes, served_by, write, layout) else {
                    continue;
                };
                count(&misses, layout, samples);
                seen.push(Seen { unit, misses });
            }
        }
        Ok(seen)
    }

    /// The touches, from the cursor on and around.
    fn in_turn(&self, touched: &[Touched]) -> Vec<Touched> {
        let cursor = self.cursor;
        let after = touched.iter().filter(|touched| touched.span.end() > cursor);
        let after = after.map(|touched| {
            let start = touched.span.start.max(cursor);
            Touched {
                span: Span::new(start, touched.span.end() - start),
                ..*touched
            }
        });
        let before = touched.iter().filter(|touched| touched.span.start < cursor);
        let before = before.map(|touched| {
            let end = touched.span.end().min(cursor);
            Touched {
                span: Span::new(touched.span.start, end - touched.span.start),
                ..*touched
            }
        });
        after.chain(before).collect()
    }

    fn misses(
        &self,
        unit: Unit,
        touched: &Touched,
        nodes: &[u32],
        served_by: u32,
        write: bool,
        layout: &Layout,
    ) -> Option<Misses> {
        let (cpus, thread) = match touched.by {
            Some((thread, cpu)) => (vec![layout.cpu(cpu)?], thread),
            None => {
                // The node that has the page comes first: a page that it uses, too, never looks like another's alone.
                let mut nodes = nodes.to_vec();
                nodes.sort_by_key(|&node| (node != served_by, node));
                (nodes.into_iter().map(|node| layout.cpu_on(node)).collect(), 0)
            }
        };
        Some(Misses {
            at: 0,
            space: self.space,
            page: number(unit),
            cpus,
            times: touched.counts,
            served_by,
            thread,
            write,
        })
    }

    /// The moves to make, with those that there was no time for before. Of two requests for a page the newer one
    /// counts, and the older one is dropped as if never made.
    pub fn with_late(&mut self, new: Vec<Wanted>, tally: &mut Tally) -> Vec<Wanted> {
        let mut named: HashSet<usize> = HashSet::new();
        let mut wanted: Vec<Wanted> = Vec::new();
        // The loop begins with the newest, so that of two moves of a page the later one stays.
        for one in self.late.drain(..).chain(new).rev() {
            if named.insert(one.unit.address) {
                wanted.push(one);
            } else {
                tally.moves.asked -= u64::from(one.unit.pages);
            }
        }
        wanted.reverse();
        wanted
    }
}

fn end(unit: Unit) -> usize {
    unit.address + unit.pages as usize * PAGE
}

fn pages(span: Span) -> u64 {
    span.bytes.div_ceil(PAGE) as u64
}

fn count(misses: &Misses, layout: &Layout, samples: &mut HomesSamples) {
    let times = u64::from(misses.times);
    for cpu in &misses.cpus {
        if cpu / layout.per_node() == misses.served_by {
            samples.local += times;
        } else {
            samples.remote += times;
        }
    }
    if misses.cpus.len() > 1 {
        samples.shared += times * misses.cpus.len() as u64;
    }
}

/// The units that were written since the last time.
fn written(process: u32, found: &[(Unit, Touched)], linux: &mut impl Linux) -> std::io::Result<HashSet<usize>> {
    let mut written = HashSet::new();
    let mut units: Vec<Unit> = found.iter().map(|(unit, _)| *unit).collect();
    units.sort_by_key(|unit| unit.address);
    units.dedup_by_key(|unit| unit.address);
    let mut rest = units.as_slice();
    // Units that lie close together are asked for together.
    while let Some(first) = rest.first() {
        const GAP: usize = 64 * PAGE;
        let count = 1 + rest
            .windows(2)
            .take_while(|pair| pair[1].address < end(pair[0]) + GAP)
            .count();
        let (these, others) = rest.split_at(count);
        rest = others;
        let span = Span::new(first.address, end(these[count - 1]) - first.address);
        for part in linux.written(process, span)? {
            let from = these.partition_point(|unit| end(*unit) <= part.start);
            let meets = these[from..].iter().take_while(|unit| unit.address < part.end());
            written.extend(meets.map(|unit| unit.address));
        }
    }
    linux.clear_written(process);
    Ok(written)
}

fn lost(error: &std::io::Error) -> Lost {
    const ESRCH: i32 = 3;
    match (error.kind(), error.raw_os_error()) {
        (std::io::ErrorKind::NotFound, _) | (_, Some(ESRCH)) => Lost::Gone,
        (std::io::ErrorKind::PermissionDenied, _) => Lost::Refused(format!(
            "it may not be looked at by this user: that takes the same user, or CAP_SYS_PTRACE ({error})"
        )),
        _ => Lost::Refused(format!("it cannot be looked at: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Fake, Process};
    use super::*;

    const PID: u32 = 9;

    fn config(pages: usize) -> Config {
        Config {
            pages,
            ..Config::new("migrate".parse().unwrap())
        }
    }

    fn layout() -> Layout {
        Layout::new(&[(0, vec![0, 1]), (1, vec![2, 3])], false)
    }

    fn machine(process: Process) -> Fake {
        Fake {
            processes: [(PID, process)].into(),
            ..Fake::default()
        }
    }

    fn touched(pages: std::ops::Range<usize>, counts: u32) -> Touched {
        Touched {
            span: Span::new(pages.start * PAGE, pages.len() * PAGE),
            counts,
            by: None,
            write: None,
        }
    }

    struct Scene {
        watched: Watched,
        linux: Fake,
        samples: HomesSamples,
        config: Config,
    }

    impl Scene {
        fn new(process: Process, config: Config) -> Scene {
            Scene {
                watched: Watched::new(0, 1, 0),
                linux: machine(process),
                samples: HomesSamples::default(),
                config,
            }
        }

        fn look(&mut self, touched: &[Touched]) -> Vec<(u64, Vec<u32>, bool)> {
            let tasks = self.linux.tasks(PID);
            self.watched.whereabouts.look(&tasks, &layout());
            let seen = self.watched.seen(
                PID,
                touched,
                &mut self.linux,
                &layout(),
                &self.config,
                &mut self.samples,
            );
            let of = |seen: Seen| (seen.misses.page, seen.misses.cpus, seen.misses.write);
            seen.unwrap().into_iter().map(of).collect()
        }
    }

    #[test]
    fn a_touch_counts_for_the_node_where_all_threads_ran_and_for_each_of_several() {
        let mut scene = Scene::new(Process::on(0, 2, &[2, 3]), config(100));
        assert_eq!(
            scene.look(&[touched(0..2, 5)]),
            [(0, vec![1], false), (1, vec![1], false)]
        );
        assert_eq!(
            (scene.samples.remote, scene.samples.local, scene.samples.shared),
            (10, 0, 0)
        );
        let mut scene = Scene::new(Process::on(1, 1, &[0, 2]), config(100));
        // The node that has the page comes first.
        assert_eq!(scene.look(&[touched(0..1, 5)]), [(0, vec![1, 0], false)]);
        assert_eq!(
            (scene.samples.remote, scene.samples.local, scene.samples.shared),
            (5, 5, 10)
        );
        let mut scene = Scene::new(Process::on(1, 1, &[]), config(100));
        assert!(scene.look(&[touched(0..1, 5)]).is_empty());
        assert_eq!(scene.samples.nobody, 1);
    }

    #[test]
    fn who_touched_is_believed_where_the_source_knows() {
        let mut scene = Scene::new(Process::on(0, 1, &[0, 2]), config(100));
        let by = Touched {
            by: Some((77, 3)),
            write: Some(true),
            ..touched(0..1, 1)
        };
        assert_eq!(scene.look(&[by]), [(0, vec![1], true)]);
    }

    #[test]
    fn all_is_looked_at_in_turn_where_it_is_more_than_an_interval_takes() {
        let mut scene = Scene::new(Process::on(0, 10, &[2]), config(4));
        let all = [touched(0..3, 1), touched(5..10, 1)];
        let mut order = Vec::new();
        for _ in 0..4 {
            order.push(scene.look(&all).into_iter().map(|seen| seen.0).collect::<Vec<_>>());
        }
        assert_eq!(
            order,
            [vec![0, 1, 2, 5], vec![6, 7, 8, 9], vec![0, 1, 2, 5], vec![6, 7, 8, 9]]
        );
        assert!(scene.samples.too_many > 0);
    }

    #[test]
    fn pages_of_several_processes_are_passed_over_and_writes_told_apart() {
        let mut process = Process::on(0, 4, &[2]);
        process.shared = [PAGE].into();
        process.written = [3 * PAGE].into();
        let mut scene = Scene::new(process, config(100));
        scene.config.tell_writes = true;
        let seen = scene.look(&[touched(0..9, 1)]);
        assert_eq!(seen, [(0, vec![1], false), (2, vec![1], false), (3, vec![1], true)]);
        assert_eq!(scene.samples.of_several_processes, 1);
        assert!(scene.look(&[touched(0..9, 1)]).iter().all(|seen| !seen.2));
    }

    #[test]
    fn of_two_moves_of_a_page_the_newer_one_stays() {
        let mut watched = Watched::new(0, 1, 0);
        let to = |page: usize, node| Wanted {
            unit: Unit {
                address: page * PAGE,
                pages: 1,
                shared: false,
            },
            node,
        };
        let mut tally = Tally::default();
        tally.moves.asked = 4;
        watched.late = vec![to(1, 0), to(2, 0)];
        let wanted = watched.with_late(vec![to(2, 1), to(3, 1)], &mut tally);
        assert_eq!(wanted, [to(1, 0), to(2, 1), to(3, 1)]);
        assert_eq!(tally.moves.asked, 3);
    }
}
