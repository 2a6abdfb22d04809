//! The messages between a client and the daemon: over a Unix socket that keeps their boundaries.
//!
//! One request, one answer, in turn. The first byte names the message. The rest are its fields in the order
//! of declaration here, little endian, without padding. Every message has a largest size, and bytes that are
//! not exactly a message are refused as a whole.
//!
//! A client of a user sees colors, never frame numbers.

mod bytes;
mod refusal;
mod status;

pub use bytes::Malformed;
use bytes::{Reader, Writer};
pub use refusal::Refusal;
pub use status::Status;

use crate::{Colors, PAGE_BYTES, Source};

/// Changes whenever a message does. Both ends must speak the same.
pub const VERSION: u16 = 2;
/// Longest message, either way.
pub const MESSAGE_BYTES: usize = 20 << 10;
/// Most pages in one [`Request::Take`].
pub const TAKE_PAGES: usize = 1024;
/// Most pages in one request about pages that have frames already.
pub const LOOK_PAGES: usize = 8192;
/// Most cpus in one request.
pub const CPUS: usize = 1024;
/// Most colors that can be spoken of.
pub const COLORS: usize = 2048;
/// Longest text of a refusal.
pub const TEXT_BYTES: usize = 400;
/// In a list of colors: not known.
pub const UNKNOWN: u16 = u16::MAX;

/// Neighbouring pages of the client, the first by its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub start: u64,
    pub count: u32,
}

/// One page that wants a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// The page, counted from the start of the request.
    pub page: u32,
    pub color: u16,
}

/// A client's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Comes first. Answered by [`Answer::Welcome`].
    Hello { version: u16 },
    /// Frees frames of these colors on `cpu`, so that the client, which runs there, gets them by faulting the
    /// pages in, in this order and at once. Ascending by color, then by page. Answered by [`Answer::Released`].
    ///
    /// Sorted by color, because another process may take a few frames first: then each page gets the frame of a later
    /// one, and most of those have the same color.
    Take { cpu: u32, start: u64, wants: Vec<Want> },
    /// Asks for the colors of the pages that were taken last, or that hold frames that were. Answered by
    /// [`Answer::Colors`].
    Look { run: Run },
    /// The frames of these pages are about to be freed. Answered by [`Answer::Count`]: so many are ours.
    Leave { run: Run },
    /// The pages of the last [`Request::Leave`] have just been freed, on `cpu`. Answered by [`Answer::Count`]: the
    /// number of frames that no longer count against the quota.
    Left { cpu: u32 },
    /// These pages hold frames taken from a daemon that is gone. Answered by [`Answer::Count`]: so many count.
    Adopt { run: Run },
    /// Frames at hand by color. Answered by [`Answer::Stock`].
    Stock,
    /// The unclaimed cache of these cpus; no cpus means all. Answered by [`Answer::Free`].
    Available { cpus: Vec<u32> },
    /// A slot of so many bytes. Answered by [`Answer::Slot`].
    Slot { bytes: u64, private: bool },
    /// Colors for a data set used on these cpus, in a slot or with as little cache as there is (`None`). Answered by
    /// [`Answer::Granted`].
    Allocate {
        slot: Option<u64>,
        bytes: u64,
        cpus: Vec<u32>,
    },
    /// These colors were granted by a daemon that is gone. Answered by [`Answer::Granted`], or refused if another has
    /// them by now.
    Claim {
        private: bool,
        cpus: Vec<u32>,
        colors: Vec<u16>,
    },
    /// A data set is gone. Answered by [`Answer::Done`].
    Free { set: u64 },
    /// Closes a slot that has no data set. Answered by [`Answer::Done`].
    Close { slot: u64 },
    /// The daemon's state. Answered by [`Answer::Status`].
    Status,
}

/// The daemon's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Welcome {
        version: u16,
        colors: Colors,
    },
    /// The wants that were met, one entry each, in order.
    Released {
        met: Vec<bool>,
    },
    /// One entry a page: its color, or [`UNKNOWN`].
    Colors {
        of: Vec<u16>,
    },
    Count {
        pages: u32,
    },
    Stock {
        frames: Vec<u64>,
    },
    /// Bytes of cache for private slots: over all the caches asked for, and for one slot on all of them, in each.
    Free {
        bytes: u64,
        together: u64,
    },
    Slot {
        slot: u64,
    },
    /// A data set's colors, and by number the caches in which they hold. The slot is 0 if there is none.
    Granted {
        set: u64,
        slot: u64,
        colors: Vec<u16>,
        caches: Vec<u32>,
    },
    Done,
    Status(Status),
    Refused {
        why: Refusal,
        text: String,
    },
}

impl Request {
    /// For people and metrics.
    pub fn name(&self) -> &'static str {
        Request::NAMES[usize::from(self.tag() - 1)]
    }

    /// The names of all kinds of request.
    pub const NAMES: [&str; 14] = [
        "hello",
        "take",
        "look",
        "leave",
        "left",
        "adopt",
        "stock",
        "available",
        "slot",
        "allocate",
        "claim",
        "free",
        "close",
        "status",
    ];

    /// Its place among [`Request::NAMES`].
    pub fn kind(&self) -> usize {
        usize::from(self.tag() - 1)
    }

    fn tag(&self) -> u8 {
        match self {
            Request::Hello { .. } => 1,
            Request::Take { .. } => 2,
            Request::Look { .. } => 3,
            Request::Leave { .. } => 4,
            Request::Left { .. } => 5,
            Request::Adopt { .. } => 6,
            Request::Stock => 7,
            Request::Available { .. } => 8,
            Request::Slot { .. } => 9,
            Request::Allocate { .. } => 10,
            Request::Claim { .. } => 11,
            Request::Free { .. } => 12,
            Request::Close { .. } => 13,
            Request::Status => 14,
        }
    }

    /// The message. Pre: lists are no longer than the limits above.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Writer::new(self.tag());
        match self {
            Request::Hello { version } => to.u16(*version),
            Request::Take { cpu, start, wants } => {
                to.u32(*cpu);
                to.u64(*start);
                to.list(wants, |to, want| {
                    to.u32(want.page);
                    to.u16(want.color);
                });
            }
            Request::Look { run } | Request::Leave { run } | Request::Adopt { run } => put_run(&mut to, *run),
            Request::Left { cpu } => to.u32(*cpu),
            Request::Stock | Request::Status => {}
            Request::Available { cpus } => to.list(cpus, |to, cpu| to.u32(*cpu)),
            Request::Slot { bytes, private } => {
                to.u64(*bytes);
                to.bool(*private);
            }
            Request::Allocate { slot, bytes, cpus } => {
                to.bool(slot.is_some());
                to.u64(slot.unwrap_or(0));
                to.u64(*bytes);
                to.list(cpus, |to, cpu| to.u32(*cpu));
            }
            Request::Claim { private, cpus, colors } => {
                to.bool(*private);
                to.list(cpus, |to, cpu| to.u32(*cpu));
                to.list(colors, |to, color| to.u16(*color));
            }
            Request::Free { set } => to.u64(*set),
            Request::Close { slot } => to.u64(*slot),
        }
        to.done()
    }

    /// Reads a message of a client that may be hostile.
    ///
    /// Ensures: lists are within the limits above; runs are not empty, begin at a page and end within the address
    /// space; wants are ascending by color and page.
    pub fn decode(message: &[u8]) -> Result<Request, Malformed> {
        let (tag, mut from) = Reader::new(message)?;
        let request = match tag {
            1 => Request::Hello { version: from.u16()? },
            2 => {
                let (cpu, start) = (from.u32()?, address(from.u64()?)?);
                let wants = from.list(TAKE_PAGES, |from| {
                    Ok(Want {
                        page: from.u32()?,
                        color: from.u16()?,
                    })
                })?;
                let last = wants.iter().map(|want| want.page).max().ok_or(Malformed::Range)?;
                if !wants.is_sorted_by(|a, b| (a.color, a.page) < (b.color, b.page)) {
                    return Err(Malformed::Range);
                }
                address(start + u64::from(last) * PAGE_BYTES as u64)?;
                Request::Take { cpu, start, wants }
            }
            3 => Request::Look { run: run(&mut from)? },
            4 => Request::Leave { run: run(&mut from)? },
            5 => Request::Left { cpu: from.u32()? },
            6 => Request::Adopt { run: run(&mut from)? },
            7 => Request::Stock,
            8 => Request::Available {
                cpus: from.list(CPUS, Reader::u32)?,
            },
            9 => Request::Slot {
                bytes: from.u64()?,
                private: from.bool()?,
            },
            10 => {
                let (in_slot, slot) = (from.bool()?, from.u64()?);
                Request::Allocate {
                    slot: in_slot.then_some(slot),
                    bytes: from.u64()?,
                    cpus: from.list(CPUS, Reader::u32)?,
                }
            }
            11 => Request::Claim {
                private: from.bool()?,
                cpus: from.list(CPUS, Reader::u32)?,
                colors: from.list(COLORS, Reader::u16)?,
            },
            12 => Request::Free { set: from.u64()? },
            13 => Request::Close { slot: from.u64()? },
            14 => Request::Status,
            unknown => return Err(Malformed::Unknown(unknown)),
        };
        from.end()?;
        Ok(request)
    }
}

impl Answer {
    /// The message. Pre: lists are no longer than the limits above.
    pub fn encode(&self) -> Vec<u8> {
        let mut to;
        match self {
            Answer::Welcome { version, colors } => {
                to = Writer::new(1);
                to.u16(*version);
                to.u32(colors.first_bit);
                to.u32(colors.bits);
                to.u64(colors.color_bytes);
                to.bool(colors.source == Source::Validated);
                to.text(&colors.cache, TEXT_BYTES);
            }
            Answer::Released { met } => {
                to = Writer::new(2);
                to.list(met, |to, met| to.bool(*met));
            }
            Answer::Colors { of } => {
                to = Writer::new(3);
                to.list(of, |to, color| to.u16(*color));
            }
            Answer::Count { pages } => {
                to = Writer::new(4);
                to.u32(*pages);
            }
            Answer::Stock { frames } => {
                to = Writer::new(5);
                to.list(frames, |to, frames| to.u64(*frames));
            }
            Answer::Free { bytes, together } => {
                to = Writer::new(6);
                to.u64(*bytes);
                to.u64(*together);
            }
            Answer::Slot { slot } => {
                to = Writer::new(7);
                to.u64(*slot);
            }
            Answer::Granted {
                set,
                slot,
                colors,
                caches,
            } => {
                to = Writer::new(8);
                to.u64(*set);
                to.u64(*slot);
                to.list(colors, |to, color| to.u16(*color));
                to.list(caches, |to, cache| to.u32(*cache));
            }
            Answer::Status(status) => {
                to = Writer::new(9);
                to.u32(status.process);
                to.u32(status.clients);
                status.numbers().iter().for_each(|number| to.u64(*number));
            }
            Answer::Refused { why, text } => {
                to = Writer::new(10);
                to.u16(*why as u16);
                to.text(text, TEXT_BYTES);
            }
            Answer::Done => to = Writer::new(11),
        }
        to.done()
    }

    pub fn decode(message: &[u8]) -> Result<Answer, Malformed> {
        let (tag, mut from) = Reader::new(message)?;
        let answer = match tag {
            1 => Answer::Welcome {
                version: from.u16()?,
                colors: colors(&mut from)?,
            },
            2 => Answer::Released {
                met: from.list(TAKE_PAGES, Reader::bool)?,
            },
            3 => Answer::Colors {
                of: from.list(LOOK_PAGES, Reader::u16)?,
            },
            4 => Answer::Count { pages: from.u32()? },
            5 => Answer::Stock {
                frames: from.list(COLORS, Reader::u64)?,
            },
            6 => Answer::Free {
                bytes: from.u64()?,
                together: from.u64()?,
            },
            7 => Answer::Slot { slot: from.u64()? },
            8 => Answer::Granted {
                set: from.u64()?,
                slot: from.u64()?,
                colors: from.list(COLORS, Reader::u16)?,
                caches: from.list(CPUS, Reader::u32)?,
            },
            9 => {
                let (process, clients) = (from.u32()?, from.u32()?);
                let mut numbers = [0; Status::NUMBERS];
                for number in &mut numbers {
                    *number = from.u64()?;
                }
                Answer::Status(Status::new(process, clients, numbers))
            }
            10 => {
                let code = from.u16()?;
                let why = Refusal::ALL.into_iter().find(|why| *why as u16 == code);
                Answer::Refused {
                    why: why.ok_or(Malformed::Range)?,
                    text: from.text(TEXT_BYTES)?,
                }
            }
            11 => Answer::Done,
            unknown => return Err(Malformed::Unknown(unknown)),
        };
        from.end()?;
        Ok(answer)
    }
}

fn put_run(to: &mut Writer, run: Run) {
    to.u64(run.start);
    to.u32(run.count);
}

fn run(from: &mut Reader<'_>) -> Result<Run, Malformed> {
    let (start, count) = (address(from.u64()?)?, from.u32()?);
    if count == 0 || count as usize > LOOK_PAGES {
        return Err(Malformed::Range);
    }
    address(start + u64::from(count - 1) * PAGE_BYTES as u64)?;
    Ok(Run { start, count })
}

/// The address of a page, with room to count on from it.
fn address(start: u64) -> Result<u64, Malformed> {
    // Five levels of page tables reach 2^57; user space has half of that.
    let fine = start.is_multiple_of(PAGE_BYTES as u64) && start < 1 << 57;
    if fine { Ok(start) } else { Err(Malformed::Range) }
}

fn colors(from: &mut Reader<'_>) -> Result<Colors, Malformed> {
    let (first_bit, bits, color_bytes) = (from.u32()?, from.u32()?, from.u64()?);
    let validated = from.bool()?;
    let colors = Colors {
        first_bit,
        bits,
        color_bytes,
        cache: from.text(TEXT_BYTES)?,
        source: if validated { Source::Validated } else { Source::Forced },
    };
    if colors.check().is_err() || colors.count() as usize > COLORS {
        return Err(Malformed::Range);
    }
    Ok(colors)
}

#[cfg(test)]
mod tests;
