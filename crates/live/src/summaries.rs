//! A program's description of its parallel loops, as it comes over the C ABI: `domicile/summary.h`, copied and checked.
//!
//! Two libraries take the same call: `libdomicile`, which the program is linked with, and the run-time of `domicile
//! run`. [`taken`] is the one way in. For any pointers that the header allows, its answer is a [`Loop`] or a reason,
//! never a crash.

mod abi;
mod extent;
mod team;

use std::ffi::c_char;

use policy::cdpc::{Access, Communication, Direction, Inner, Loop, Malformed, Schedule, Summary};

pub use abi::{VERSION, domicile_inner, domicile_loop, domicile_summary};
pub use team::{has_openmp, threads};

/// Summaries that one loop may have.
pub const MOST_SUMMARIES: u32 = 4096;

/// Bytes of a name or place that are kept.
const LONGEST_TEXT: usize = 200;

/// A loop, and the summaries of it that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The usable part of the loop, as the program describes it.
    pub described: Loop,
    /// Summaries that are not among those of `described`, and why not.
    pub passed_over: Vec<Malformed>,
}

/// Copies a program's description of a parallel loop.
///
/// `threads = 0` becomes the result of [`threads`], `bytes = 0` the bytes that the summary reaches within the mapping.
/// An impossible summary is skipped, and so is one whose array is null, as for an array that was never allocated.
///
/// Errors: a loop of which nothing can be used, with the reason.
///
/// # Safety
/// `from` is null or points to an integer, and if that is [`VERSION`], to a `domicile_loop` whose `summaries` points to
/// `count` of them and whose texts are null or end in a zero.
pub unsafe fn taken(from: *const domicile_loop) -> Result<Taken, Malformed> {
    let refuse = |place: &str, why: String| {
        let place = place.to_string();
        Err(Malformed { place, why })
    };
    const UNNAMED: &str = "a parallel loop";
    if from.is_null() {
        return refuse(UNNAMED, "a null pointer".to_string());
    }
    if !from.is_aligned() {
        return refuse(UNNAMED, format!("{from:p} is not the address of a domicile_loop"));
    }
    // SAFETY: the caller's promise of an integer; it is aligned for one.
    let version = unsafe { from.cast::<u32>().read() };
    if version != VERSION {
        return refuse(UNNAMED, format!("version {version}; this library knows {VERSION}"));
    }
    // SAFETY: the caller's promise for this version.
    let from = unsafe { &*from };
    // SAFETY: the caller's promise.
    let place = unsafe { text(from.place) }.unwrap_or_else(|| UNNAMED.to_string());
    if from.count > MOST_SUMMARIES {
        let why = format!("{} summaries; {MOST_SUMMARIES} can be", from.count);
        return refuse(&place, why);
    }
    if from.count == 0 {
        return refuse(&place, "no summaries".to_string());
    }
    if from.summaries.is_null() || !from.summaries.is_aligned() {
        return refuse(&place, format!("{:p} is not the address of summaries", from.summaries));
    }
    if from.reserved != 0 {
        return refuse(&place, format!("the reserved field is {}, not 0", from.reserved));
    }
    let schedule = match from.schedule {
        abi::EVEN => Schedule::Even,
        abi::BLOCKED => Schedule::Blocked,
        abi::CHUNKED => Schedule::Chunked(from.chunk),
        other => return refuse(&place, format!("{other} is no schedule")),
    };
    let direction = match from.reverse {
        0 => Direction::Forward,
        1 => Direction::Reverse,
        other => return refuse(&place, format!("reverse is {other}, neither 0 nor 1")),
    };
    let mut described = Loop {
        place,
        threads: if from.threads == 0 { threads() } else { from.threads },
        iterations: from.iterations,
        schedule,
        direction,
        summaries: Vec::new(),
    };
    let mut passed_over = Vec::new();
    // SAFETY: the caller's promise; the count is small.
    for summary in unsafe { std::slice::from_raw_parts(from.summaries, from.count as usize) } {
        // SAFETY: the caller's promise.
        match unsafe { one(summary, from.iterations) } {
            Ok(summary) => described.summaries.push(summary),
            Err(why) => passed_over.push(Malformed {
                place: described.place.clone(),
                why,
            }),
        }
    }
    if let Some(first) = passed_over.first()
        && described.summaries.is_empty()
    {
        return Err(first.clone());
    }
    described.check()?;
    Ok(Taken { described, passed_over })
}

/// The number of a loop's summaries that [`taken`] would copy; 0 if it would refuse.
///
/// # Safety
/// As for [`taken`].
pub unsafe fn count(from: *const domicile_loop) -> u32 {
    // SAFETY: the caller's promise of an integer, where it is aligned for one.
    if from.is_null() || !from.is_aligned() || unsafe { from.cast::<u32>().read() } != VERSION {
        return 0;
    }
    // SAFETY: the caller's promise for this version.
    let count = unsafe { (*from).count };
    if count > MOST_SUMMARIES { 0 } else { count }
}

/// # Safety
/// The name is null or ends in a zero.
unsafe fn one(from: &domicile_summary, iterations: u64) -> Result<Summary, String> {
    // SAFETY: the caller's promise.
    let name = unsafe { text(from.name) }.unwrap_or_else(|| "an array without a name".to_string());
    let start = from.start.addr() as u64;
    if start == 0 {
        return Err(format!("{name}: is at no address"));
    }
    if from.span == 0 {
        return Err(format!("{name}: a span of 0 bytes"));
    }
    let communication = match from.communication {
        abi::NO_COMMUNICATION => Communication::None,
        abi::SHIFT => Communication::Shift(from.distance),
        abi::ROTATE => Communication::Rotate(from.distance),
        other => return Err(format!("{name}: {other} is no kind of communication")),
    };
    let access = match from.access {
        abi::READS => Access::Read,
        abi::WRITES => Access::Write,
        both if both == abi::READS | abi::WRITES => Access::ReadWrite,
        other => return Err(format!("{name}: access is {other}; 1 reads, 2 writes, 3 does both")),
    };
    let inner = from.inner.iter().filter(|inner| inner.count > 0);
    let mut summary = Summary {
        name,
        start,
        bytes: from.bytes,
        offset: from.offset,
        unit: from.unit,
        span: from.span,
        inner: inner
            .map(|inner| Inner {
                stride: inner.stride,
                count: inner.count,
            })
            .collect(),
        communication,
        access,
    };
    if summary.bytes == 0 {
        summary.bytes = extent::bytes(&summary, iterations);
    }
    match start.checked_add(summary.bytes) {
        Some(_) => Ok(summary),
        None => Err(format!("{}: ends beyond the last address", summary.name)),
    }
}

/// A text, as long as it is kept; `None` for null.
///
/// # Safety
/// It is null or ends in a zero.
unsafe fn text(from: *const c_char) -> Option<String> {
    if from.is_null() {
        return None;
    }
    let mut bytes = Vec::new();
    while bytes.len() < LONGEST_TEXT {
        // SAFETY: nothing before this byte was the zero that it ends in.
        let byte = unsafe { from.cast::<u8>().add(bytes.len()).read() };
        if byte == 0 {
            break;
        }
        bytes.push(byte);
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;
