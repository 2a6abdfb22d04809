//! Windows spread over a run of unknown length ([`Schedule`]), and the lines that warm caches before each ([`Warmth`]).
//!
//! The tool's words inside a window, and everything but references outside, are kept in a temporary file. At the end
//! the file is replayed to the process tree as if it happened then.
//!
//! Of a run of R references the file holds those of about K (2 + log2(R / KN)) windows.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use crate::process_tree::{Connection, Listener, ProcessTree};
use crate::schedule::Schedule;
use crate::warmth::Warmth;
use crate::wire::{self, Hello, record};

/// The records of the file: one of these, then its numbers, then words.
const OPEN: u64 = 1;
const WORDS: u64 = 2;
const PASS: u64 = 3;
const CLOSE: u64 = 4;
/// The records that follow belong to a window, at first.
const WINDOW: u64 = 5;

/// Listens to the tool and keeps what may be needed.
pub struct Journal {
    out: zstd::Encoder<'static, BufWriter<File>>,
    failure: Option<io::Error>,
    schedule: Schedule,
    /// The current or previous window, among those that are kept.
    window: Option<u64>,
    /// `None`: nothing warms caches.
    warmth: Option<Warmth>,
    /// References so far.
    seen: u64,
    /// References since the last one that is in the file.
    passed: u64,
    /// Connections whose program asked not to be recorded for now.
    paused: HashMap<Connection, bool>,
    kept: Vec<u64>,
}

impl Journal {
    /// Keeps the necessary words in an unnamed file in `folder`, and the last `lines` lines that were touched before
    /// each window.
    pub fn new(folder: &Path, schedule: Schedule, lines: usize) -> io::Result<Journal> {
        let file = tempfile::tempfile_in(folder)?;
        Ok(Journal {
            out: zstd::Encoder::new(BufWriter::new(file), 1)?,
            failure: None,
            schedule,
            window: None,
            warmth: (lines > 0).then(|| Warmth::new(lines)),
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

    /// The following words belong to a window that is to be kept.
    fn begin_window(&mut self, connection: Connection, number: u64) {
        self.write_kept(connection);
        self.write_passed();
        self.write(&[WINDOW, number], &[]);
        if let Some(warmth) = &mut self.warmth {
            warmth.begin(number);
            warmth.retain(|number| self.schedule.holds(number));
        }
        self.window = Some(number);
    }

    /// Ends listening. Returns the replay, and the windows to let through. `or_whole`: a run that the windows would
    /// cover counts as one window.
    pub fn finish(mut self, or_whole: bool) -> (Replay, Vec<Range<u64>>) {
        self.write_passed();
        if let Some(warmth) = &mut self.warmth {
            warmth.end();
        }
        // It needs no warming.
        let whole = self.schedule.whole(self.seen).filter(|_| or_whole);
        let chosen = match &whole {
            Some(_) => Vec::new(),
            None => self.schedule.choose(self.seen),
        };
        let file = match self.failure {
            Some(failure) => Err(failure),
            None => self
                .out
                .finish()
                .and_then(|buffer| buffer.into_inner().map_err(|e| e.into_error())),
        };
        let replay = Replay {
            file,
            chosen: chosen.iter().map(|(number, _)| *number).collect(),
            warmth: self.warmth,
            whole: whole.is_some(),
        };
        let windows = match whole {
            Some(whole) => vec![whole],
            None => chosen.into_iter().map(|(_, window)| window).collect(),
        };
        (replay, windows)
    }
}

impl Listener for Journal {
    fn open(&mut self, connection: Connection, hello: Hello) {
        let from = [hello.pid, hello.parent, u32::from(hello.forked)].map(u64::from);
        self.write(&[OPEN, connection, from[0], from[1], from[2]], &[]);
        if let Some(warmth) = &mut self.warmth {
            warmth.open(connection, hello);
        }
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
                if let Some(warmth) = &mut self.warmth {
                    warmth.record(connection, kind, payload);
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
            if let Some(number) = self.schedule.wants(self.seen, self.seen + count.max(1)) {
                if self.window != Some(number) {
                    self.begin_window(connection, number);
                }
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
                if let Some(warmth) = &mut self.warmth {
                    warmth.end();
                }
            }
            if let Some(warmth) = self.warmth.as_mut().filter(|_| !paused) {
                warmth.run(connection, word as u32, &words[begin + 1..at]);
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
    chosen: Vec<u64>,
    warmth: Option<Warmth>,
    whole: bool,
}

impl Replay {
    /// True if all of the run is in it, in one piece.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Replays everything to `tree`. The error is the cause of a stop; everything before it counts.
    pub fn replay(self, tree: &mut ProcessTree) -> Result<(), String> {
        let Replay {
            file, chosen, warmth, ..
        } = self;
        file.and_then(|file| Self::read(file, &chosen, warmth.as_ref(), tree))
            .map_err(|e| format!("the temporary file beside the trace failed: {e}"))
    }

    fn read(mut file: File, chosen: &[u64], warmth: Option<&Warmth>, tree: &mut ProcessTree) -> io::Result<()> {
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
                WINDOW => {
                    let window = number()?;
                    if let Some(warmth) = warmth.filter(|_| chosen.contains(&window)) {
                        tree.warm_up(&warmth.before(window)?);
                    }
                }
                _ => return Err(io::Error::other("it was changed")),
            }
            if tree.failed() {
                return Ok(());
            }
        }
    }
}
