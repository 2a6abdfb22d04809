//! Stream prefetchers: caches that see a page being walked through, and bring the lines ahead. Those of
//! [`crate::stride_prefetch`] are asked beside them.
//!
//! After each piece the caches that were looked up for it are gone through, innermost first. "Prefetching" of the
//! contract defines a stream, and the source of its lines. On machines with several cpus a prefetch is a read for the
//! other cpus.

use std::cmp::Ordering;

use machine::Prefetch;
use policy::Page;

use crate::cache::BROUGHT;
use crate::coherence::Supply;
use crate::engine::Engine;
use crate::layout::Layout;
use crate::overlap::From;
use crate::pieces::Access;
use crate::stride_prefetch::{Ahead, Strides};

/// The prefetchers of a machine.
pub struct Prefetchers {
    /// By instance.
    tables: Vec<Option<Streams>>,
    /// The prefetching caches that the current piece looked up: their steps, and whether they missed.
    seen: Vec<(usize, bool)>,
}

/// The streams that one cache follows.
struct Streams {
    limits: Prefetch,
    /// The one seen most recently comes first.
    streams: Vec<Stream>,
    strides: Option<Strides>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stream {
    /// The copy of the page: one for each frame in use.
    copy: u32,
    /// Number of the line within the page that was looked up last.
    last: u32,
    direction: Option<Direction>,
    /// Lines that it went on for in its direction.
    walked: u32,
}

/// The copies of the virtual pages before and after a page, if they have one.
#[derive(Clone, Copy, Debug, Default)]
struct Beside {
    before: Option<u32>,
    after: Option<u32>,
}

/// Lines to be brought: to which side, and how many.
type Wanted = Option<(Direction, u32)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

impl Prefetchers {
    /// `None` where no cache prefetches.
    pub fn new(layout: &Layout) -> Option<Box<Self>> {
        let tables: Vec<Option<Streams>> = layout
            .places
            .iter()
            .map(|place| layout.caches[place.cache].prefetch.map(Streams::new))
            .collect();
        tables.iter().any(Option::is_some).then(|| {
            Box::new(Prefetchers {
                tables,
                seen: Vec::new(),
            })
        })
    }

    /// Returns whether an instance has a prefetcher.
    #[inline(always)]
    pub fn follow(&self, instance: usize) -> bool {
        self.tables[instance].is_some()
    }

    /// A frame holds its page no more.
    pub fn forget(&mut self, copy: u32) {
        for table in self.tables.iter_mut().flatten() {
            table.streams.retain(|stream| stream.copy != copy);
        }
    }
}

impl Streams {
    fn new(limits: Prefetch) -> Self {
        Streams {
            limits,
            streams: Vec::with_capacity(limits.streams as usize),
            strides: limits.stride.map(Strides::new),
        }
    }

    /// Returns whether a lookup in this page asks for the lines beside it.
    fn wants_beside(&self, copy: u32) -> bool {
        self.limits.runs_on && !self.streams.iter().any(|stream| stream.copy == copy)
    }

    /// Sees a lookup of a line of a page that has `lines` lines. Returns the lines to be brought.
    fn see(&mut self, copy: u32, line: u32, lines: u32, beside: Beside) -> Wanted {
        let Some(at) = self.streams.iter().position(|stream| stream.copy == copy) else {
            return self.enter(copy, line, lines, beside);
        };
        self.streams[..=at].rotate_right(1);
        let stream = &mut self.streams[0];
        let direction = match line.cmp(&stream.last) {
            Ordering::Equal => return None,
            Ordering::Greater => Direction::Up,
            Ordering::Less => Direction::Down,
        };
        let step = line.abs_diff(stream.last);
        let goes_on = step <= self.limits.step && stream.direction.is_none_or(|before| before == direction);
        stream.last = line;
        stream.direction = goes_on.then_some(direction);
        stream.walked = if goes_on { stream.walked.saturating_add(step) } else { 0 };
        self.wanted()
    }

    /// A page without a stream: one from the page beside it runs on here, or another begins.
    fn enter(&mut self, copy: u32, line: u32, lines: u32, beside: Beside) -> Wanted {
        let from = |of: Option<u32>, direction, step: fn(&Stream, u32, u32) -> u32| {
            let at = self.streams.iter().position(|stream| Some(stream.copy) == of)?;
            let stream = &self.streams[at];
            let step = step(stream, line, lines);
            (stream.direction == Some(direction) && step <= self.limits.step).then_some((at, step))
        };
        let up = from(beside.before, Direction::Up, |stream, line, lines| {
            lines - stream.last + line
        });
        let runs_on = up.or_else(|| {
            from(beside.after, Direction::Down, |stream, line, lines| {
                lines - line + stream.last
            })
        });
        let Some((at, step)) = runs_on else {
            self.streams.truncate(self.limits.streams as usize - 1);
            let stream = Stream {
                copy,
                last: line,
                direction: None,
                walked: 0,
            };
            self.streams.insert(0, stream);
            return None;
        };
        self.streams[..=at].rotate_right(1);
        let stream = &mut self.streams[0];
        (stream.copy, stream.last) = (copy, line);
        stream.walked = stream.walked.saturating_add(step);
        self.wanted()
    }

    /// The lines that the stream seen most recently brings.
    fn wanted(&self) -> Wanted {
        let Prefetch {
            lines, runs_on, after, ..
        } = self.limits;
        let stream = self.streams.first().filter(|stream| stream.walked >= after)?;
        let ahead = match runs_on || after > 0 {
            true => lines.min(stream.walked.saturating_mul(2)),
            false => lines,
        };
        stream.direction.map(|direction| (direction, ahead))
    }
}

impl Engine {
    /// A cache was looked up for a piece, at a step of its route; `found`: the place of the line.
    pub fn prefetcher_sees(&mut self, a: &Access, at: usize, found: Option<usize>) {
        let Some(prefetchers) = &mut self.prefetchers else {
            return;
        };
        let step = self.steps.at(at);
        let instance = step.instance as usize;
        if !prefetchers.follow(instance) {
            return;
        }
        if step.fills(a.reads) {
            prefetchers.seen.push((at, found.is_none()));
        }
        let cache = &mut self.caches[instance];
        if let Some(found) = found
            && cache.state(found) & BROUGHT != 0
        {
            cache.clear_state(found, BROUGHT);
            self.counts[step.counts as usize].prefetch_hits += 1;
            self.would_be_looked_up(a, at + 1);
        }
    }

    /// A piece found a line that a prefetcher had brought. Had it not, the caches of its route from a step on would have been
    /// looked up: their shadows see that, so that the line's next miss is no first use.
    fn would_be_looked_up(&mut self, a: &Access, from: usize) {
        if !self.classes {
            return;
        }
        let (first, levels) = self.steps.route(a.who.cpu, a.fetch);
        for at in from..first + levels {
            let step = self.steps.get(at);
            let line = self.set_line(a, &step).line;
            let arena = &mut self.arenas[usize::from(step.arena)];
            self.shadows[step.instance as usize].touch(arena, line, step.fills(a.reads));
        }
    }

    /// A piece is done: the prefetchers of the caches that it looked up bring what they expect.
    #[inline(never)]
    pub fn prefetch(&mut self, a: &Access) {
        // Nobody asks for the prefetchers while lines are brought.
        let Some(mut prefetchers) = self.prefetchers.take() else {
            return;
        };
        for (at, missed) in prefetchers.seen.drain(..) {
            let step = self.steps.get(at);
            let Some(table) = &mut prefetchers.tables[step.instance as usize] else {
                continue;
            };
            let lines = 1 << step.page_lines;
            let line = a.line(&step) & (lines - 1);
            let beside = match table.wants_beside(a.copy) {
                true => Beside {
                    before: self.beside(a, -1).map(|a| a.copy),
                    after: self.beside(a, 1).map(|a| a.copy),
                },
                false => Beside::default(),
            };
            let wanted = table.see(a.copy, line, lines, beside);
            let runs_on = table.limits.runs_on;
            let pair = table.limits.pair && missed && line ^ 1 < lines;
            let strides = table.strides.as_mut().filter(|_| !a.fetch);
            let ahead = strides.and_then(|strides| strides.see(a.who.thread, a.pc_site, a.virtual_address));
            if pair {
                self.bring(a, at, line ^ 1, true);
            }
            match wanted {
                Some((Direction::Up, ahead)) => {
                    for line in line + 1..=(line + ahead).min(lines - 1) {
                        self.bring(a, at, line, true);
                    }
                    let beyond = (line + ahead + 1).saturating_sub(lines).min(lines);
                    if runs_on
                        && beyond > 0
                        && let Some(next) = self.beside(a, 1)
                    {
                        for line in 0..beyond {
                            self.bring(&next, at, line, true);
                        }
                    }
                }
                Some((Direction::Down, ahead)) => {
                    for line in (line.saturating_sub(ahead)..line).rev() {
                        self.bring(a, at, line, true);
                    }
                    let beyond = ahead.saturating_sub(line).min(lines);
                    if runs_on
                        && beyond > 0
                        && let Some(next) = self.beside(a, -1)
                    {
                        for line in (lines - beyond..lines).rev() {
                            self.bring(&next, at, line, true);
                        }
                    }
                }
                None => {}
            }
            if let Some(ahead) = ahead {
                self.bring_steps(a, at, ahead);
            }
        }
        self.prefetchers = Some(prefetchers);
    }

    /// Brings the lines that a stride from a piece leads to, to the cache at a step of its route.
    fn bring_steps(&mut self, a: &Access, at: usize, ahead: Ahead) {
        let page_bits = self.layout.page_bits;
        let within = (1u64 << page_bits) - 1;
        let line_bits = self.steps.at(at).line_bits;
        for steps in ahead.first..=ahead.last {
            let Some(address) = a.virtual_address.checked_add_signed(ahead.step * i64::from(steps)) else {
                return;
            };
            let pages = (address >> page_bits) as i64 - (a.virtual_address >> page_bits) as i64;
            if let Some(there) = self.beside(a, pages) {
                self.bring(&there, at, ((address & within) >> line_bits) as u32, true);
            }
        }
    }

    /// The same piece `pages` virtual pages further on (back, below 0), if that page has a frame which the cpu may use.
    fn beside(&mut self, a: &Access, pages: i64) -> Option<Access> {
        let (space, number) = (a.who.space, a.virtual_address >> self.layout.page_bits);
        let number = number.checked_add_signed(pages)?;
        if number > u64::MAX >> self.layout.page_bits {
            return None;
        }
        let page = match self.table.peek(space, number) {
            None => self.table.find(Page { space, number })?,
            Some(page) => page,
        };
        let copy = self.mapped(a.who.cpu, page)?;
        Some(Access {
            page,
            copy,
            virtual_address: number << self.layout.page_bits,
            physical_address: self.copies[copy as usize].frame() << self.layout.page_bits,
            ..*a
        })
    }

    /// Returns whether the cache at a step holds the line of a piece; nothing is counted.
    pub fn holds(&mut self, a: &Access, at: usize) -> bool {
        let step = self.steps.get(at);
        self.others_come(a, &step);
        let place = self.set_line(a, &step);
        self.caches[step.instance as usize]
            .find(place.set, place.line)
            .is_some()
    }

    /// Brings a line of the piece's page to the cache at a step, unless it is there. `own`: its own prefetcher does.
    /// Returns whether it was brought.
    pub fn bring(&mut self, a: &Access, at: usize, line: u32, own: bool) -> bool {
        let step = self.steps.get(at);
        let within = (1u64 << self.layout.page_bits) - 1;
        let offset = u64::from(line) << step.line_bits;
        let a = Access {
            virtual_address: a.virtual_address & !within | offset,
            named_address: a.named_address,
            physical_address: a.physical_address & !within | offset,
            bytes: 1 << step.line_bits,
            write: false,
            reads: true,
            ..*a
        };
        let (first, levels) = self.steps.route(a.who.cpu, a.fetch);
        let holder = (at..first + levels).find(|&at| self.holds(&a, at));
        if holder == Some(at) {
            return false;
        }
        let held = holder.map(|at| self.steps.get(at));
        let supply = match self.coherent {
            true => self.agree(&a, held.as_ref()),
            false => Supply::Memory,
        };
        let (mut takes, mut from) = (0, From::Cache);
        if held.is_none() {
            let (home, node) = (self.copies[a.copy as usize].node(), self.cpus[a.who.cpu as usize].node);
            (takes, from) = match supply {
                Supply::Cache(time) => (time, From::Cache),
                Supply::DirtyRemote => (
                    self.memory.transfer(home, a.now) + self.memory.dirty_remote,
                    From::Remote,
                ),
                Supply::Memory => (
                    self.memory.transfer(home, a.now) + self.memory.latency(node, home),
                    if home == node { From::Local } else { From::Remote },
                ),
            };
        }
        self.brings(&a, held.as_ref(), takes, from);
        for outer in (at..holder.unwrap_or(first + levels)).rev() {
            let step = self.steps.get(outer);
            if self.coherent && self.classes {
                self.forgive(&a, &step, a.line(&step), true);
            }
            match self.coherent {
                true => {
                    // A cache further out may have the line while its miss has no class yet: nearer hits are seen too.
                    let waits = self.classes && self.undecided(&a);
                    self.fill::<true>(&a, outer - first, &step, waits);
                }
                false => self.fill::<false>(&a, outer - first, &step, false),
            }
        }
        if !self.deposits.is_empty() {
            self.deposit(&a);
        }
        let place = self.set_line(&a, &step);
        let cache = &mut self.caches[step.instance as usize];
        if own && let Some(found) = cache.find(place.set, place.line) {
            cache.set_state(found, BROUGHT);
            self.counts[step.counts as usize].prefetches += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers of a table of `streams` streams, 4 lines ahead, to lookups of (page, line).
    fn answers(streams: u32, lookups: &[(u32, u32)]) -> Vec<Option<Direction>> {
        let mut table = Streams::new(Prefetch::new(streams, 4));
        let mut direction = |&(page, line): &(u32, u32)| {
            let wanted = table.see(page, line, 64, Beside::default());
            wanted.map(|(direction, ahead)| {
                assert_eq!(ahead, 4);
                direction
            })
        };
        lookups.iter().map(&mut direction).collect()
    }

    const UP: Option<Direction> = Some(Direction::Up);
    const DOWN: Option<Direction> = Some(Direction::Down);

    #[test]
    fn two_lines_in_order_make_a_stream() {
        let walk = [(7, 0), (7, 0), (7, 1), (7, 1), (7, 5), (7, 4), (7, 3), (7, 8), (7, 9)];
        // 4 is against the direction and 8 too far: each starts a new stream.
        assert_eq!(answers(1, &walk), [None, None, UP, None, UP, None, DOWN, None, UP]);
    }

    #[test]
    fn the_stream_seen_least_recently_makes_room() {
        let walk = [(1, 0), (2, 0), (1, 0), (3, 9), (1, 1), (2, 1), (3, 8)];
        assert_eq!(answers(2, &walk), [None, None, None, None, UP, None, None]);
        assert_eq!(answers(3, &walk), [None, None, None, None, UP, UP, DOWN]);
    }
}
