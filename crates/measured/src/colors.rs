//! Page colors that timing has validated: the bits of a frame's address that should choose among the sets of a cache
//! really do, for this process on this machine.
//!
//! [`colors`] is the one way in; [`color_report`] gives all that was seen. Pages whose frames' bits are known
//! ([`area`]) make up sets that agree in all candidate bits and sets that do not ([`sets`]). Each cache is tried
//! ([`investigate`]), and arithmetic evaluates the times ([`verdict`]). If the host of a guest scatters its memory, the
//! index is a hash, or the times contradict each other, there are no colors, and the report gives the reason: refusing
//! is always safe.

mod area;
mod finding;
mod investigate;
mod sets;
#[cfg(test)]
mod simulated;
mod verdict;

use serde::{Deserialize, Serialize};

use super::{Effort, saved};
use machine::{ColorSource, Colors};
use machine::{HostReport, host};
use machine::{Index, Kind};

pub use area::{Source as FrameSource, Translation};
use finding::Suspect;
pub use finding::{Bits, ColorVerdict, Finding, Step};
pub use verdict::{Effect, Times};

/// Colors that are real on this machine, as far as timing shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validated {
    /// The cache, as `L2`.
    pub cache: String,
    pub level: u8,
    /// True if several cpus share an instance of it.
    pub shared: bool,
    /// Lowest bit of the physical address that belongs to the color; at least 12.
    pub first_bit: u32,
    /// `1 << bits` colors.
    pub bits: u32,
    /// Bytes of cache that one color stands for, as measured.
    pub color_bytes: u64,
    /// The bytes of all colors together: `color_bytes << bits`.
    pub capacity_bytes: u64,
    /// Confidence in this, from 0 to 1.
    pub confidence: f64,
    /// The source of the frames' bits.
    pub frames: FrameSource,
}

impl From<Validated> for Colors {
    fn from(validated: Validated) -> Colors {
        Colors {
            first_bit: validated.first_bit,
            bits: validated.bits,
            color_bytes: validated.color_bytes,
            cache: validated.cache,
            source: ColorSource::Validated,
        }
    }
}

/// Why there are no colors to use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}")]
pub struct NotValidated {
    pub reason: String,
}

/// All that was seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColorReport {
    /// The source of the frames' bits; none if they were not known.
    pub frames: Option<FrameSource>,
    /// Bytes of memory that were looked at.
    pub bytes: u64,
    /// True if all of it was in huge pages.
    pub huge: bool,
    pub translation: Option<Translation>,
    /// True if this is a guest of a hypervisor.
    pub guest: bool,
    /// The findings about each cache, the innermost first.
    pub findings: Vec<Finding>,
    /// The colors to use ...
    pub validated: Option<Validated>,
    /// ... or why there are none.
    pub reason: Option<String>,
}

impl ColorReport {
    /// The colors to use, or why there are none.
    pub fn outcome(&self) -> Result<Validated, NotValidated> {
        self.validated.clone().ok_or_else(|| NotValidated {
            reason: self.reason.clone().unwrap_or_default(),
        })
    }
}

const NAME: &str = "colors.toml";

/// The colors of this machine: those kept since its last boot, else measured now and kept.
pub fn colors(effort: Effort) -> Result<Validated, NotValidated> {
    color_report(effort, false).outcome()
}

/// The report that was kept since the last boot and measured with at least that effort; measures nothing.
pub fn kept_colors(effort: Effort) -> Option<Result<Validated, NotValidated>> {
    let kept: ColorReport = saved::load(&saved::folder()?, NAME, &identity(), effort)?;
    Some(kept.outcome())
}

/// All that was seen when colors were last measured since the last boot, with at least that effort; else,
/// or if it is to be `fresh`, all that is seen now, which is kept.
pub fn color_report(effort: Effort, fresh: bool) -> ColorReport {
    let (folder, machine) = (saved::folder(), identity());
    let kept = folder.as_ref().filter(|_| !fresh);
    if let Some(kept) = kept.and_then(|folder| saved::load(folder, NAME, &machine, effort)) {
        return kept;
    }
    let report = look(effort);
    if let Some(folder) = folder {
        // If it cannot be kept it is measured again the next time: only time is lost.
        let _ = saved::store(&folder, NAME, &machine, effort, &report);
    }
    report
}

fn identity() -> saved::Identity {
    saved::Identity::of(&sys::Root::default())
}

/// Memory to look at, and the most of the machine's that is taken for it.
const BYTES: [(Effort, usize); 2] = [(Effort::Quick, 128 << 20), (Effort::Careful, 256 << 20)];
const PART_OF_MEMORY: u64 = 8;

/// Measures now.
fn look(effort: Effort) -> ColorReport {
    let root = sys::Root::default();
    let mut report = ColorReport {
        frames: None,
        bytes: 0,
        huge: false,
        translation: None,
        guest: sys::cpuinfo::processor(&root).is_ok_and(|processor| processor.is_guest),
        findings: Vec::new(),
        validated: None,
        reason: None,
    };
    match see(effort, &root, &mut report) {
        Ok(validated) => report.validated = Some(validated),
        Err(reason) => report.reason = Some(reason),
    }
    report
}

fn see(effort: Effort, root: &sys::Root, report: &mut ColorReport) -> Result<Validated, String> {
    let host = host(root).map_err(|error| format!("the caches of this machine are not known: {error}"))?;
    if host.machine.page_bytes != sys::memory::PAGE as u64 {
        return Err(format!("pages of {} bytes are not looked at", host.machine.page_bytes));
    }
    let suspects = suspects(&host);
    if suspects.is_empty() {
        return Err("Linux reports no cache whose sets the choice of frames could decide".into());
    }
    let wanted = BYTES
        .iter()
        .find(|(of, _)| *of == effort)
        .map_or(0, |(_, bytes)| *bytes);
    let there = sys::nodes::memory_bytes(root).map_or(wanted as u64, |bytes| bytes / PART_OF_MEMORY);
    let _pinned = sys::affinity::pin_to_last();
    let mut ground = area::Ground::take(wanted.min(there as usize))?;
    report.frames = Some(ground.source);
    report.bytes = ground.pages.len() as u64 * host.machine.page_bytes;
    report.huge = ground.huge;
    report.translation = ground.translation();
    let source = ground.source;
    let (mut clock, pages) = ground.split();
    report.findings = investigate::investigate(&suspects, pages, source.known(), effort, &mut clock);
    if !ground.stands() {
        return Err("the kernel moved pages to other frames meanwhile; try again with --fresh".into());
    }
    let whole = report.translation.and_then(Translation::whole);
    conclude(&report.findings, source, report.guest && whole == Some(false))
}

/// The caches beyond the innermost one.
fn suspects(host: &HostReport) -> Vec<Suspect> {
    let mut caches: Vec<_> = host
        .machine
        .caches
        .iter()
        .filter(|cache| cache.kind != Kind::Instruction)
        .collect();
    caches.sort_by_key(|cache| cache.level);
    caches
        .windows(2)
        .filter(|pair| {
            pair[1].index == Index::Physical && pair[1].level > pair[0].level && pair[1].bytes > pair[0].bytes
        })
        .map(|pair| Suspect {
            name: pair[1].name.clone(),
            level: pair[1].level,
            shared: pair[1].cpus_per_instance > 1,
            bytes: pair[1].bytes,
            ways: pair[1].ways,
            before: pair[0].bytes,
        })
        .collect()
}

/// The colors of the outermost cache that has some; else all reasons together.
fn conclude(findings: &[Finding], frames: FrameSource, scattered: bool) -> Result<Validated, String> {
    let best = findings.iter().rev().find_map(|finding| match finding.verdict {
        ColorVerdict::Colors {
            first_bit,
            bits,
            pages,
            confidence,
        } => Some(Validated {
            cache: finding.cache.clone(),
            level: finding.level,
            shared: finding.shared,
            first_bit,
            bits,
            color_bytes: (pages * sys::memory::PAGE) as u64,
            capacity_bytes: ((pages * sys::memory::PAGE) as u64) << bits,
            confidence,
            frames,
        }),
        ColorVerdict::Nothing { .. } | ColorVerdict::Unclear { .. } => None,
    });
    if let Some(best) = best {
        return Ok(best);
    }
    let doubt = findings
        .iter()
        .any(|finding| matches!(finding.verdict, ColorVerdict::Unclear { .. }));
    let mut reason = String::from(if doubt {
        "no colors could be validated here"
    } else {
        "page colors do nothing here"
    });
    for (finding, between) in findings
        .iter()
        .zip(std::iter::once(": ").chain(std::iter::repeat("; ")))
    {
        if let ColorVerdict::Nothing { reason: why, .. } | ColorVerdict::Unclear { reason: why } = &finding.verdict {
            reason += &format!("{between}{}: {why}", finding.cache);
        }
    }
    if scattered {
        reason += "; this is a guest, and its huge pages are translated as slowly as small ones: its host keeps them in small \
                   pieces, wherever it likes, so that the frames that Linux reports are not those that the caches see";
    }
    Err(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(cache: &str, level: u8, verdict: ColorVerdict) -> Finding {
        Finding {
            cache: cache.into(),
            level,
            shared: level == 3,
            first_bit: 12,
            bits: 4,
            times: None,
            steps: Vec::new(),
            tests: Vec::new(),
            verdict,
        }
    }

    fn colored(pages: usize) -> ColorVerdict {
        ColorVerdict::Colors {
            first_bit: 12,
            bits: 4,
            pages,
            confidence: 0.999,
        }
    }

    fn nothing() -> ColorVerdict {
        ColorVerdict::Nothing {
            reason: "a hash".into(),
            confidence: 0.99,
        }
    }

    #[test]
    fn the_outermost_cache_with_colors_counts() {
        let of = |findings: &[Finding]| conclude(findings, FrameSource::HugePages, false).map(|best| best.cache);
        let (inner, outer) = (finding("L2", 2, colored(16)), finding("L3", 3, colored(12)));
        assert_eq!(of(&[inner.clone(), outer]).as_deref(), Ok("L3"));
        assert_eq!(of(&[inner.clone(), finding("L3", 3, nothing())]).as_deref(), Ok("L2"));
        let best = conclude(&[inner], FrameSource::Pagemap, false).unwrap();
        assert_eq!(
            (best.color_bytes, best.capacity_bytes, best.frames),
            (64 << 10, 1 << 20, FrameSource::Pagemap)
        );
    }

    #[test]
    fn without_colors_all_reasons_are_given() {
        let findings = [finding("L2", 2, nothing()), finding("L3", 3, nothing())];
        let reason = conclude(&findings, FrameSource::Pagemap, true).unwrap_err();
        assert!(
            reason.starts_with("page colors do nothing here: L2: a hash; L3: a hash; this is a guest"),
            "{reason}"
        );
        let noisy = ColorVerdict::Unclear { reason: "busy".into() };
        let reason = conclude(&[finding("L2", 2, noisy)], FrameSource::Pagemap, false).unwrap_err();
        assert_eq!(reason, "no colors could be validated here: L2: busy");
    }
}
