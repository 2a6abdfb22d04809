//! Random programs on random machines: the engine and the reference model agree in every count and time.
//!
//! `PROPTEST_CASES=10000 cargo test -p domicile-sim --test oracle` looks further.

use machine::Machine;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use crate::oracle::both::{self, Setup};
use crate::oracle::engine;
use crate::oracle::machines::machines;
use crate::oracle::programs::programs;
use crate::reference::Program;

/// All placement policies, alone and combined, with and without parameters.
const POLICIES: [&str; 7] = [
    "page-coloring",
    "bin-hopping",
    "random",
    "first-touch",
    "round-robin",
    "round-robin+bin-hopping",
    "first-touch+random",
];

pub fn cases(full: u32) -> ProptestConfig {
    ProptestConfig {
        cases: harness::cases(full),
        max_shrink_iters: 20_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

pub fn agree(machine: &Machine, program: &Program, setup: &Setup) -> TestCaseResult {
    let models: Vec<_> = POLICIES
        .iter()
        .map(|policy| both::model(machine, program, policy, setup))
        .collect();
    if models.iter().any(Option::is_none) {
        // Out of page frames under some policy: the run fails as a whole, and says so.
        let failure = engine::simulate(machine, program, &POLICIES, setup);
        prop_assert!(
            failure.is_err(),
            "the model runs out of page frames, the engine does not"
        );
        return Ok(());
    }
    let outcomes = match engine::simulate(machine, program, &POLICIES, setup) {
        Ok(outcomes) => outcomes,
        Err(failure) => {
            let text = both::report(machine, program, "all", &[failure]);
            return Err(TestCaseError::fail(text));
        }
    };
    for ((policy, model), outcome) in POLICIES.iter().zip(models).zip(&outcomes) {
        let Some(model) = model else { continue };
        let different = both::differences(&model, outcome);
        prop_assert!(
            different.is_empty(),
            "{:?}{}",
            setup,
            both::report(machine, program, policy, &different)
        );
    }
    Ok(())
}

fn sets() -> Vec<String> {
    ["bin-hopping.start=3", "random.seed=99", "round-robin.start=1"]
        .map(String::from)
        .to_vec()
}

proptest! {
    #![proptest_config(cases(60))]

    /// The way through a file changes nothing.
    #[test]
    fn through_a_trace_file(machine in machines(vec![1, 3]), program in programs(4, 400), recorded: bool) {
        let setup = Setup { recorded, ..Setup::default() };
        let policies = ["page-coloring", "round-robin+random"];
        let Ok(outcomes) = engine::simulate_written(&machine, &program, &policies, &setup) else {
            prop_assert!(engine::simulate(&machine, &program, &policies, &setup).is_err());
            return Ok(());
        };
        for (policy, outcome) in policies.iter().zip(&outcomes) {
            let Some(model) = both::model(&machine, &program, policy, &setup) else { continue };
            let different = both::differences(&model, outcome);
            prop_assert!(different.is_empty(), "{}", both::report(&machine, &program, policy, &different));
        }
    }
}

proptest! {
    #![proptest_config(cases(400))]

    /// One cpu, for which the engine shares work between policies.
    #[test]
    fn one_cpu(machine in machines(vec![1]), program in programs(3, 400), seed in 0..3u64, classes: bool, recorded: bool, slice_ns in 1..2000u64) {
        let sets = sets();
        agree(&machine, &program, &Setup { sets: &sets, seed, classes, recorded, slice_ns, ..Setup::default() })?;
    }

    /// One cpu and one thread: nothing depends on time.
    #[test]
    fn one_thread(machine in machines(vec![1]), program in programs(1, 400), classes: bool) {
        agree(&machine, &program, &Setup { classes, ..Setup::default() })?;
    }

    /// Several cpus in the order of their clocks.
    #[test]
    fn several_cpus(machine in machines(vec![2, 3, 4, 6]), program in programs(7, 400), seed in 0..3u64, classes in prop::bool::weighted(0.8), slice_ns in 1..2000u64) {
        let sets = sets();
        agree(&machine, &program, &Setup { sets: &sets, seed, classes, slice_ns, ..Setup::default() })?;
    }

    /// Several cpus in the order of the trace.
    #[test]
    fn several_cpus_in_recorded_order(machine in machines(vec![2, 4]), program in programs(5, 300), classes in prop::bool::weighted(0.8)) {
        agree(&machine, &program, &Setup { classes, recorded: true, ..Setup::default() })?;
    }
}
