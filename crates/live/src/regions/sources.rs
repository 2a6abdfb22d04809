//! Sources that say how much memory a process uses.
//!
//! | source | a working set is |
//! |---|---|
//! | [`Referenced`] | the pages that were touched in the interval, those of program text and libraries among them |
//! | [`Damon`] | the regions that the kernel's monitor found accessed lately |
//! | [`occupancy`] | what the last cache holds of the process |

mod occupancy;

use std::time::Duration;

use sys::{Problem, Root, referenced};

use super::error::RegionsError;
use crate::homes::sources::{Lost, Source as Touches, damon};

pub trait Source: Send {
    fn name(&self) -> &'static str;
    /// Its count and the limits of that, in one sentence.
    fn limit(&self) -> &'static str;
    /// An interval begins.
    ///
    /// Errors: why the process cannot be watched.
    fn begin(&mut self, process: u32) -> Result<(), String>;
    /// The working set in bytes, of the interval that ends.
    fn look(&mut self, process: u32) -> Result<u64, String>;
    /// Ends watching a process, whether or not it is still there.
    fn end(&mut self, process: u32);
}

/// The names of all sources, the best first.
pub const NAMES: [&str; 3] = ["referenced", damon::NAME, occupancy::NAME];

/// The source that is used, and why the others are not.
pub struct Choice {
    pub source: Box<dyn Source>,
    pub others: Vec<(String, String)>,
}

/// Refuses a name that no source has.
pub fn known(asked: Option<&str>) -> Result<(), RegionsError> {
    match asked.filter(|asked| !NAMES.contains(asked)) {
        Some(asked) => Err(RegionsError::UnknownSource(asked.to_string(), NAMES.join(", "))),
        None => Ok(()),
    }
}

/// The first source that works here, or the one that is asked for.
///
/// Errors: none works; the reason of each is in the error.
pub fn choose(root: &Root, asked: Option<&str>, interval: Duration) -> Result<Choice, RegionsError> {
    known(asked)?;
    let mut others = Vec::new();
    let mut found: Option<Box<dyn Source>> = None;
    for name in NAMES {
        let why = match (asked.is_none_or(|asked| asked == name), &found) {
            (false, _) => "another one was asked for".to_string(),
            (true, found_before) => match (probe(root, name, interval), found_before) {
                (Err(why), _) => why,
                (Ok(_), Some(better)) => format!("it works, too; {} comes before it", better.name()),
                (Ok(source), None) => {
                    found = Some(source);
                    continue;
                }
            },
        };
        others.push((name.to_string(), why));
    }
    match found {
        Some(source) => Ok(Choice { source, others }),
        None => Err(RegionsError::NoSource(others)),
    }
}

fn probe(root: &Root, name: &str, interval: Duration) -> Result<Box<dyn Source>, String> {
    if name == occupancy::NAME {
        return Ok(Box::new(occupancy::probe(root)?));
    }
    if name == damon::NAME {
        let monitor = damon::probe(root, interval)?;
        return Ok(Box::new(Damon {
            monitor,
            watched: Vec::new(),
        }));
    }
    referenced::probe(root).map_err(|error| error.to_string())?;
    Ok(Box::new(Referenced { root: root.clone() }))
}

/// Accessed bits of all pages, cleared at the beginning of an interval and counted at its end.
pub struct Referenced {
    root: Root,
}

impl Source for Referenced {
    fn name(&self) -> &'static str {
        NAMES[0]
    }

    fn limit(&self) -> &'static str {
        "it counts whole pages that were touched once or more in an interval, those of program text and libraries among them; pages \
         whose translations stay in the TLB look idle"
    }

    fn begin(&mut self, process: u32) -> Result<(), String> {
        referenced::clear(&self.root, process).map_err(said)
    }

    fn look(&mut self, process: u32) -> Result<u64, String> {
        referenced::bytes(&self.root, process).map_err(said)
    }

    fn end(&mut self, _: u32) {}
}

/// The kernel's monitor of data accesses.
pub struct Damon {
    monitor: Box<dyn Touches>,
    watched: Vec<u32>,
}

impl Source for Damon {
    fn name(&self) -> &'static str {
        damon::NAME
    }

    fn limit(&self) -> &'static str {
        "it counts whole regions of which a page was found accessed; memory whose translations stay in the TLB looks idle"
    }

    fn begin(&mut self, process: u32) -> Result<(), String> {
        if self.watched.contains(&process) {
            return Ok(());
        }
        self.monitor.begin(process).map_err(|lost| lost.to_string())?;
        self.watched.push(process);
        Ok(())
    }

    fn look(&mut self, process: u32) -> Result<u64, String> {
        let touched = self.monitor.look(process).map_err(|lost: Lost| lost.to_string())?;
        Ok(touched.iter().map(|touched| touched.span.bytes as u64).sum())
    }

    fn end(&mut self, process: u32) {
        if let Some(at) = self.watched.iter().position(|&watched| watched == process) {
            self.watched.swap_remove(at);
            self.monitor.end(process);
        }
    }
}

fn said(error: sys::SysError) -> String {
    match error.problem {
        Problem::Absent => "it has ended".to_string(),
        _ => error.to_string(),
    }
}
