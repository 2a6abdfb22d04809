//! The trace being written: which references pass, and to which thread they belong.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use trace::{Body, Event, Op, Pace, Ref, Site, SiteId, Stack, StackId, Summary, Thread, ThreadId, TraceError, Writer};

/// How many references of a thread are collected before they go to the writer: a chunk.
const BATCH: usize = trace::limits::CHUNK_REFS;

/// The trace, and the windows through which references reach it.
///
/// After the first failure to write nothing more is written; [`Output::failed`] says so.
pub struct Output {
    writer: Writer,
    failure: Option<TraceError>,
    /// References of `thread` that the writer does not have yet: with fetches its own buffer, if it is lent, otherwise
    /// those that did not come in runs.
    refs: Vec<Ref>,
    lent: bool,
    thread: ThreadId,
    /// Threads that have not ended.
    live: BTreeSet<ThreadId>,
    /// Loads, stores and modifications that the program has made so far.
    seen: u64,
    /// The windows to take, in order; the first is the current or the next one.
    windows: VecDeque<Range<u64>>,
    window: u32,
    inside: bool,
    /// The end of the window under way.
    end: u64,
    announce: bool,
    /// True if windows have a part that only warms caches.
    warms: bool,
    /// True once the warm-up of the window that begins next was written.
    begun: bool,
    /// The reference from which the present or the next window is counted; `None`: counting has begun.
    counted_from: Option<u64>,
    pub pcs: bool,
    pub fetches: bool,
    /// Clocks and instructions of samples, by site.
    paces: BTreeMap<SiteId, (u64, u64)>,
}

/// The reciprocal of the part of a window that warms up state beyond lines.
const WARMING: u64 = 8;

/// Instructions that take fewer clocks than this for 1024 of them do not wait measurably: no processor begins more than
/// eight in a clock.
const CLOCKS_LEAST: u64 = 1024 / 8;

impl Output {
    /// Writes what lies in `windows` (numbers of references, in order, not overlapping); `announce` puts an event before
    /// each.
    pub fn new(writer: Writer, windows: Vec<Range<u64>>, announce: bool, pcs: bool, fetches: bool) -> Output {
        Output {
            writer,
            failure: None,
            refs: Vec::new(),
            lent: false,
            thread: 0,
            live: BTreeSet::new(),
            seen: 0,
            windows: windows.into(),
            window: 0,
            inside: false,
            end: 0,
            announce,
            warms: false,
            begun: false,
            counted_from: None,
            pcs,
            fetches,
            paces: BTreeMap::new(),
        }
    }

    /// The same with an event where each window is counted from, after it has warmed up ([`Output::warm_up`]), if it `warms`.
    pub fn warming(self, warms: bool) -> Output {
        Output { warms, ..self }
    }

    pub fn seen(&self) -> u64 {
        self.seen
    }

    pub fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    pub fn failed(&self) -> bool {
        self.failure.is_some()
    }

    fn keep<T>(&mut self, result: Result<T, TraceError>) {
        if let Err(failure) = result
            && self.failure.is_none()
        {
            self.failure = Some(failure);
        }
    }

    /// Borrows the writer's buffer. References that are collected after a failure are lost.
    #[cold]
    fn borrow(&mut self) {
        self.lent = true;
        if self.fetches && self.failure.is_none() {
            match self.writer.lend(self.thread) {
                Ok(refs) => self.refs = refs,
                Err(failure) => self.failure = Some(failure),
            }
        }
    }

    /// Gives the writer the collected references.
    fn flush(&mut self) {
        if !self.lent {
            return;
        }
        self.lent = false;
        if self.failure.is_none() {
            let result = if self.fetches {
                self.writer.give_back(self.thread, std::mem::take(&mut self.refs))
            } else {
                self.writer.refs(self.thread, &self.refs)
            };
            self.keep(result);
        }
        self.refs.clear();
    }

    /// Everything that is admitted from now on belongs to `thread`.
    pub fn run_by(&mut self, thread: ThreadId) {
        if thread != self.thread {
            self.flush();
            self.thread = thread;
        }
    }

    /// Writes an event about the next reference, unless that is not taken.
    pub fn event_of_next(&mut self, thread: ThreadId, event: Event) {
        if self.wants(1) {
            self.event(thread, event);
        }
    }

    pub fn event(&mut self, thread: ThreadId, event: Event) {
        self.flush();
        if self.failure.is_none() {
            let result = self.writer.event(thread, event);
            self.keep(result);
        }
    }

    /// How many of the next `count` references would be taken or could begin a window: if none,
    /// [`Output::pass`] spares the work of building them.
    #[inline(always)]
    pub fn wants(&self, count: u64) -> bool {
        match self.windows.front() {
            Some(window) => self.seen + count > window.start,
            None => false,
        }
    }

    /// How many windows have begun.
    pub fn window(&self) -> u32 {
        self.window
    }

    /// Counts references outside of all windows.
    #[inline(always)]
    pub fn pass(&mut self, count: u64) {
        self.seen += count;
    }

    /// The references being collected, earlier ones first; a run is appended and then admitted.
    #[inline(always)]
    pub fn collected(&mut self) -> &mut Vec<Ref> {
        if !self.lent {
            self.borrow();
        }
        &mut self.refs
    }

    /// How many of the next references can pass together: they lie in the current window and do not end it.
    pub fn room(&self) -> usize {
        if self.inside {
            usize::try_from(self.end.saturating_sub(self.seen + 1)).unwrap_or(usize::MAX)
        } else {
            0
        }
    }

    /// Passes runs of superblocks, as far as [`Output::room`] allows; returns their number of words. See
    /// [`Writer::runs`].
    pub fn take_runs<'b>(
        &mut self,
        words: &[u64],
        carried: &mut u64,
        bodies: &dyn Fn(u64) -> Option<Body<'b>>,
    ) -> usize {
        self.flush();
        if self.failure.is_some() {
            return 0;
        }
        match self.writer.runs(self.thread, words, carried, self.room(), bodies) {
            Ok((taken, refs)) => {
                self.seen += refs as u64;
                taken
            }
            Err(failure) => {
                self.failure = Some(failure);
                0
            }
        }
    }

    /// Passes those of the last references, from index `from` of [`Output::collected`] on, that lie in a window;
    /// `count` of them are not fetches.
    #[inline(always)]
    pub fn admit(&mut self, from: usize, count: u64) {
        if self.inside && self.seen + count < self.end {
            self.seen += count;
            if self.refs.len() >= BATCH {
                self.flush();
            }
        } else {
            self.admit_across(from);
        }
    }

    /// A run that may begin or end a window, or touch none.
    #[cold]
    fn admit_across(&mut self, from: usize) {
        let run = self.refs.split_off(from.min(self.refs.len()));
        for mut r in run {
            // Fetches go with the reference that follows them.
            let Some(window) = self.windows.front().cloned() else {
                self.seen += u64::from(r.op != Op::Fetch);
                continue;
            };
            if self.seen >= window.start {
                if !self.inside {
                    self.inside = true;
                    if window.start > 0 {
                        // Instructions before the window do not belong to it.
                        r.insns = r.insns.min(1);
                    }
                    self.begin_window();
                    self.end = self.counted_from.unwrap_or(window.end);
                }
                if self.counted_from.is_some_and(|from| self.seen >= from) {
                    self.counted_from = None;
                    self.end = window.end;
                    let index = self.window - 1;
                    self.announce(Event::Counted { index });
                }
                self.collected().push(r);
            }
            if r.op != Op::Fetch {
                self.seen += 1;
                if self.seen >= window.end {
                    self.windows.pop_front();
                    self.inside = false;
                }
            }
        }
        if self.refs.len() >= BATCH {
            self.flush();
        }
    }

    fn announce(&mut self, event: Event) {
        for thread in self.live.clone() {
            self.event(thread, event.clone());
        }
    }

    fn begin_window(&mut self) {
        if std::mem::take(&mut self.begun) {
            return;
        }
        if self.warms {
            self.counted_from = Some(self.seen);
        }
        if self.announce {
            self.announce(Event::Window { index: self.window });
        }
        self.window += 1;
    }

    /// Begins the next window, with lines that threads touched before, in their order. Counting begins after an eighth
    /// of the window, so that state that lines do not show (prefetchers, code, pending accesses) warms up first. If
    /// nothing was touched before, counting begins with the window.
    pub fn warm_up(&mut self, touched: &[(ThreadId, u64, bool)]) {
        let Some(window) = self.windows.front().cloned() else {
            return;
        };
        if self.inside {
            // The previous window continues up to this one, so there is no gap.
            return;
        }
        self.begin_window();
        self.begun = true;
        self.counted_from = Some(match touched {
            [] => window.start,
            _ => window.start + (window.end - window.start) / WARMING,
        });
        self.flush();
        let ops = [Op::Read, Op::Modify];
        let sites = ops.map(|op| self.writer.site(Site { pc: 0, op, size: 1 }));
        let mut refs = Vec::new();
        for run in touched.chunk_by(|a, b| a.0 == b.0) {
            refs.clear();
            refs.extend(run.iter().map(|(_, addr, written)| Ref {
                addr: *addr,
                site: sites[usize::from(*written)],
                insns: 0,
                op: ops[usize::from(*written)],
                size: 1,
            }));
            if self.failure.is_none() {
                let result = self.writer.refs(run[0].0, &refs);
                self.keep(result);
            }
        }
    }

    /// How many windows have begun.
    pub fn windows_begun(&self) -> u32 {
        self.window
    }

    /// True if the references that come now are being taken.
    pub fn inside(&self) -> bool {
        self.inside
    }

    pub fn process(&mut self, process: trace::Process) -> u32 {
        self.writer.process(process)
    }

    pub fn thread(&mut self, thread: Thread) -> ThreadId {
        let id = self.writer.thread(thread);
        self.live.insert(id);
        id
    }

    pub fn update_thread(&mut self, id: ThreadId, thread: Thread) {
        self.writer.update_thread(id, thread);
    }

    /// The thread's last event.
    pub fn exit(&mut self, thread: ThreadId) {
        if self.live.remove(&thread) {
            self.event(thread, Event::Exit);
        }
    }

    pub fn site(&mut self, site: Site) -> SiteId {
        self.writer.site(site)
    }

    pub fn stack(&mut self, stack: Stack) -> StackId {
        self.writer.stack(stack)
    }

    /// The writer, for the tables that come last.
    pub fn writer(&mut self) -> &mut Writer {
        &mut self.writer
    }

    /// Adds a sample: instructions around references of a site, and the clocks that they took.
    pub fn pace(&mut self, site: SiteId, clocks: u64, instructions: u64) {
        let (known_clocks, known_instructions) = self.paces.entry(site).or_default();
        *known_clocks += clocks;
        *known_instructions += instructions;
    }

    fn write_paces(&mut self) {
        let pace = |(site, (clocks, instructions)): (SiteId, (u64, u64))| {
            let clocks = clocks * 1024 / instructions.max(1);
            (clocks >= CLOCKS_LEAST).then_some(Pace {
                site,
                clocks: clocks.min(1 << 20) as u32,
            })
        };
        let paces = std::mem::take(&mut self.paces);
        self.writer.paces(paces.into_iter().filter_map(pace));
    }

    /// Ends the trace. The error, if any, is the first that occurred.
    pub fn finish(mut self) -> (Result<Summary, TraceError>, u64) {
        self.flush();
        self.write_paces();
        for thread in std::mem::take(&mut self.live) {
            self.event(thread, Event::Exit);
        }
        let seen = self.seen;
        let finished = self.writer.finish();
        match self.failure {
            Some(failure) => (Err(failure), seen),
            None => (finished, seen),
        }
    }
}
