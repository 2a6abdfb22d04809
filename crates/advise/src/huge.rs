//! The loss of huge pages by page colors, simulated and weighed.
//!
//! Pages with their own color are kept out of huge pages. If the machine's system would have put a program's data there
//! ([`machine::HugeData`]), colors are compared with the run on huge pages: the same policies are simulated again, with
//! the change `huge-pages` for that data, which leaves the colored pages small. [`policy::slots::Weighed`] is the rule.

use machine::Machine;
use policy::slots::{Pair, Times, Weighed, on_huge_pages};
use results::{Advice, HugePagesLost, Outcome, ProgramChange, Structure, StructureKind, bytes, time};
use sim::{Config, Detail, PolicySpec, SimError};
use trace::Trace;

use crate::basis;
use crate::settings::Settings;
use crate::words::{NOTHING, saved};

/// The data that the system would put on huge pages: it has at least one whole huge page, and, as far as the trace
/// shows, no file. Empty if there is none, or if translation and page faults take no time.
pub fn data(machine: &Machine, asks: bool, structures: &[Structure]) -> Vec<ProgramChange> {
    let gives = machine.memory.huge_pages;
    let costs = machine.tlb.is_some() || machine.memory.fault_ns > 0.0;
    let huge = sim::huge_page_bytes(machine.page_bytes);
    if !costs || huge <= machine.page_bytes {
        return Vec::new();
    }
    let on_huge = |structure: &&Structure| {
        // The request goes to malloc (`glibc.malloc.hugetlb`), which does not allocate variables.
        let given = match structure.kind {
            StructureKind::Heap => gives.gives(asks),
            StructureKind::Symbol => gives.gives(false),
            _ => false,
        };
        given && on_huge_pages(structure.bytes, huge) > 0
    };
    let mut names: Vec<&String> = structures.iter().filter(on_huge).map(|of| &of.name).collect();
    names.sort();
    names.dedup();
    let change = |name: &String| ProgramChange::HugePages {
        data: Some(name.clone()),
    };
    names.into_iter().map(change).collect()
}

/// The time of each of these with that data on huge pages; `None` if there is none, or the trace does not name it.
pub fn walls(
    trace: &Trace,
    settings: &Settings,
    config: &Config,
    structures: &[Structure],
    policies: Vec<PolicySpec>,
) -> Result<Option<Vec<u64>>, SimError> {
    let changes = data(&config.machine, settings.asks_huge_pages, structures);
    if changes.is_empty() {
        return Ok(None);
    }
    let config = Config {
        changes,
        policies,
        detail: Detail::default(),
        detail_for: None,
        classes: false,
        ..config.clone()
    };
    match settings.simulate(trace, &config) {
        Ok(runs) => Ok(Some(runs.iter().map(|run| run.outcome.time_ns.wall).collect())),
        Err(SimError::Change { .. } | SimError::ChangesUnder { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The run without colors and with them, on small pages and on huge ones; `lost`: bytes of the colored data.
pub fn weighed(small: Pair, huge: Pair, lost: u64) -> HugePagesLost {
    let weighed = Weighed::of(Times { small, huge });
    HugePagesLost {
        bytes: lost,
        against_ns: huge.plain,
        wall_ns: huge.colored,
        gain_ns: weighed.gain,
        loss_ns: weighed.loss,
        refused: weighed.is_refused(),
    }
}

/// True if colors that lose huge pages still gain something.
pub fn gains(lost: &HugePagesLost) -> bool {
    !lost.refused && saved(lost.against_ns, lost.wall_ns) >= NOTHING
}

/// Both numbers.
pub fn in_words(lost: &HugePagesLost) -> String {
    let ns = |ns: i64| time(ns.max(0).unsigned_abs());
    format!(
        "fewer misses save {}, and {} of its data that leave huge pages for it cost {} by walks of the TLB and page faults",
        ns(lost.gain_ns),
        bytes(lost.bytes),
        ns(lost.loss_ns)
    )
}

/// Weighs, by name, the policies that give data its own colors (`cdpc`, described slots) if they gain something.
pub fn weigh(
    trace: &Trace,
    settings: &Settings,
    config: &Config,
    advice: &Advice,
) -> Result<Vec<(String, HugePagesLost)>, SimError> {
    let none = Ok(Vec::new());
    let Some(base) = advice.base() else { return none };
    let spec_of = |outcome: &Outcome| {
        let same = |spec: &&PolicySpec| spec.name.to_string() == outcome.policy;
        config.policies.iter().find(same).cloned()
    };
    let own = |spec: &PolicySpec| spec.name.is(|traits| traits.hints || traits.slots);
    let colored = advice.policies.iter().filter(|of| of.order == base.order);
    let colored = colored.filter(|outcome| basis::gain(base, outcome) >= NOTHING);
    let colored: Vec<(&Outcome, PolicySpec)> = colored
        .filter_map(|outcome| Some((outcome, spec_of(outcome).filter(own)?)))
        .collect();
    let structures = base.structures.as_deref().unwrap_or_default();
    let (Some(plain), false) = (spec_of(base), colored.is_empty()) else {
        return none;
    };
    let specs = std::iter::once(plain).chain(colored.iter().map(|(_, spec)| spec.clone()));
    let Some(walls) = walls(trace, settings, config, structures, specs.collect())? else {
        return none;
    };
    let Some((&plain, walls)) = walls.split_first() else {
        return none;
    };
    let weighed = colored.iter().zip(walls).map(|((outcome, _), &wall)| {
        let pages = outcome.cdpc.as_ref().map_or(0, |cdpc| cdpc.asked);
        let pages = pages + outcome.slots.as_ref().map_or(0, |slots| slots.pages);
        let lost = on_huge_pages(
            pages * config.machine.page_bytes,
            sim::huge_page_bytes(config.machine.page_bytes),
        );
        let small = Pair {
            plain: base.time_ns.wall,
            colored: outcome.time_ns.wall,
        };
        let huge = Pair { plain, colored: wall };
        (outcome.policy.clone(), self::weighed(small, huge, lost))
    });
    Ok(weighed.collect())
}

#[cfg(test)]
mod tests {
    use machine::HugeData;

    use super::*;

    #[test]
    fn large_data_without_a_file_is_on_huge_pages_where_the_system_gives_them() {
        let structure = |name: &str, kind, bytes| Structure {
            name: name.to_string(),
            kind,
            bytes,
            ..Structure::default()
        };
        let structures = [
            structure("heap: make (a.c:3)", StructureKind::Heap, 64 << 20),
            structure("grid", StructureKind::Symbol, 2 << 20),
            structure("small", StructureKind::Symbol, (2 << 20) - 1),
            structure("stack of thread 0", StructureKind::Stack, 8 << 20),
        ];
        let mut machine = machine::load("simos-r4400").unwrap();
        assert!(machine.tlb.is_some());
        let names = |machine: &Machine, asks| {
            let changes = data(machine, asks, &structures);
            changes
                .iter()
                .filter_map(ProgramChange::data)
                .map(str::to_string)
                .collect::<Vec<_>>()
        };
        assert!(names(&machine, true).is_empty(), "a machine that does not say has none");
        machine.memory.huge_pages = HugeData::Madvise;
        assert!(names(&machine, false).is_empty());
        assert_eq!(names(&machine, true), ["heap: make (a.c:3)"]);
        machine.memory.huge_pages = HugeData::Always;
        assert_eq!(names(&machine, false), ["grid", "heap: make (a.c:3)"]);
        machine.tlb = None;
        assert!(names(&machine, false).is_empty(), "nothing is lost there");
    }
}
