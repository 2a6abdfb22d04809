//! A compiler's summaries of the arrays of parallel loops (Bugnion96, section 5.1).
//!
//! The same words cross three borders: the C ABI (`domicile/summary.h`), the trace (as JSON, one [`Loop`] in each
//! `Summary` event), and the call of [`hints`](super). All sizes and distances are in bytes unless stated otherwise.

use serde::{Deserialize, Serialize};

/// One parallel loop, or one other piece of work that is dealt to cpus beforehand.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loop {
    /// Its place in the source, for people: `calc1 (swim.f90:123)`.
    pub place: String,
    /// Threads that share it; thread `t` of the team runs on cpu `t`. At least 1.
    pub threads: u32,
    pub iterations: u64,
    pub schedule: Schedule,
    #[serde(default)]
    pub direction: Direction,
    /// One for each array and way of using it. Arrays of one loop are used together (group access information).
    pub summaries: Vec<Summary>,
}

/// The iterations, of `n`, that a thread has among `p` threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// As equal as can be, in one piece each: the first `n mod p` threads have one more (libomp's `static`).
    Even,
    /// ceil(n / p) each, in one piece; the last threads may have fewer or none (libgomp's old way; SUIF's).
    Blocked,
    /// Pieces of this many iterations, dealt in turn (`schedule(static, c)`). At least 1.
    Chunked(u64),
}

/// The end from which threads are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    #[default]
    Forward,
    /// The last thread has the first iterations.
    Reverse,
}

/// One loop's use of one array.
///
/// Iteration `i` touches, for each combination of the inner loops' counters `k[0] < inner[0].count ...`, the
/// `span` bytes from `start + offset + i * unit + k[0] * inner[0].stride + ...`, moved by the communication.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// The array's name, for people.
    pub name: String,
    /// Its first byte.
    pub start: u64,
    /// Its bytes. Accesses outside of them do not count. 0: not known.
    pub bytes: u64,
    #[serde(default)]
    pub offset: i64,
    /// The data partition unit with its sign: the distance from the data of one iteration to that of the next. 0: all
    /// iterations touch the same.
    pub unit: i64,
    /// Bytes in one piece. At least 1.
    pub span: u64,
    /// Inner loops, in any order; at most [`Summary::INNER`].
    #[serde(default)]
    pub inner: Vec<Inner>,
    #[serde(default)]
    pub communication: Communication,
    pub access: Access,
}

/// A loop within the parallel one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Inner {
    pub stride: i64,
    /// At least 1.
    pub count: u64,
}

/// Data of neighbours. A summary with it stands for that data alone: a thread's own part has a summary of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Communication {
    #[default]
    None,
    /// The bytes so far beyond the partition's part; nothing outside of the array.
    Shift(i64),
    /// The part of iteration `(i + distance) mod iterations`, instead of that of iteration `i`.
    Rotate(i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    Read,
    Write,
    ReadWrite,
}

/// A summary that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {why}")]
pub struct Malformed {
    pub place: String,
    pub why: String,
}

impl Summary {
    /// Inner loops that a summary can have.
    pub const INNER: usize = 3;
}

impl Loop {
    /// Most threads that a loop may have: cpus that a placement can distinguish.
    pub const THREADS: u32 = 128;

    /// Checks the values: counts are at least 1, and arrays end within the address space.
    pub fn check(&self) -> Result<(), Malformed> {
        let wrong = |why: String| {
            let place = self.place.clone();
            Err(Malformed { place, why })
        };
        if self.threads == 0 || self.threads > Loop::THREADS {
            return wrong(format!("{} threads; from 1 to {} can be", self.threads, Loop::THREADS));
        }
        if self.schedule == Schedule::Chunked(0) {
            return wrong("pieces of 0 iterations".into());
        }
        for summary in &self.summaries {
            let name = &summary.name;
            if summary.span == 0 {
                return wrong(format!("{name}: a span of 0 bytes"));
            }
            if summary.start.checked_add(summary.bytes).is_none() {
                return wrong(format!("{name}: ends beyond the last address"));
            }
            if summary.inner.len() > Summary::INNER {
                return wrong(format!(
                    "{name}: {} inner loops; {} can be",
                    summary.inner.len(),
                    Summary::INNER
                ));
            }
            if summary.inner.iter().any(|inner| inner.count == 0) {
                return wrong(format!("{name}: an inner loop of 0 iterations"));
            }
            let inner = summary.inner.iter().map(|inner| (inner.stride, inner.count));
            let far = |(stride, count): (i64, u64)| u128::from(stride.unsigned_abs()) * u128::from(count) > 1 << 61;
            if summary.span > 1 << 61 || inner.chain([(summary.unit, self.iterations)]).any(far) {
                return wrong(format!("{name}: reaches beyond the address space"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_loop() -> Loop {
        Loop {
            place: "calc1 (swim.f90:123)".into(),
            threads: 4,
            iterations: 511,
            schedule: Schedule::Even,
            direction: Direction::Forward,
            summaries: vec![Summary {
                name: "u".into(),
                start: 0x1000,
                bytes: 513 * 513 * 8,
                offset: 0,
                unit: 513 * 8,
                span: 512 * 8,
                inner: Vec::new(),
                communication: Communication::Shift(-513 * 8),
                access: Access::Read,
            }],
        }
    }

    #[test]
    fn a_loop_reads_back_as_it_was_written() {
        let text = serde_json::to_string(&a_loop()).unwrap();
        assert_eq!(serde_json::from_str::<Loop>(&text).unwrap(), a_loop());
        assert!(text.contains(r#""communication":{"shift":-4104}"#), "{text}");
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_array() {
        let mut wrong = a_loop();
        assert_eq!(wrong.check(), Ok(()));
        wrong.summaries[0].span = 0;
        assert_eq!(
            wrong.check().unwrap_err().to_string(),
            "calc1 (swim.f90:123): u: a span of 0 bytes"
        );
    }
}
