//! The plain text format that people and scripts write.
//!
//! ```text
//! # thread, operation, hexadecimal address, bytes
//! 1 r 7f0010 8
//! 2 w 0x7f0018 4
//! b 2
//! 1 i 401000 4
//! 1 begin 7f0010 7f2010
//! 1 r 7f0010 8
//! 1 end
//! ```
//!
//! Operations are `r`ead, `w`rite, `m`odify (both, by one instruction), `i`nstruction fetch and `p`refetch
//! (a hint by the program that it will use this address soon).
//! Threads are numbers of any kind; they become threads in order of their first appearance.
//!
//! `<thread> begin <hint>...` begins a work item of that thread, with its hints (hexadecimal numbers:
//! addresses or coordinates, as many as there are), and `<thread> end` ends it. Work items do not nest.
//!
//! `b <n>` is a barrier at which n threads meet at this point of the file. If n is the number of threads in the file,
//! all of them take part, even those that make their first reference only later: for them the barrier comes before it.
//! With fewer than have appeared so far, the n threads that made references last take part. A barrier for more threads
//! than the file ever has is an error.

use std::collections::HashMap;

use super::lines::{Lines, decimal, field, hexadecimal, shown};
use super::packed::Input;
use crate::error::{Place, TraceError};
use crate::limits;
use crate::model::{Event, Header, Op, Process, Ref, Site, Thread, ThreadId};
use crate::writer::Writer;

pub fn read(input: Input, process: Process, header: &mut Header, writer: &mut Writer) -> Result<(), TraceError> {
    let process = writer.process(process);
    let mut lines = Lines::new("text", input);
    let mut import = Import {
        process,
        threads: HashMap::new(),
        last: Vec::new(),
        now: None,
        waiting: Vec::new(),
        barriers: 0,
    };
    let mut count = 0u64;
    while let Some(line) = lines.next()? {
        let line = match memchr::memchr(b'#', line) {
            Some(comment) => &line[..comment],
            None => line,
        };
        let parsed = match parse(line) {
            Ok(Some(parsed)) => parsed,
            Ok(None) => continue,
            Err(what) => return Err(lines.error(what)),
        };
        match parsed {
            Line::Work { number, event } => {
                let thread = import
                    .thread(number, writer)
                    .map_err(|e| e.unwrap_or_else(|| too_many(&lines)))?;
                writer.event(thread, event)?;
            }
            Line::Reference { number, op, addr, size } => {
                let thread = match import.now {
                    Some((known, thread)) if known == number => thread,
                    _ => import
                        .thread(number, writer)
                        .map_err(|e| e.unwrap_or_else(|| too_many(&lines)))?,
                };
                count += 1;
                import.last[thread as usize] = count;
                header.has_fetches |= op == Op::Fetch;
                let site = writer.site(Site { pc: 0, op, size });
                writer.push(
                    thread,
                    Ref {
                        addr,
                        site,
                        insns: 0,
                        op,
                        size,
                    },
                )?;
            }
            Line::Barrier(threads) => import.barrier(threads, lines.place(), writer)?,
        }
    }
    match import.waiting.iter().find(|b| b.missing > 0) {
        Some(b) => Err(TraceError::Import {
            format: "text",
            at: b.place,
            what: format!(
                "a barrier of {} threads, but the file has only {}",
                b.threads,
                import.last.len()
            ),
        }),
        None => Ok(()),
    }
}

fn too_many(lines: &Lines<Input>) -> TraceError {
    lines.error(format!("more than {} threads", limits::THREADS))
}

enum Line {
    Reference { number: u64, op: Op, addr: u64, size: u16 },
    Barrier(u32),
    Work { number: u64, event: Event },
}

/// One line; `None` for an empty one. The error describes the fault in it.
fn parse(line: &[u8]) -> Result<Option<Line>, String> {
    let mut rest = line;
    let first = field(&mut rest);
    if first.is_empty() {
        return Ok(None);
    }
    let parsed = if first == b"b" {
        let threads = field(&mut rest);
        let count = decimal(threads).and_then(|n| u32::try_from(n).ok()).filter(|&n| n > 0);
        Line::Barrier(count.ok_or_else(|| format!("`b` wants a number of threads from 1 on, not {}", shown(threads)))?)
    } else {
        let number = decimal(first).ok_or_else(|| format!("a thread number or `b` is wanted, not {}", shown(first)))?;
        let name = field(&mut rest);
        let op = match name {
            b"r" => Op::Read,
            b"w" => Op::Write,
            b"m" => Op::Modify,
            b"i" => Op::Fetch,
            b"p" => Op::Prefetch,
            b"begin" => {
                let event = Event::WorkBegin {
                    hints: hints(&mut rest)?,
                };
                return Ok(Some(Line::Work { number, event }));
            }
            b"end" => {
                let event = Event::WorkEnd;
                return nothing_more(&mut rest).map(|()| Some(Line::Work { number, event }));
            }
            _ => {
                return Err(format!(
                    "the operation must be r, w, m, i or p, or begin or end, not {}",
                    shown(name)
                ));
            }
        };
        let place = field(&mut rest);
        let addr = hexadecimal(place).ok_or_else(|| {
            format!(
                "the address must be hexadecimal, of up to 64 bits, not {}",
                shown(place)
            )
        })?;
        let bytes = field(&mut rest);
        let size = decimal(bytes).and_then(|n| u16::try_from(n).ok()).filter(|&n| n > 0);
        let size = size.ok_or_else(|| format!("the number of bytes must be from 1 to 65535, not {}", shown(bytes)))?;
        Line::Reference { number, op, addr, size }
    };
    nothing_more(&mut rest).map(|()| Some(parsed))
}

fn nothing_more(rest: &mut &[u8]) -> Result<(), String> {
    match field(rest) {
        b"" => Ok(()),
        more => Err(format!("{} is too much: the line should end here", shown(more))),
    }
}

/// The hints of a work item, up to the end of the line.
fn hints(rest: &mut &[u8]) -> Result<Vec<u64>, String> {
    let mut hints = Vec::new();
    loop {
        let text = field(rest);
        if text.is_empty() {
            return Ok(hints);
        }
        if hints.len() == limits::HINTS {
            return Err(format!("more than {} hints", limits::HINTS));
        }
        hints.push(
            hexadecimal(text)
                .ok_or_else(|| format!("a hint must be hexadecimal, of up to 64 bits, not {}", shown(text)))?,
        );
    }
}

struct Import {
    process: u32,
    threads: HashMap<u64, ThreadId>,
    /// For each thread, which reference of the file was its last; 0 for none.
    last: Vec<u64>,
    /// The thread of the previous line.
    now: Option<(u64, ThreadId)>,
    /// Barriers that threads yet to come may take part in, oldest first.
    waiting: Vec<Barrier>,
    barriers: u64,
}

struct Barrier {
    object: u64,
    threads: u32,
    /// Threads that have not appeared yet.
    missing: u32,
    place: Place,
}

impl Import {
    /// The thread of that number. `Err(None)`: there are too many.
    fn thread(&mut self, number: u64, writer: &mut Writer) -> Result<ThreadId, Option<TraceError>> {
        if let Some(&thread) = self.threads.get(&number) {
            self.now = Some((number, thread));
            return Ok(thread);
        }
        if self.last.len() >= limits::THREADS {
            return Err(None);
        }
        let thread = writer.thread(Thread {
            process: self.process,
            number,
            ..Thread::default()
        });
        self.threads.insert(number, thread);
        self.last.push(0);
        self.now = Some((number, thread));
        for barrier in self.waiting.iter_mut() {
            barrier.missing -= 1;
            writer.event(
                thread,
                Event::Barrier {
                    object: barrier.object,
                    threads: barrier.threads,
                },
            )?;
        }
        self.waiting.retain(|b| b.missing > 0);
        Ok(thread)
    }

    fn barrier(&mut self, threads: u32, place: Place, writer: &mut Writer) -> Result<(), TraceError> {
        self.barriers += 1;
        let object = self.barriers;
        let known = self.last.len() as u32;
        let mut members: Vec<ThreadId> = (0..known).collect();
        if threads < known {
            members.sort_unstable_by_key(|&t| std::cmp::Reverse(self.last[t as usize]));
            members.truncate(threads as usize);
            members.sort_unstable();
        }
        for thread in members {
            writer.event(thread, Event::Barrier { object, threads })?;
        }
        if threads > known {
            if self.waiting.len() == WAITING {
                let what = format!("over {WAITING} barriers wait for threads that have not appeared yet");
                return Err(TraceError::Import {
                    format: "text",
                    at: place,
                    what,
                });
            }
            self.waiting.push(Barrier {
                object,
                threads,
                missing: threads - known,
                place,
            });
        }
        Ok(())
    }
}

/// Barriers that may wait for threads to appear.
const WAITING: usize = 1 << 16;
