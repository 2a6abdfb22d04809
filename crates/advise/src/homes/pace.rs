//! Settings of policies that suit the current run.
//!
//! The paper counts 128 misses in 100 ms before it moves a page, and Linux scans pages once a second at most. A run of
//! some milliseconds ends before either has begun. So the times become parts of the run, and a page moves once it has
//! cost as much as moving it does (rent or buy: at most twice the cost of the best choice in hindsight).

use machine::Machine;
use policy::Name;
use results::{Outcome, time};
use sim::Costs;

/// A run with at least this many intervals keeps them; else an interval is this fraction of the run.
const INTERVALS: u64 = 8;
/// The kernel's shortest time between scans, and the paper's time between resets of miss counts.
const SCAN_NS: u64 = 1_000_000_000;
const RESET_NS: u64 = 100_000_000;
/// The paper's trigger: a page never waits for more misses.
const TRIGGER: f64 = 128.0;

/// A policy's settings, and their description.
#[derive(Clone, Default)]
pub struct Pace {
    pub sets: Vec<String>,
    pub conditions: String,
}

/// Misses on other nodes' memory that cost as much as moving a page.
fn trigger(machine: &Machine, costs: &Costs) -> u64 {
    let more = machine.memory.remote_ns - machine.memory.local_ns;
    match more > 0.0 {
        true => (costs.move_page_ns / more).ceil().clamp(2.0, TRIGGER) as u64,
        false => TRIGGER as u64,
    }
}

fn interval_ns(wall: u64, usual: u64) -> u64 {
    usual.min((wall / INTERVALS).max(1000))
}

/// For policies that move pages, or move and copy them.
pub fn moving(policy: &Name, machine: &Machine, costs: &Costs, base: &Outcome) -> Pace {
    let (trigger, reset) = (trigger(machine, costs), interval_ns(base.time_ns.wall, RESET_NS));
    Pace {
        sets: vec![
            format!("{policy}.trigger={trigger}"),
            format!("{policy}.reset={}", reset / 1000),
        ],
        conditions: format!(
            "simulated with moves after {trigger} misses within {}, as many as cost what a move does",
            time(reset)
        ),
    }
}

/// For policies that copy pages, for a program that hands data over: copies are made early, once, and stay, whichever
/// thread wrote before.
pub fn handed_over(policy: &Name, machine: &Machine, costs: &Costs, base: &Outcome) -> Pace {
    let reset = base.time_ns.wall.saturating_mul(2).max(RESET_NS);
    let trigger = trigger(machine, costs);
    Pace {
        sets: vec![
            format!("{policy}.trigger={trigger}"),
            format!("{policy}.reset={}", reset / 1000),
            format!("{policy}.writes={}", u32::MAX),
            format!("{policy}.hold=1"),
            format!("{policy}.batch=1"),
        ],
        conditions: format!("simulated with a copy of each page after {trigger} misses of a node"),
    }
}

/// For the kernel's balancing.
pub fn balancing(policy: &Name, base: &Outcome) -> Pace {
    let wall = base.time_ns.wall;
    if wall >= INTERVALS * SCAN_NS {
        return Pace::default();
    }
    let scan = interval_ns(wall, SCAN_NS) / 1000;
    let set = |name: &str, value: u64| format!("{policy}.{name}={value}");
    Pace {
        sets: vec![
            set("delay", scan),
            set("scan-min", scan),
            set("scan-max", 60 * scan),
            set("scan-rate", 0),
            set("tick", (scan / 250).max(1)),
        ],
        conditions: format!(
            "simulated with {} between scans in place of a second, since the kernel's own would come too late for a \
             run of {}: its faults and moves weigh more here than in a longer run",
            time(scan * 1000),
            time(wall)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(wall: u64) -> Outcome {
        let mut outcome = Outcome::default();
        outcome.time_ns.wall = wall;
        outcome
    }

    #[test]
    fn a_page_moves_when_it_has_cost_as_much_as_a_move() {
        let mut machine = machine::load("cascade-lake-4s").unwrap();
        (machine.memory.local_ns, machine.memory.remote_ns) = (80.0, 180.0);
        let migrate = "migrate".parse().unwrap();
        let paced = |machine: &Machine, wall| moving(&migrate, machine, &sim::LINUX, &run(wall)).sets;
        assert_eq!(paced(&machine, 8_000_000), ["migrate.trigger=46", "migrate.reset=1000"]);
        // Never later than in the paper, and in a long run as often.
        machine.memory.remote_ns = 81.0;
        assert_eq!(
            paced(&machine, u64::MAX),
            ["migrate.trigger=128", "migrate.reset=100000"]
        );
        machine.memory.remote_ns = 80.0;
        assert_eq!(paced(&machine, 0), ["migrate.trigger=128", "migrate.reset=1"]);
    }

    #[test]
    fn the_kernel_scans_a_long_run_as_it_does() {
        let balanced = "kernel-balancing".parse().unwrap();
        assert!(balancing(&balanced, &run(8_000_000_000)).sets.is_empty());
        assert!(
            balancing(&balanced, &run(80_000_000))
                .sets
                .contains(&"kernel-balancing.scan-min=10000".to_string())
        );
    }
}
