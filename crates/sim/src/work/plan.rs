//! The new order of a trace's work: for every run of items, the bins that the policy's code gives
//! them, and the tour through the bins.

use policy::order::{BinId, Bins, BinsError, Shape, Tour};
use trace::Event;

use super::interchange::Sweeps;
use super::marks::{At, Marks, Runs};
use super::tile::Items;

/// Bytes of a table of bins that is kept from run to run.
const TABLE: usize = 1 << 14;

/// The rules by which the runs are put in order.
#[derive(Clone, Debug)]
pub struct Rules {
    pub shape: Shape,
    pub tour: Tour,
    /// See [`Marks::new`].
    pub gap: u64,
    /// The number of streams that the items of the one thread are dealt to.
    pub workers: u32,
    /// The first of the tickets that no event of the input has.
    pub ticket: u64,
}

/// The parts of a stream, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A piece of the source's stream as it is.
    Span { from: At, to: At },
    /// The source's segments `order[first]` to `order[first + count - 1]`.
    Segments { first: usize, count: usize },
    /// An event that the source does not have.
    Event(Event),
}

/// The places of a thread's items, and their new order.
#[derive(Debug, Default)]
pub struct Source {
    /// Segment `s` reaches from `cuts[s]` to `cuts[s + 1]`. A run's last cut begins no segment.
    pub cuts: Vec<At>,
    /// Segments in their new order, run after run.
    pub order: Vec<u32>,
}

impl Source {
    pub fn segment(&self, segment: u32) -> (At, At) {
        (self.cuts[segment as usize], self.cuts[segment as usize + 1])
    }
}

/// A stream of the reordered input.
#[derive(Debug, Default)]
pub struct Stream {
    /// The thread that its parts are of.
    pub source: u32,
    pub parts: Vec<Part>,
}

/// Counts of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanCounts {
    /// Items in runs, and those that stay where they are for lack of an end, or because threads meet in them.
    pub items: u64,
    pub fixed: u64,
    pub runs: u64,
    /// Bins, summed over the runs.
    pub bins: u64,
    /// Items that run before or after another item than they did.
    pub moved: u64,
}

/// The input in its new order: one stream for each thread, then one for each further worker.
#[derive(Debug, Default)]
pub struct Plan {
    pub sources: Vec<Source>,
    pub streams: Vec<Stream>,
    pub counts: PlanCounts,
}

/// Makes the plan, thread by thread.
pub struct Planner {
    rules: Rules,
    plan: Plan,
    workers: Vec<Stream>,
    ticket: u64,
}

/// The plan of the current thread.
struct OfThread<'a> {
    rules: &'a Rules,
    counts: &'a mut PlanCounts,
    workers: &'a mut [Stream],
    ticket: &'a mut u64,
    source: Source,
    stream: Stream,
    bins: Bins,
    /// The bin of each item of the present run.
    bin_of: Vec<BinId>,
    /// The end of the stream's parts so far.
    done: At,
}

impl Planner {
    pub fn new(rules: Rules) -> Planner {
        Planner {
            plan: Plan::default(),
            workers: (1..rules.workers).map(|_| Stream::default()).collect(),
            ticket: rules.ticket,
            rules,
        }
    }

    /// Adds the next thread. `events` calls its argument with all events of the thread, each with the
    /// references before it; the thread has `refs` references.
    pub fn thread<E: From<BinsError>>(
        &mut self,
        refs: u64,
        events: impl FnOnce(&mut dyn FnMut(u64, &Event) -> Result<(), E>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut marks = Marks::new(self.rules.gap);
        self.add(|thread| {
            events(&mut |before, event| Ok(marks.event(before, event, thread)?))?;
            let events = marks.finish(thread)?;
            thread.counts.fixed += marks.fixed;
            Ok(At { refs, events })
        })
    }

    /// Adds the next thread, whose items were found by the data that they use.
    pub fn items(&mut self, items: &Items) -> Result<(), BinsError> {
        self.add(|thread| {
            items.each(thread)?;
            Ok(items.all)
        })
    }

    /// Adds the next thread, whose iterations are carried out in the order of their addresses, sweep by sweep.
    pub fn sweeps(&mut self, sweeps: &Sweeps) -> Result<(), BinsError> {
        self.add(|thread| {
            for (iterations, end) in sweeps.each() {
                thread.sweep(iterations, end)?;
            }
            Ok(sweeps.all)
        })
    }

    /// Adds a thread: `find` hands over its items, and returns how long its stream is.
    fn add<E>(&mut self, find: impl FnOnce(&mut OfThread) -> Result<At, E>) -> Result<(), E> {
        let mut thread = OfThread {
            counts: &mut self.plan.counts,
            workers: &mut self.workers,
            ticket: &mut self.ticket,
            source: Source::default(),
            stream: Stream {
                source: self.plan.sources.len() as u32,
                parts: Vec::new(),
            },
            bins: Bins::new(self.rules.shape.clone()),
            bin_of: Vec::new(),
            done: At::default(),
            rules: &self.rules,
        };
        let all = find(&mut thread)?;
        thread.span(all);
        let (source, stream) = (thread.source, thread.stream);
        self.plan.sources.push(source);
        self.plan.streams.push(stream);
        Ok(())
    }

    pub fn finish(mut self) -> Plan {
        self.plan.streams.append(&mut self.workers);
        self.plan
    }
}

impl Runs for OfThread<'_> {
    type Error = BinsError;

    fn item(&mut self, begin: At, hints: &[u64]) -> Result<(), BinsError> {
        let bin = self.bins.bin_of(&self.rules.shape.block(hints))?;
        self.source.cuts.try_reserve(1)?;
        self.bin_of.try_reserve(1)?;
        self.source.cuts.push(begin);
        self.bin_of.push(bin);
        Ok(())
    }

    fn end(&mut self, end: At) -> Result<(), BinsError> {
        let items = self.bin_of.len();
        let first_cut = self.source.cuts.len() - items;
        self.counts.bins += self.bins.len() as u64;
        let first = self.source.order.len();
        let ends = self.sort(first_cut)?;
        self.place(first, first_cut, &ends, end);
        self.bin_of.clear();
        // Clearing takes as long as the table is, and short runs may follow a long one.
        match self.bins.memory_bytes() {
            0..=TABLE => self.bins.clear(),
            _ => self.bins = Bins::new(self.rules.shape.clone()),
        }
        Ok(())
    }
}

impl OfThread<'_> {
    /// A sweep, whose iterations come with their addresses.
    fn sweep(&mut self, iterations: &[(At, u64)], end: At) -> Result<(), BinsError> {
        let (first_cut, first) = (self.source.cuts.len(), self.source.order.len());
        let last = u32::try_from(first_cut + iterations.len()).map_err(|_| BinsError::OutOfMemory)?;
        self.source.cuts.try_reserve(iterations.len() + 1)?;
        self.source.order.try_reserve(iterations.len())?;
        self.source.cuts.extend(iterations.iter().map(|(begin, _)| *begin));
        self.source.order.extend(first_cut as u32..last);
        self.source.order[first..].sort_by_key(|segment| iterations[*segment as usize - first_cut].1);
        self.counts.bins += iterations.len() as u64;
        self.place(first, first_cut, &[iterations.len()], end);
        Ok(())
    }

    /// The items from `first_cut` on, up to `end`, have their order, from `first` on. `ends`: see [`OfThread::sort`].
    fn place(&mut self, first: usize, first_cut: usize, ends: &[usize], end: At) {
        let items = self.source.cuts.len() - first_cut;
        self.counts.items += items as u64;
        self.counts.runs += 1;
        let order = &self.source.order[first..];
        let moved = order
            .iter()
            .zip(first_cut..)
            .filter(|(now, was)| **now as usize != *was);
        let moved = moved.count() as u64;
        self.counts.moved += moved;
        if moved == 0 && self.workers.is_empty() {
            // As it was: nothing to remember.
            self.source.order.truncate(first);
            self.source.cuts.truncate(first_cut);
        } else {
            self.source.cuts.push(end);
            let begin = self.source.cuts[first_cut];
            self.span(begin);
            self.done = end;
            self.deal(first, items, ends);
        }
    }

    /// Appends the run's segments in the order of the tour, those of a bin as they came. Returns where each
    /// bin of the tour ends, counted in items of the run.
    fn sort(&mut self, first_cut: usize) -> Result<Vec<usize>, BinsError> {
        // One bin has one tour, and many runs have one bin.
        let tour = match self.bins.len() {
            1 => vec![0],
            _ => self.bins.tour(self.rules.tour),
        };
        let mut next = vec![0usize; tour.len()];
        for &bin in &self.bin_of {
            next[bin as usize] += 1;
        }
        let mut ends = Vec::with_capacity(tour.len());
        let mut end = 0;
        for &bin in &tour {
            let begin = end;
            end += std::mem::replace(&mut next[bin as usize], begin);
            ends.push(end);
        }
        let order = &mut self.source.order;
        let first = order.len();
        order.try_reserve(self.bin_of.len())?;
        order.resize(first + self.bin_of.len(), 0);
        for (item, &bin) in self.bin_of.iter().enumerate() {
            let place = &mut next[bin as usize];
            // Cuts beyond 2^32 would take 64 GiB of memory before they came here.
            order[first + *place] = u32::try_from(first_cut + item).map_err(|_| BinsError::OutOfMemory)?;
            *place += 1;
        }
        Ok(ends)
    }

    /// Gives the run's items to the thread, or to the workers: each a part of the tour, whole bins, with about
    /// as many references as the others have.
    fn deal(&mut self, first: usize, items: usize, ends: &[usize]) {
        if self.workers.is_empty() {
            self.stream.parts.push(Part::Segments { first, count: items });
            return;
        }
        let shares = self.shares(first, items, ends);
        let mut tickets = Vec::new();
        // The workers that have a share begin before the thread turns to its own.
        for (worker, &(from, to)) in self.workers.iter_mut().zip(&shares[1..]) {
            if from == to {
                continue;
            }
            let (begin, end) = (*self.ticket, *self.ticket + 1);
            *self.ticket += 2;
            self.stream.parts.push(Part::Event(Event::Post { ticket: begin }));
            worker.source = self.stream.source;
            worker.parts.extend([
                Part::Event(Event::Wait { ticket: begin }),
                Part::Segments {
                    first: first + from,
                    count: to - from,
                },
                Part::Event(Event::Post { ticket: end }),
            ]);
            tickets.push(end);
        }
        let (from, to) = shares[0];
        self.stream.parts.push(Part::Segments {
            first: first + from,
            count: to - from,
        });
        let waits = tickets.into_iter().map(|ticket| Part::Event(Event::Wait { ticket }));
        self.stream.parts.extend(waits);
    }

    /// For the thread and each worker, its items of the run: from and to.
    fn shares(&self, first: usize, items: usize, ends: &[usize]) -> Vec<(usize, usize)> {
        let refs = |place: usize| {
            let (from, to) = self.source.segment(self.source.order[first + place]);
            to.refs - from.refs
        };
        let all: u64 = (0..items).map(refs).sum();
        let hands = self.workers.len() as u64 + 1;
        let mut shares = Vec::new();
        let (mut from, mut at, mut sum) = (0, 0, 0u64);
        let mut ends = ends.iter().copied().peekable();
        for hand in 1..=hands {
            let due = (u128::from(all) * u128::from(hand) / u128::from(hands)) as u64;
            // A bin goes to any worker with room for half of it.
            while let Some(&end) = ends.peek() {
                let bin: u64 = (at..end).map(refs).sum();
                if hand < hands && sum + bin / 2 > due {
                    break;
                }
                sum += bin;
                at = end;
                ends.next();
            }
            shares.push((from, at));
            from = at;
        }
        shares
    }

    /// Everything between `done` and `to` stays as it is.
    fn span(&mut self, to: At) {
        if self.done < to {
            let from = self.done;
            self.stream.parts.push(Part::Span { from, to });
            self.done = to;
        }
    }
}
