//! Missed pairs, predicted once more with one figure of the machine changed: which figure a miss hangs on.
//!
//! An experiment finds a figure that would close the gap; it does not show that the figure was wrong. If several
//! figures close a miss, their common part matters; if none does, the model lacks the cause.

use machine::{Cache, Core, Kind, Machine};
use results::{TruthExperiment, TruthMeasured, TruthPair, TruthPredicted};

use crate::ratio::off;

/// A figure of the machine, changed. It does nothing where the machine does not have the figure.
pub struct Change {
    pub says: &'static str,
    apply: fn(&mut Machine),
}

/// Figures are changed by as much as they are found to differ from hour to hour on shared machines, or left out.
pub const CHANGES: [Change; 17] = [
    change("half of the last level", |machine| last_level(machine, 0.5)),
    change("twice the last level", |machine| last_level(machine, 2.0)),
    change("half as much that others bring", |machine| others(machine, 0.5)),
    change("twice as much that others bring", |machine| others(machine, 2.0)),
    change("a last level that answers in half the time", |machine| {
        outermost(machine, |cache| cache.hit_ns /= 2.0);
    }),
    change("memory 1.4 times as slow", |machine| memory(machine, 1.4)),
    change("memory 1.4 times as fast", |machine| memory(machine, 1.0 / 1.4)),
    change("page walks twice as long", |machine| walks(machine, 2.0)),
    change("page walks half as long", |machine| walks(machine, 0.5)),
    change("half of the TLB", |machine| translations(machine, 0.5)),
    change("twice the TLB", |machine| translations(machine, 2.0)),
    change("half of the lines on their way at once", |machine| {
        core(machine, |core| core.outstanding = (core.outstanding / 2).max(1));
    }),
    change("twice the lines on their way at once", |machine| {
        core(machine, |core| core.outstanding *= 2);
    }),
    change("1.4 times as many instructions a clock", |machine| {
        core(machine, |core| core.instructions_per_clock *= 1.4);
    }),
    change("1.4 times fewer instructions a clock", |machine| {
        core(machine, |core| core.instructions_per_clock /= 1.4);
    }),
    change("all branches foretold rightly", |machine| {
        core(machine, |core| core.misprediction_ns = 0.0);
    }),
    change("no prefetchers", |machine| {
        machine.caches.iter_mut().for_each(|cache| cache.prefetch = None);
    }),
];

const fn change(says: &'static str, apply: fn(&mut Machine)) -> Change {
    Change { says, apply }
}

impl Change {
    /// The machine with this change. `None`: it does not have the figure, or would be none.
    pub fn of(&self, machine: &Machine) -> Option<Machine> {
        let mut changed = machine.clone();
        (self.apply)(&mut changed);
        (changed != *machine && changed.check().is_ok()).then_some(changed)
    }
}

fn outermost(machine: &mut Machine, change: impl FnOnce(&mut Cache)) {
    let data = machine
        .caches
        .iter_mut()
        .filter(|cache| cache.kind != Kind::Instruction);
    if let Some(last) = data.max_by_key(|cache| cache.level) {
        change(last);
    }
}

/// Less of a cache is fewer ways.
fn last_level(machine: &mut Machine, times: f64) {
    outermost(machine, |cache| {
        let way_bytes = cache.bytes / u64::from(cache.ways.max(1));
        cache.ways = ((f64::from(cache.ways) * times) as u32).max(1);
        cache.bytes = way_bytes * u64::from(cache.ways);
    });
}

fn others(machine: &mut Machine, times: f64) {
    outermost(machine, |cache| cache.others_gbps *= times);
}

fn memory(machine: &mut Machine, times: f64) {
    let memory = &mut machine.memory;
    for ns in [&mut memory.local_ns, &mut memory.remote_ns, &mut memory.dirty_remote_ns] {
        *ns *= times;
    }
    core(machine, |core| {
        core.memory_line_ns *= times;
        core.huge_memory_line_ns *= times;
    });
}

fn walks(machine: &mut Machine, times: f64) {
    if let Some(tlb) = &mut machine.tlb {
        tlb.refill_ns *= times;
        tlb.huge_refill_ns = tlb.huge_refill_ns.map(|ns| ns * times);
        tlb.far.iter_mut().for_each(|far| far.refill_ns *= times);
    }
}

fn translations(machine: &mut Machine, times: f64) {
    if let Some(tlb) = &mut machine.tlb {
        let whole = tlb.ways == tlb.entries;
        let sets = (tlb.entries / tlb.ways.max(1)).max(1);
        tlb.ways = ((f64::from(tlb.ways) * times) as u32).max(1);
        tlb.entries = if whole { tlb.ways } else { sets * tlb.ways };
    }
}

fn core(machine: &mut Machine, change: impl FnOnce(&mut Core)) {
    if let Some(core) = &mut machine.core {
        change(core);
    }
}

/// The experiments that bring the ratio within 20%, the one with the most likely times of both sides first.
pub fn that_close(tried: Vec<(&'static str, TruthPredicted)>, measured: &TruthMeasured) -> Vec<TruthExperiment> {
    let both = |said: &TruthPredicted| off(said.before_ns, measured.before_ns) * off(said.after_ns, measured.after_ns);
    let mut close: Vec<_> = tried
        .into_iter()
        .filter(|(_, said)| off(said.ratio, measured.ratio) <= TruthPair::NEAR)
        .collect();
    close.sort_by(|(_, one), (_, other)| both(one).total_cmp(&both(other)));
    let experiment = |(changed, said): (&str, TruthPredicted)| TruthExperiment {
        changed: changed.to_string(),
        ratio: said.ratio,
        before_ns: said.before_ns,
        after_ns: said.after_ns,
    };
    close.into_iter().map(experiment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_one_of_a_machine_that_has_the_figure() {
        let mut machine = machine::load("zen4-genoa").unwrap();
        let last = machine.caches.last().unwrap().bytes;
        let tlb = machine.tlb.clone().unwrap();
        let changed: Vec<_> = CHANGES.iter().map(|change| change.of(&machine)).collect();
        for (change, changed) in CHANGES.iter().zip(&changed) {
            // This preset knows of no branches, and of no others.
            let has = match change.says {
                "all branches foretold rightly" => machine.core.unwrap().misprediction_ns > 0.0,
                says => !says.ends_with("that others bring"),
            };
            assert_eq!(changed.is_some(), has, "{}", change.says);
        }
        let [half, twice] = [0, 1].map(|at| changed[at].as_ref().unwrap().caches.last().unwrap().bytes);
        assert_eq!((half, twice), (last / 2, last * 2));
        let halved = changed[9].clone().unwrap().tlb.unwrap();
        assert_eq!(halved.entries, tlb.entries / 2);
        machine.tlb = None;
        machine.core = None;
        assert_eq!(CHANGES.iter().filter(|change| change.of(&machine).is_some()).count(), 6);
    }

    #[test]
    fn what_closes_a_gap_is_sorted_by_both_sides() {
        let measured = TruthMeasured {
            ratio: 4.0,
            before_ns: 400.0,
            after_ns: 100.0,
            ..TruthMeasured::default()
        };
        let said = |before_ns: f64, after_ns: f64| TruthPredicted {
            ratio: before_ns / after_ns,
            before_ns,
            after_ns,
            ..TruthPredicted::default()
        };
        let tried = vec![
            ("far", said(100.0, 100.0)),
            ("both", said(800.0, 200.0)),
            ("one", said(420.0, 100.0)),
        ];
        let close: Vec<String> = that_close(tried, &measured)
            .into_iter()
            .map(|one| one.changed)
            .collect();
        assert_eq!(close, ["one", "both"]);
    }
}
