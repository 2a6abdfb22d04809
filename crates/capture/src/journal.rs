//! Windows spread evenly over a run whose length nobody knows.
//!
//! Windows of N references are taken at first one after the other. When twice as many are held as
//! were asked for, every second one is dropped and the distance between the next ones doubles; so
//! at any time the windows held lie evenly over all of the run so far. What the tool said inside of
//! a window, and everything but references outside, is kept in a temporary file. At the end K of
//! the windows held are chosen evenly and the file is replayed to the process tree as if it happened then.
//!
//! Of a run of R references the file holds those of at most K (2 + log2(R / KN)) windows.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use crate::process_tree::{Connection, Listener, ProcessTree};
use crate::wire::{self, Hello, record};

/// What the file says: one of these, then its numbers, then words.
const OPEN: u64 = 1;
const WORDS: u64 = 2;
const PASS: u64 = 3;
const CLOSE: u64 = 4;

/// Listens to the tool and keeps what may be wanted.
pub struct Journal {
    out: zstd::Encoder<'static, BufWriter<File>>,
    failure: Option<io::Error>,
    schedule: Schedule,
    /// References so far.
    seen: u64,
    /// References since the last that the file knows of.
    passed: u64,
    /// Connections whose program asked not to be recorded for now.
    paused: HashMap<Connection, bool>,
    kept: Vec<u64>,
}

/// Which windows are held.
struct Schedule {
    skip: u64,
    references: u64,
    count: u64,
    /// Windows are numbered from 0; those whose number is a multiple of this are held.
    stride: u64,
    /// Numbers of windows that have begun and are held.
    held: u64,
}

impl Schedule {
    fn start(&self, number: u64) -> u64 {
        self.skip.saturating_add(number.saturating_mul(self.references))
    }

    /// Whether any of the references `[from, to)` is in a window to be held.
    fn wants(&mut self, from: u64, to: u64) -> bool {
        loop {
            let first = from.saturating_sub(self.skip) / self.references;
            let held = first.div_ceil(self.stride) * self.stride;
            let inside = first.is_multiple_of(self.stride) && to > self.skip;
            if !inside && self.start(held) >= to {
                return false;
            }
            let number = if inside { first } else { held };
            self.held = number / self.stride + 1;
            if self.held <= 2 * self.count {
                return true;
            }
            self.stride *= 2;
        }
    }

    /// The windows to use of a run of `seen` references.
    fn choose(&self, seen: u64) -> Vec<Range<u64>> {
        let complete = seen.saturating_sub(self.skip) / self.references;
        let held: Vec<u64> = (0..complete).step_by(self.stride as usize).collect();
        if held.is_empty() {
            // Shorter than one window: all there is.
            let only = self.skip..self.start(1);
            return if seen > self.skip { vec![only] } else { Vec::new() };
        }
        let (have, want) = (held.len() as u64, self.count.min(held.len() as u64));
        let pick = |j: u64| held[(if want == 1 { 0 } else { j * (have - 1) / (want - 1) }) as usize];
        (0..want).map(pick).map(|n| self.start(n)..self.start(n + 1)).collect()
    }
}

impl Journal {
    /// Keeps what it must in a nameless file in `folder`.
    pub fn new(folder: &Path, skip: u64, references: u64, count: u32) -> io::Result<Journal> {
        let file = tempfile::tempfile_in(folder)?;
        Ok(Journal {
            out: zstd::Encoder::new(BufWriter::new(file), 1)?,
            failure: None,
            schedule: Schedule {
                skip,
                references,
                count: u64::from(count),
                stride: 1,
                held: 0,
            },
            seen: 0,
            passed: 0,
            paused: HashMap::new(),
            kept: Vec::new(),
        })
    }

    fn write(&mut self, numbers: &[u64], words: &[u64]) {
        if self.failure.is_some() {
            return;
        }
        let bytes: Vec<u8> = numbers.iter().chain(words).flat_map(|w| w.to_le_bytes()).collect();
        if let Err(failure) = self.out.write_all(&bytes) {
            self.failure = Some(failure);
        }
    }

    fn write_passed(&mut self) {
        let passed = std::mem::take(&mut self.passed);
        if passed > 0 {
            self.write(&[PASS, passed], &[]);
        }
    }

    fn write_kept(&mut self, connection: Connection) {
        let kept = std::mem::take(&mut self.kept);
        if !kept.is_empty() {
            self.write(&[WORDS, connection, kept.len() as u64], &kept);
        }
        self.kept = kept;
        self.kept.clear();
    }

    /// Ends listening: what to replay, and the windows to let through.
    pub fn finish(mut self) -> (Replay, Vec<Range<u64>>) {
        self.write_passed();
        let chosen = self.schedule.choose(self.seen);
        let file = match self.failure {
            Some(failure) => Err(failure),
            None => self
                .out
                .finish()
                .and_then(|buffer| buffer.into_inner().map_err(|e| e.into_error())),
        };
        (Replay { file }, chosen)
    }
}

impl Listener for Journal {
    fn open(&mut self, connection: Connection, hello: Hello) {
        let from = [hello.pid, hello.parent, u32::from(hello.forked)].map(u64::from);
        self.write(&[OPEN, connection, from[0], from[1], from[2]], &[]);
    }

    fn words(&mut self, connection: Connection, words: &[u64]) {
        let mut at = 0;
        let mut paused = self.paused.get(&connection).copied().unwrap_or(false);
        while let Some(&word) = words.get(at) {
            let begin = at;
            at += 1;
            if wire::kind(word) == wire::RECORD {
                let Some((kind, payload)) = wire::payload(words, begin) else {
                    break;
                };
                if kind == record::SWITCH {
                    paused = payload.first() == Some(&0);
                    self.paused.insert(connection, paused);
                }
                at += payload.len();
                self.kept.extend_from_slice(&words[begin..at]);
                continue;
            }
            let mut count = 0;
            while let Some(&word) = words.get(at) {
                match wire::kind(word) {
                    0..wire::NULL => count += u64::from(!paused),
                    wire::NULL | wire::EXIT => {}
                    _ => break,
                }
                at += 1;
            }
            if self.schedule.wants(self.seen, self.seen + count.max(1)) {
                if self.passed > 0 {
                    self.write_kept(connection);
                    self.write_passed();
                }
                self.kept.extend_from_slice(&words[begin..at]);
            } else {
                if self.passed == 0 {
                    self.write_kept(connection);
                }
                self.passed += count;
            }
            self.seen += count;
        }
        self.write_kept(connection);
    }

    fn close(&mut self, connection: Connection) {
        self.write(&[CLOSE, connection], &[]);
    }

    fn progress(&self) -> (u64, u64) {
        (
            self.seen,
            self.out.get_ref().get_ref().metadata().map_or(0, |m| m.len()),
        )
    }

    fn failed(&self) -> bool {
        self.failure.is_some()
    }
}

/// A journal to be replayed.
pub struct Replay {
    file: io::Result<File>,
}

impl Replay {
    /// Replays everything to `tree`. The error says what stopped it; what came before it counts.
    pub fn replay(self, tree: &mut ProcessTree) -> Result<(), String> {
        self.file
            .and_then(|file| Self::read(file, tree))
            .map_err(|e| format!("the temporary file beside the trace failed: {e}"))
    }

    fn read(mut file: File, tree: &mut ProcessTree) -> io::Result<()> {
        file.seek(SeekFrom::Start(0))?;
        let mut input = BufReader::with_capacity(1 << 20, zstd::Decoder::new(file)?);
        let mut words = Vec::new();
        let mut bytes = Vec::new();
        loop {
            let mut first = [0; 8];
            match input.read_exact(&mut first) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(e) => return Err(e),
            }
            let mut number = || -> io::Result<u64> {
                let mut word = [0; 8];
                input.read_exact(&mut word)?;
                Ok(u64::from_le_bytes(word))
            };
            match u64::from_le_bytes(first) {
                OPEN => {
                    let (connection, pid, parent) = (number()?, number()? as u32, number()? as u32);
                    tree.open(
                        connection,
                        Hello {
                            pid,
                            parent,
                            forked: number()? != 0,
                            parent_slots: 0,
                        },
                    );
                }
                WORDS => {
                    let (connection, count) = (number()?, number()?);
                    bytes.resize(8 * count as usize, 0);
                    input.read_exact(&mut bytes)?;
                    words.clear();
                    words.extend(bytes.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)));
                    tree.words(connection, &words);
                }
                PASS => tree.out.pass(number()?),
                CLOSE => tree.close(number()?),
                _ => return Err(io::Error::other("it was changed")),
            }
            if tree.failed() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(skip: u64, references: u64, count: u64) -> Schedule {
        Schedule {
            skip,
            references,
            count,
            stride: 1,
            held: 0,
        }
    }

    #[test]
    fn windows_lie_evenly_over_the_run() {
        for run in [100u64, 1000, 12_345, 100_000] {
            let mut s = schedule(50, 10, 4);
            let mut kept = Vec::new();
            for at in 0..run {
                if s.wants(at, at + 1) {
                    kept.push(at);
                }
            }
            let chosen = s.choose(run);
            assert_eq!(chosen.len(), 4, "{run}");
            for window in &chosen {
                assert_eq!(window.end - window.start, 10);
                assert!(
                    window.clone().all(|at| kept.binary_search(&at).is_ok()),
                    "{run}: {window:?}"
                );
            }
            assert_eq!(chosen[0].start, 50);
            assert!(chosen.windows(2).all(|w| w[0].end <= w[1].start));
            // The last begins in the last half of the run.
            assert!(chosen[3].end * 2 > run, "{run}: {chosen:?}");
            let logs = 64 - (run / 40).leading_zeros() as usize;
            assert!(kept.len() <= 10 * 4 * (2 + logs), "{run}: {}", kept.len());
        }
    }

    #[test]
    fn short_runs_give_fewer_windows() {
        let s = schedule(0, 10, 4);
        assert_eq!(s.choose(35).len(), 3);
        assert_eq!(s.choose(5).first(), Some(&(0..10)));
        assert_eq!(s.choose(5).len(), 1);
        assert!(schedule(50, 10, 4).choose(50).is_empty());
    }

    #[test]
    fn runs_that_straddle_windows_are_wanted() {
        let mut s = schedule(0, 10, 1);
        s.stride = 4;
        assert!(s.wants(5, 15));
        assert!(!s.wants(10, 40));
        assert!(s.wants(10, 41));
    }
}
