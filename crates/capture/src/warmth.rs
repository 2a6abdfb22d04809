//! Lines that a program touched before a window of its run: the contents of its caches and TLBs at that time.
//!
//! The most recently touched lines of every thread are kept in the order of their last touch. An LRU cache of any shape
//! holds exactly such lines, up to its size (Barr and others 2005: a memory timestamp record). At the beginning of a
//! window they are recorded. A line that the window touches, that is not among them, but was touched long before, is
//! also recorded, as the first of all: then it is no first touch.

use std::collections::{BTreeMap, HashMap};
use std::io;

use crate::connection::Connection;
use crate::wire::{self, Hello, record};

/// A line of 64 bytes: those of all x86-64 processors.
const LINE_BITS: u32 = 6;
/// Of user addresses, how many bits a line's number has.
const NUMBER_BITS: u32 = 47 - LINE_BITS;
const NUMBER: u64 = (1 << NUMBER_BITS) - 1;
/// A bit in the record of a line: it was written.
const WRITTEN: u64 = 1 << 63;
/// How many threads are distinguished.
const THREADS: usize = 1 << (63 - NUMBER_BITS - 1);
/// Lines of a page, as a power of two.
const PAGE_BITS: u32 = 12 - LINE_BITS;

/// A line that was touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    pub connection: Connection,
    /// Valgrind's number of the thread.
    pub tid: u64,
    pub address: u64,
    pub written: bool,
}

/// The sender on a connection.
#[derive(Clone, Default)]
struct Speaker {
    pid: u32,
    /// For each superblock, which of its first 64 references write, and which are prefetches.
    blocks: Vec<[u64; 2]>,
    tid: u64,
    /// The number of its thread `tid` here.
    who: u32,
}

/// The lines that have been touched so far.
pub struct Warmth {
    speakers: HashMap<Connection, Speaker>,
    /// By their numbers here.
    threads: Vec<(Connection, u64)>,
    numbers: HashMap<(Connection, u64), u32>,
    lines: Lines,
    /// The lines of a page that were ever touched, by connection.
    pages: HashMap<(Connection, u64), u64>,
    /// The current window: its number, the last touched lines at its beginning, and those that it touched later.
    window: Option<(u64, Vec<u64>, Vec<u64>)>,
    /// By number of the window, zstd.
    noted: BTreeMap<u64, Vec<u8>>,
    /// Why something could not be recorded.
    failure: Option<io::Error>,
}

impl Warmth {
    /// Keeps the last `most` lines.
    pub fn new(most: usize) -> Warmth {
        Warmth {
            speakers: HashMap::new(),
            threads: Vec::new(),
            numbers: HashMap::new(),
            lines: Lines::new(most),
            pages: HashMap::new(),
            window: None,
            noted: BTreeMap::new(),
            failure: None,
        }
    }

    pub fn open(&mut self, connection: Connection, hello: Hello) {
        let parent = self.speakers.values().find(|speaker| speaker.pid == hello.parent);
        let blocks = parent.filter(|_| hello.forked).map(|parent| parent.blocks.clone());
        let speaker = Speaker {
            pid: hello.pid,
            blocks: blocks.unwrap_or_default(),
            tid: 1,
            who: self.number(connection, 1),
        };
        self.speakers.insert(connection, speaker);
    }

    fn number(&mut self, connection: Connection, tid: u64) -> u32 {
        let Warmth { numbers, threads, .. } = self;
        *numbers.entry((connection, tid)).or_insert_with(|| {
            threads.push((connection, tid));
            (threads.len() - 1).min(THREADS - 1) as u32
        })
    }

    /// Handles a record that is not a reference.
    pub fn record(&mut self, connection: Connection, kind: u32, payload: &[u64]) {
        match (kind, payload) {
            (record::THREAD, [tid, ..]) => {
                let who = self.number(connection, *tid);
                if let Some(speaker) = self.speakers.get_mut(&connection) {
                    (speaker.tid, speaker.who) = (*tid, who);
                }
            }
            (record::BLOCK, [_, counts, rest @ ..]) => {
                let [insns, refs] = [0, 16].map(|shift| usize::from((counts >> shift) as u16));
                let ops = rest.iter().skip(insns).take(refs.min(64)).enumerate();
                let mask = |of: fn(u64) -> bool| {
                    let ops = ops.clone().filter(|(_, word)| of(**word >> 32 & 0xff));
                    ops.fold(0, |mask, (at, _)| mask | 1 << at)
                };
                let block = [mask(|op| op == 1 || op == 2), mask(|op| op == 3)];
                if let Some(speaker) = self.speakers.get_mut(&connection) {
                    speaker.blocks.push(block);
                }
            }
            _ => {}
        }
    }

    /// A superblock was run: its addresses, mixed with other words.
    pub fn run(&mut self, connection: Connection, number: u32, words: &[u64]) {
        let Some(speaker) = self.speakers.get(&connection) else {
            return;
        };
        let [writes, prefetches] = speaker.blocks.get(number as usize).copied().unwrap_or_default();
        let who = u64::from(speaker.who) << NUMBER_BITS;
        for (at, &word) in words.iter().enumerate() {
            let bit = if at < 64 { 1 << at } else { 0 };
            if word & wire::TAGGED != 0 || prefetches & bit != 0 {
                continue;
            }
            let key = who | (word >> LINE_BITS & NUMBER);
            if self.lines.touch(key, writes & bit != 0) {
                self.first(connection, key);
            }
        }
    }

    /// A line is not among those touched last.
    #[cold]
    fn first(&mut self, connection: Connection, key: u64) {
        let line = key & NUMBER;
        let page = self.pages.entry((connection, line >> PAGE_BITS)).or_default();
        let bit = 1 << (line & ((1 << PAGE_BITS) - 1));
        let known = *page & bit != 0;
        *page |= bit;
        // The first touches in a window do not show which lines the window itself has evicted.
        if let Some((_, _, late)) = self.window.as_mut().filter(|_| known && !self.lines.pruned) {
            late.push(key);
        }
    }

    /// A window begins.
    pub fn begin(&mut self, number: u64) {
        self.end();
        self.lines.pruned = false;
        self.window = Some((number, self.lines.in_order(), Vec::new()));
    }

    /// The window under way ends, if there is one.
    pub fn end(&mut self) {
        let Some((number, last, late)) = self.window.take() else {
            return;
        };
        let bytes: Vec<u8> = late.iter().chain(&last).flat_map(|key| key.to_le_bytes()).collect();
        match zstd::bulk::compress(&bytes, 1) {
            Ok(noted) => {
                self.noted.insert(number, noted);
            }
            Err(failure) => self.failure = Some(failure),
        }
    }

    /// Only these of the recorded windows will be requested.
    pub fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        self.noted.retain(|number, _| keep(*number));
    }

    /// The lines that were touched before a window, the most recent last. Empty if there are none.
    pub fn before(&self, number: u64) -> io::Result<Vec<Touched>> {
        if let Some(failure) = &self.failure {
            return Err(io::Error::new(failure.kind(), failure.to_string()));
        }
        let Some(noted) = self.noted.get(&number) else {
            return Ok(Vec::new());
        };
        let bytes = zstd::stream::decode_all(&noted[..])?;
        let keys = bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let touched = |key: u64| {
            let who = (key & !WRITTEN) >> NUMBER_BITS;
            let (connection, tid) = *self.threads.get(who as usize)?;
            Some(Touched {
                connection,
                tid,
                address: (key & NUMBER) << LINE_BITS,
                written: key & WRITTEN != 0,
            })
        };
        Ok(keys.filter_map(touched).collect())
    }
}

/// The lines touched last, with the moments of their last touches.
struct Lines {
    most: usize,
    held: Vec<Line>,
    /// The index of a line in `held`, plus 1; 0: not held. Open addressing, at most half full.
    places: Vec<u32>,
    now: u64,
    /// Lines were dropped since this was set to false.
    pruned: bool,
    latest: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    /// Twice the moment, plus 1 if the line was written since it can have left the last ones.
    moment: u64,
    key: u64,
}

impl Lines {
    fn new(most: usize) -> Lines {
        Lines {
            most: most.max(16),
            held: Vec::new(),
            places: vec![0; 64],
            now: 0,
            pruned: false,
            latest: u64::MAX,
        }
    }

    /// The index in `places` at which a line is, or would be.
    #[inline]
    fn place(&self, key: u64) -> usize {
        let mask = self.places.len() - 1;
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize & mask;
        while let Some(line) = (self.places[at] as usize).checked_sub(1)
            && self.held[line].key != key
        {
            at = (at + 1) & mask;
        }
        at
    }

    /// Records a touch. True if the line was not held.
    #[inline]
    fn touch(&mut self, key: u64, write: bool) -> bool {
        if key == self.latest && !write {
            return false;
        }
        self.latest = key;
        self.now += 1;
        let at = self.place(key);
        if let Some(line) = (self.places[at] as usize).checked_sub(1) {
            let line = &mut self.held[line];
            let stays = line.moment & 1 != 0 && self.now - (line.moment >> 1) < self.most as u64;
            line.moment = self.now << 1 | u64::from(write || stays);
            return false;
        }
        let moment = self.now << 1 | u64::from(write);
        self.held.push(Line { moment, key });
        self.places[at] = self.held.len() as u32;
        if self.held.len() >= 2 * self.most {
            self.held = self.by_moment();
            self.pruned = true;
            self.find_places(self.places.len());
        } else if 2 * self.held.len() >= self.places.len() {
            self.find_places(2 * self.places.len());
        }
        true
    }

    /// The held lines by their last touch, the latest last.
    fn by_moment(&self) -> Vec<Line> {
        let mut held = self.held.clone();
        held.sort_unstable();
        held.split_off(held.len().saturating_sub(self.most))
    }

    #[cold]
    fn find_places(&mut self, room: usize) {
        self.places.clear();
        self.places.resize(room, 0);
        for line in 0..self.held.len() {
            let at = self.place(self.held[line].key);
            self.places[at] = line as u32 + 1;
        }
    }

    /// The last lines, with whether they were written.
    fn in_order(&self) -> Vec<u64> {
        let noted = |line: Line| line.key | if line.moment & 1 != 0 { WRITTEN } else { 0 };
        self.by_moment().into_iter().map(noted).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: Hello = Hello {
        pid: 7,
        parent: 1,
        forked: false,
        parent_slots: 0,
    };

    /// Block 0 reads and writes, block 1 reads and prefetches.
    fn warmth(most: usize) -> Warmth {
        let mut warmth = Warmth::new(most);
        warmth.open(3, HELLO);
        warmth.record(3, record::BLOCK, &[0, 1 | 2 << 16, 0x40_0000, 0, 1 << 32]);
        warmth.record(3, record::BLOCK, &[1, 1 | 2 << 16, 0x40_0000, 0, 3 << 32]);
        warmth
    }

    fn lines(warmth: &Warmth, window: u64) -> Vec<(u64, bool)> {
        let before = warmth.before(window).unwrap();
        assert!(before.iter().all(|touched| touched.connection == 3));
        before
            .iter()
            .map(|touched| (touched.address, touched.written))
            .collect()
    }

    #[test]
    fn the_lines_touched_last_in_their_order() {
        let mut warmth = warmth(100);
        warmth.run(3, 0, &[0x1000, 0x2008]);
        warmth.run(3, 1, &[0x3000, 0x9999]);
        warmth.run(3, 1, &[0x1004, 0x9999]);
        warmth.begin(5);
        warmth.run(3, 1, &[0x7000, 0x9999]);
        warmth.end();
        assert_eq!(lines(&warmth, 5), [(0x2000, true), (0x3000, false), (0x1000, false)]);
        assert_eq!(lines(&warmth, 6), []);
        warmth.retain(|number| number != 5);
        assert_eq!(lines(&warmth, 5), []);
    }

    #[test]
    fn what_was_touched_long_before_and_is_touched_again_comes_first() {
        let mut warmth = warmth(16);
        for line in 0..40 {
            warmth.run(3, 1, &[0x1_0000 + 64 * line, 0]);
        }
        warmth.begin(1);
        let known = 0x1_0000;
        warmth.run(3, 1, &[known, 0]);
        warmth.run(3, 1, &[0x9_0000, 0]);
        warmth.end();
        let noted = lines(&warmth, 1);
        assert_eq!(noted.len(), 17);
        assert_eq!(noted[0], (known, false));
        assert_eq!(noted[16], (0x1_0000 + 64 * 39, false));
        assert_eq!(noted[1], (0x1_0000 + 64 * 24, false));
    }

    #[test]
    fn a_line_stays_written_as_long_as_it_can_not_have_left() {
        let mut warmth = warmth(16);
        warmth.run(3, 0, &[0x9000, 0x1000]);
        warmth.run(3, 1, &[0x2000, 0]);
        warmth.run(3, 1, &[0x1000, 0]);
        warmth.begin(0);
        warmth.end();
        assert!(lines(&warmth, 0).contains(&(0x1000, true)));
        for line in 0..20 {
            warmth.run(3, 1, &[0x1_0000 + 64 * line % 128, 0]);
        }
        warmth.run(3, 1, &[0x1000, 0]);
        warmth.begin(1);
        warmth.end();
        assert!(lines(&warmth, 1).contains(&(0x1000, false)));
    }

    #[test]
    fn threads_are_told_apart_and_so_are_processes() {
        let mut warmth = warmth(100);
        let child = Hello {
            pid: 8,
            parent: 7,
            forked: true,
            parent_slots: 0,
        };
        warmth.open(4, child);
        warmth.run(3, 1, &[0x1000, 0]);
        warmth.record(3, record::THREAD, &[2]);
        warmth.run(3, 1, &[0x1000, 0]);
        warmth.run(4, 0, &[0x1000, 0x1000]);
        warmth.begin(0);
        warmth.end();
        let touched = |connection, tid, written| Touched {
            connection,
            tid,
            address: 0x1000,
            written,
        };
        let expected = [touched(3, 1, false), touched(3, 2, false), touched(4, 1, true)];
        assert_eq!(warmth.before(0).unwrap(), expected);
    }
}
