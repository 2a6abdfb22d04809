//! Decisions over observations of two private caches.

use super::super::log::Counted;
use super::*;

const MIB: u64 = 1 << 20;

/// Two caches of 512 KiB, each of so many cpus.
fn domains(cpus: u32) -> Vec<Domain> {
    let domain = Domain {
        cpus,
        bytes: Some(MIB / 2),
    };
    vec![domain; 2]
}

/// A program that has one thread, which is always busy.
fn seen(process: u32, bytes: u64) -> Seen {
    Seen {
        process,
        began: 1,
        name: "memlat".to_string(),
        bytes: Some(bytes),
        busy: 1000,
        cpu_ns: 1_000_000_000,
        cpus: vec![2, 2],
        ..Seen::default()
    }
}

/// Two large working sets and two small ones.
fn four() -> Vec<Seen> {
    let sizes = [(11, MIB), (12, MIB), (13, MIB / 64), (14, MIB / 64)];
    sizes.map(|(process, bytes)| seen(process, bytes)).to_vec()
}

struct Told {
    decisions: Decisions,
    processes: Vec<Seen>,
    units: Option<f64>,
}

impl Told {
    fn new(cpus: u32, units: Option<f64>) -> Told {
        Told {
            decisions: Decisions::new(domains(cpus), None, units.is_some()),
            processes: four(),
            units,
        }
    }

    /// An interval in which so many units are done.
    fn tell(&mut self, units: f64) -> Vec<Action> {
        self.units = self.units.map(|before| before + units);
        let observed = Observed {
            at: 0,
            processes: self.processes.clone(),
            units: self.units,
        };
        self.decisions.tell(&observed).0
    }

    /// Intervals until something is done.
    fn act(&mut self, units: f64) -> Vec<Action> {
        let mut actions = std::iter::repeat_with(|| self.tell(units)).take(30);
        actions.find(|actions| !actions.is_empty()).unwrap_or_default()
    }

    fn why(&self, process: u32) -> Option<String> {
        self.decisions.paired(process).unwrap().why
    }
}

#[test]
fn a_change_that_lost_is_not_tried_again_although_a_process_was_left_alone_meanwhile() {
    let mut told = Told::new(2, Some(0.0));
    assert_eq!(told.act(100.0).len(), 4);
    told.processes[3].left = Some("its owner has pinned it".to_string());
    told.tell(90.0);
    told.processes[3].left = None;
    for _ in 0..60 {
        told.tell(90.0);
    }
    let trials = told.decisions.trials();
    assert_eq!((trials.len(), trials[0].undone), (1, true));
    assert_eq!(told.why(11).as_deref(), Some(LOST));
}

#[test]
fn who_gives_up_its_place_says_its_own_reason() {
    let cases = [
        // More busy threads than a domain has cpus, than one of them leaves it, and a cpuset of one domain.
        (3000, [2, 2], "it keeps more cpus busy than it may use in one domain"),
        (2000, [1, 2], "one domain only has cpus for all of its busy threads"),
        (1000, [0, 2], "it may use the cpus of one domain only"),
    ];
    for (busy, cpus, why) in cases {
        let mut told = Told::new(2, None);
        let actions = told.act(0.0);
        assert!(actions.iter().all(|action| action.why == Why::Fullest.in_words()));
        for _ in 0..10 {
            told.tell(0.0);
        }
        told.processes[2].busy = busy;
        told.processes[2].cpus = cpus.to_vec();
        let actions = told.act(0.0);
        let mut released = actions.into_iter().filter(|action| action.domains.is_none());
        let action = released.next().unwrap();
        assert_eq!((action.process, released.next()), (13, None));
        assert_eq!(action.why, why);
        // In the third case another process gets its cpus, which is the plan's reason.
        let of_plan = if cpus[0] == 0 { Why::Cpus.in_words() } else { why };
        assert_eq!(told.decisions.why(), Some(of_plan));
        assert_eq!(told.why(13).as_deref(), Some(why));
    }
}

#[test]
fn who_was_left_alone_and_may_be_moved_again_has_lost_nothing() {
    let mut told = Told::new(2, Some(0.0));
    told.processes[3].left = Some("its working set cannot be read".to_string());
    assert!(!told.act(100.0).is_empty());
    assert_eq!(told.why(14).as_deref(), Some("its working set cannot be read"));
    // The change before is on trial: nothing is decided.
    told.processes[3].left = None;
    told.tell(100.0);
    assert_eq!(told.why(14).as_deref(), Some(UNDECIDED));
}

#[test]
fn trials_of_a_long_run_are_the_last_ones() {
    let mut decisions = Decisions::new(domains(2), None, true);
    let trial = |before_ns: f64| PairingTrial {
        before_ns,
        after_ns: 0.0,
        undone: false,
    };
    for number in 0..1000 {
        keep(&mut decisions.trials, trial(f64::from(number)), TRIALS);
    }
    assert_eq!(
        (decisions.trials().len(), decisions.trials()[0].before_ns),
        (TRIALS, 744.0)
    );
}

#[test]
fn whoever_makes_room_for_a_preferred_program_says_so() {
    let mut told = Told::new(2, None);
    told.decisions.preferred = Some("server".to_string());
    told.processes[0].name = "server".to_string();
    let actions = told.act(0.0);
    let why = |action: &Action| (action.process == 11, action.why.clone());
    let mut whys: Vec<(bool, String)> = actions.iter().map(why).collect();
    whys.sort();
    whys.dedup();
    let expected = [(false, MAKES_ROOM), (true, Why::Preferred.in_words())];
    assert_eq!(whys, expected.map(|(is_it, why)| (is_it, why.to_string())));
}

/// Instructions of an interval, all of whose processor time was counted.
fn counted(instructions: u64) -> Option<Counted> {
    Some(Counted {
        instructions,
        ns: 1_000_000_000,
    })
}

#[test]
fn a_change_that_lost_instructions_is_undone() {
    let mut told = Told::new(2, None);
    told.processes.iter_mut().for_each(|seen| seen.counted = counted(2000));
    assert_eq!(told.act(0.0).len(), 4);
    told.processes.iter_mut().for_each(|seen| seen.counted = counted(1900));
    let undone = told.act(0.0);
    assert!(undone.iter().all(|action| action.domains.is_none()) && undone.len() == 4);
    assert!(!told.decisions.verified() && told.decisions.trials()[0].undone);
    // One that gained stays.
    let mut told = Told::new(2, None);
    told.processes.iter_mut().for_each(|seen| seen.counted = counted(2000));
    assert_eq!(told.act(0.0).len(), 4);
    told.processes.iter_mut().for_each(|seen| seen.counted = counted(2100));
    assert!(told.act(0.0).is_empty());
    assert!(told.decisions.verified());
}

#[test]
fn a_process_of_slow_instructions_that_gets_more_time_loses_nothing() {
    let mut told = Told::new(2, None);
    told.processes.iter_mut().for_each(|seen| seen.counted = counted(2000));
    told.processes[0].counted = Some(Counted {
        instructions: 100,
        ns: 500_000_000,
    });
    assert_eq!(told.act(0.0).len(), 4);
    // Twice the time for the slow one, at a better pace. Each process's pace is as good as before or better, that of all together is not.
    told.processes[0].counted = counted(210);
    told.processes[1].counted = Some(Counted {
        instructions: 1000,
        ns: 500_000_000,
    });
    assert!(told.act(0.0).is_empty());
    let trials = told.decisions.trials();
    assert!(
        trials.len() == 1 && trials[0].after_ns < trials[0].before_ns,
        "{trials:?}"
    );
}

#[test]
fn a_process_that_goes_idle_undoes_nothing() {
    let mut told = Told::new(2, None);
    told.processes.iter_mut().for_each(|seen| seen.counted = counted(2000));
    assert_eq!(told.act(0.0).len(), 4);
    // A few instructions, at a bad pace.
    told.processes[0].counted = Some(Counted {
        instructions: 1,
        ns: 10_000_000,
    });
    assert!(told.act(0.0).is_empty());
    assert!(told.decisions.verified());
}

#[test]
fn a_later_process_of_the_same_number_is_another_one() {
    let mut told = Told::new(2, None);
    told.processes[0].counted = counted(2000);
    assert_eq!(told.act(0.0).len(), 4);
    told.processes[0].began = 2;
    told.processes[0].counted = counted(1);
    for _ in 0..20 {
        told.tell(0.0);
    }
    assert!(told.decisions.trials().is_empty());
}
