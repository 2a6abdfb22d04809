//! Events of a chunk as bytes: for each event its kind, how many references and how many numbers of the global order
//! lie between it and the previous event, and its own fields.

use crate::limits;
use crate::model::{Allocation, Event, Timed};
use crate::varint::{Cursor, put, put_signed};

/// The previous values, to which the numbers of an event are differences.
#[derive(Default)]
struct Before {
    at: u32,
    order: u64,
    /// Address or object last named: the following ones are often near it.
    addr: u64,
}

/// Appends `timed`, an event of a chunk, in order of `at` and `order`.
pub fn encode(events: &[Timed], out: &mut Vec<u8>) {
    let mut before = Before::default();
    for timed in events {
        out.push(kind(&timed.event));
        put(out, u64::from(timed.at.wrapping_sub(before.at)));
        put(out, timed.order.wrapping_sub(before.order));
        before.at = timed.at;
        before.order = timed.order;
        fields(&timed.event, &mut before, out);
    }
}

fn kind(event: &Event) -> u8 {
    match event {
        Event::Work { .. } => 0,
        Event::Alloc { .. } => 1,
        Event::Free { .. } => 2,
        Event::Barrier { .. } => 3,
        Event::Lock { .. } => 4,
        Event::Unlock { .. } => 5,
        Event::Post { .. } => 6,
        Event::Wait { .. } => 7,
        Event::Spawn { .. } => 8,
        Event::Join { .. } => 9,
        Event::Exit => 10,
        Event::Phase { .. } => 11,
        Event::WorkBegin { .. } => 12,
        Event::WorkEnd => 13,
        Event::Window { .. } => 14,
        Event::Slot { .. } => 15,
        Event::SlotFree { .. } => 16,
        Event::DataRange { .. } => 17,
        Event::DataThread { .. } => 18,
        Event::Allocate { .. } => 19,
        Event::DataFree { .. } => 20,
        Event::Summary { .. } => 21,
        Event::TeamBegin { .. } => 22,
        Event::TeamEnd { .. } => 23,
        Event::Counted { .. } => 24,
        Event::Called { .. } => 25,
    }
}

fn fields(event: &Event, before: &mut Before, out: &mut Vec<u8>) {
    let mut near = |out: &mut Vec<u8>, addr: u64| {
        put_signed(out, addr.wrapping_sub(before.addr) as i64);
        before.addr = addr;
    };
    match event {
        Event::Work { instructions } => put(out, *instructions),
        Event::Alloc {
            addr,
            bytes,
            stack,
            kind,
        } => {
            near(out, *addr);
            put(out, *bytes);
            put(out, u64::from(*stack));
            out.push(*kind as u8);
        }
        Event::Free { addr } => near(out, *addr),
        Event::Barrier { object, threads } | Event::TeamBegin { object, threads } => {
            near(out, *object);
            put(out, u64::from(*threads));
        }
        Event::Lock { object } | Event::Unlock { object } | Event::TeamEnd { object } => near(out, *object),
        Event::Post { ticket } | Event::Wait { ticket } => put(out, *ticket),
        Event::Spawn { child } | Event::Join { child } => put(out, u64::from(*child)),
        Event::Exit | Event::WorkEnd => {}
        Event::Phase { name } => {
            put(out, name.len() as u64);
            out.extend_from_slice(name.as_bytes());
        }
        Event::WorkBegin { hints } => {
            put(out, hints.len() as u64);
            for hint in hints {
                near(out, *hint);
            }
        }
        Event::Window { index } | Event::Counted { index } => put(out, u64::from(*index)),
        Event::Slot { slot, bytes, private } => {
            put(out, *slot);
            put(out, *bytes);
            out.push(u8::from(*private));
        }
        Event::SlotFree { slot } => put(out, *slot),
        Event::Called { stack } => put(out, u64::from(*stack)),
        Event::DataRange { set, addr, bytes } => {
            put(out, *set);
            near(out, *addr);
            put(out, *bytes);
        }
        Event::DataThread { set, thread } => {
            put(out, *set);
            put(out, u64::from(*thread));
        }
        Event::Allocate { set, slot } => {
            put(out, *set);
            out.push(u8::from(slot.is_some()));
            slot.iter().for_each(|slot| put(out, *slot));
        }
        Event::DataFree { set } => put(out, *set),
        Event::Summary { text } => {
            put(out, text.len() as u64);
            out.extend_from_slice(text.as_bytes());
        }
    }
}

/// Reads `count` events of a chunk of `refs` references. The error describes the fault in them.
pub fn decode(bytes: &[u8], count: usize, refs: u32, events: &mut Vec<Timed>) -> Result<(), &'static str> {
    let mut cursor = Cursor::new(bytes);
    let mut before = Before::default();
    for _ in 0..count {
        let timed = one(&mut cursor, &mut before).ok_or("an event is cut short or of no known kind")?;
        if timed.at > refs {
            return Err("an event lies beyond the references of its chunk");
        }
        events.push(timed);
    }
    if cursor.is_empty() {
        Ok(())
    } else {
        Err("bytes are left over after the events")
    }
}

fn one(cursor: &mut Cursor<'_>, before: &mut Before) -> Option<Timed> {
    let kind = cursor.byte()?;
    before.at = before.at.checked_add(cursor.narrow()?)?;
    before.order = before.order.checked_add(cursor.number()?)?;
    let (at, order) = (before.at, before.order);
    let mut near = |cursor: &mut Cursor<'_>| -> Option<u64> {
        before.addr = before.addr.wrapping_add(cursor.signed()? as u64);
        Some(before.addr)
    };
    let event = match kind {
        0 => Event::Work {
            instructions: cursor.number()?,
        },
        1 => Event::Alloc {
            addr: near(cursor)?,
            bytes: cursor.number()?,
            stack: cursor.narrow()?,
            kind: allocation(cursor.byte()?)?,
        },
        2 => Event::Free { addr: near(cursor)? },
        3 => Event::Barrier {
            object: near(cursor)?,
            threads: cursor.narrow()?,
        },
        4 => Event::Lock { object: near(cursor)? },
        5 => Event::Unlock { object: near(cursor)? },
        6 => Event::Post {
            ticket: cursor.number()?,
        },
        7 => Event::Wait {
            ticket: cursor.number()?,
        },
        8 => Event::Spawn {
            child: cursor.narrow()?,
        },
        9 => Event::Join {
            child: cursor.narrow()?,
        },
        10 => Event::Exit,
        11 => Event::Phase { name: name(cursor)? },
        12 => {
            let count = usize::try_from(cursor.number()?).ok().filter(|&n| n <= limits::HINTS)?;
            let mut hints = Vec::with_capacity(count);
            for _ in 0..count {
                hints.push(near(cursor)?);
            }
            Event::WorkBegin { hints }
        }
        13 => Event::WorkEnd,
        14 => Event::Window {
            index: cursor.narrow()?,
        },
        15 => Event::Slot {
            slot: cursor.number()?,
            bytes: cursor.number()?,
            private: truth(cursor.byte()?)?,
        },
        16 => Event::SlotFree { slot: cursor.number()? },
        17 => Event::DataRange {
            set: cursor.number()?,
            addr: near(cursor)?,
            bytes: cursor.number()?,
        },
        18 => Event::DataThread {
            set: cursor.number()?,
            thread: cursor.narrow()?,
        },
        19 => Event::Allocate {
            set: cursor.number()?,
            slot: match truth(cursor.byte()?)? {
                true => Some(cursor.number()?),
                false => None,
            },
        },
        20 => Event::DataFree { set: cursor.number()? },
        21 => Event::Summary {
            text: text(cursor, limits::SUMMARY_BYTES)?,
        },
        22 => Event::TeamBegin {
            object: near(cursor)?,
            threads: cursor.narrow()?,
        },
        23 => Event::TeamEnd { object: near(cursor)? },
        24 => Event::Counted {
            index: cursor.narrow()?,
        },
        25 => Event::Called {
            stack: cursor.narrow()?,
        },
        _ => return None,
    };
    Some(Timed { at, order, event })
}

fn allocation(byte: u8) -> Option<Allocation> {
    [Allocation::Heap, Allocation::Map, Allocation::File, Allocation::Stack]
        .into_iter()
        .find(|&k| k as u8 == byte)
}

fn truth(byte: u8) -> Option<bool> {
    match byte {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn name(cursor: &mut Cursor<'_>) -> Option<String> {
    text(cursor, limits::NAME_BYTES)
}

fn text(cursor: &mut Cursor<'_>, most: usize) -> Option<String> {
    let length = usize::try_from(cursor.number()?).ok().filter(|&n| n <= most)?;
    String::from_utf8(cursor.bytes(length)?.to_vec()).ok()
}
