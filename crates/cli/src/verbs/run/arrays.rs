//! The fate of the arrays of parallel loops, for people; and how this machine's on-chip cache requires blocks to lie.

use live::protocol::{Alignment, CdpcReport, Chosen, Padded, Report, State, When};
use policy::cdpc::Choice;

use super::outcome::time;

/// The most reasons that are reported.
const MOST_LINES: usize = 8;
/// The most arrays of a set that are named.
const MOST_NAMES: usize = 4;

/// Lines and ways of the first data cache, as the kernel reports them; otherwise those of most processors.
pub fn on_chip() -> Alignment {
    let caches = sys::caches::caches(&sys::Root::default(), 0).unwrap_or_default();
    let first = caches
        .iter()
        .find(|cache| cache.level == 1 && cache.kind != "Instruction");
    let known = first.and_then(|cache| {
        let way = cache.bytes? / u64::from(cache.ways?);
        Alignment::new(cache.line_bytes? as usize, way as usize)
    });
    known.unwrap_or_default()
}

pub fn report(report: &Report, cdpc: &CdpcReport) -> Vec<String> {
    if cdpc.loops == 0 {
        let padded = cdpc.padded.iter().filter(|padded| padded.blocks > 0);
        return std::iter::once(silent(cdpc.refused))
            .chain(padded.map(self::padded))
            .collect();
    }
    let mut lines = vec![format!(
        "{}: {} in {} by up to {}; {} have a preferred color",
        cdpc.policy,
        count(cdpc.arrays, "array"),
        count(cdpc.loops, "parallel loop"),
        count(cdpc.threads, "thread"),
        count(cdpc.pages, "page"),
    )];
    if report.state == State::Ended {
        lines.push(looked(cdpc));
    }
    lines.push(format!(
        "  {}; from {} to {} a color",
        report.colors,
        report::count(cdpc.fewest),
        count(cdpc.most, "page")
    ));
    lines.extend(cdpc.weighed.iter().take(MOST_LINES).map(chosen));
    lines.push(format!("  at start {}", when(&cdpc.start, report.start_us)));
    if cdpc.later.times > 0 {
        lines.push(format!("  at later loops {}", when(&cdpc.later, cdpc.later.us)));
    }
    let supplied = cdpc.start.supplied + cdpc.later.supplied;
    if supplied > 0 {
        lines.push(format!("  {} came from the daemon", count(supplied, "frame")));
    }
    for left in cdpc.left_out.iter().take(MOST_LINES) {
        lines.push(format!("  {} left out: {}", count(left.pages, "page"), left.why));
    }
    if cdpc.refused > 0 {
        lines.push(format!("  {} could not be used", count(cdpc.refused, "loop")));
    }
    lines.extend(cdpc.padded.iter().map(padded));
    lines.extend(report.means.lines().map(|line| format!("  {line}")));
    lines
}

/// The colors of a set's arrays, and the reason.
fn chosen(set: &Chosen) -> String {
    let mut names = set
        .arrays
        .iter()
        .take(MOST_NAMES)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    let more = set.arrays_in_all.saturating_sub(MOST_NAMES as u64);
    if more > 0 {
        names += &format!(" and {}", count(more, "more array"));
    }
    let blocks = |policy: &str| {
        set.brought
            .iter()
            .find(|brought| brought.policy == policy)
            .map(|brought| brought.blocks)
    };
    let own = blocks(&set.policy).unwrap_or(0);
    let others = set.brought.iter().filter(|brought| brought.policy != set.policy);
    let others: Vec<String> = others
        .map(|brought| format!("{} under {}", report::count(brought.blocks), brought.policy))
        .collect();
    let hints = Choice::Directed.policy();
    let why = match blocks(hints) {
        _ if set.policy == hints => "",
        Some(directed) if directed == own => ": hints would gain nothing",
        Some(directed) if directed < own => ": one choice for all sets is better",
        _ => ": better than by hints",
    };
    format!(
        "  {} for {names} ({}){why}; {} of memory predicted for a pass through the loops, {}",
        set.policy,
        count(set.pages, "page"),
        count(own, "block"),
        others.join(", ")
    )
}

/// The message for a program without any known loop, of which this many could not be used.
pub fn silent(refused: u64) -> String {
    match refused {
        0 => {
            "the program says nothing of parallel loops; it ran unchanged. Build it with domicile-cc, domicile-c++ or \
              domicile-fc (and -fopenmp), or declare the loops by hand: domicile_parallel_loop(3)"
                .to_string()
        }
        refused => format!(
            "none of the {} that the program described can be used; it ran unchanged",
            count(refused, "loop")
        ),
    }
}

fn looked(cdpc: &CdpcReport) -> String {
    let seen = cdpc.honoured + cdpc.elsewhere;
    let mut parts = if seen > 0 {
        let all = report::count(cdpc.pages);
        vec![format!(
            "  {} of {all} honoured at the end",
            report::count(cdpc.honoured)
        )]
    } else {
        vec!["  at the end".to_string()]
    };
    for (pages, what) in [
        (cdpc.elsewhere, "in frames of other colors"),
        (cdpc.absent, "without a frame"),
        (
            cdpc.unknown,
            "unknown (only a privileged process, or the daemon, sees colors)",
        ),
        (cdpc.out_of_sight, "where nothing is mapped (any more)"),
    ] {
        if pages > 0 {
            parts.push(format!("{} {what}", report::count(pages)));
        }
    }
    parts.join(", ")
}

fn when(when: &When, us: u64) -> String {
    let times = match when.times {
        0 => return format!("nothing, in {}", time(us)),
        1 => String::new(),
        times => format!(", {times} times"),
    };
    format!(
        "{}{times} in {}: {} had their color, {} got it",
        count(when.pages, "page"),
        time(us),
        report::count(when.kept),
        report::count(when.colored)
    )
}

fn padded(padded: &Padded) -> String {
    if let Some(why) = &padded.off {
        return format!("  blocks of the heap are not aligned: {why}");
    }
    let mut line = format!(
        "  {} of the heap of {} or more on lines of {} bytes, apart within {}",
        count(padded.blocks, "block"),
        report::bytes(padded.at_least),
        padded.line,
        report::bytes(padded.way)
    );
    if padded.refused > 0 {
        line += &format!("; {} more where the C library put them", report::count(padded.refused));
    }
    line
}

pub fn count(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", report::count(number))
}
