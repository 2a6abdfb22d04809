//! The policy that decides for a running program, with the times of touches and moves here.

use std::sync::Arc;

use policy::{Cost, Domains, Following, Prices};
use sys::memory::PAGE;

use super::host::Host;
use super::{Asked, FollowingError};

/// The length of a phase, in us: four times as long as in the paper.
const PERIOD_US: u64 = 4_000_000;

/// Times that a page comes alone in a phase that sees a thousand changes from one region to another, and not one or two: in the first
/// one many do, before their regions are found.
const ALONE: u64 = 8;
/// Regions left for less than so many touches belong together. The time of a touch is subtracted, but only on average: a page of the region
/// in use may otherwise seem to belong to another.
const IDLE_TOUCHES: u64 = 4;

/// The rest between phases is doubled up to this many times while phases find the regions unchanged. In a phase the thread stays on one
/// cpu, and phases are long here.
const STEADY: u64 = 4;

/// Per mille of the time from one phase to the next that a phase takes here.
///
/// A touch of a closed page takes tens of microseconds instead of one or two. In the paper's hundredth of a second a phase would see a
/// hundred pages, and find no region. This one is long enough to touch each page that can be in all caches some times over, as regions
/// join step by step. It begins once touches may take an eighth of it; `regions.cost` bounds the touches of all phases.
fn share(domains: &Domains, touch_ns: u64, period_us: u64) -> u64 {
    const TOUCHES: u64 = 24;
    let pages = u64::from(domains.count()) * domains.bytes / PAGE as u64;
    let phase_ns = (TOUCHES * pages).saturating_mul(touch_ns);
    phase_ns.div_ceil(period_us.max(1)).clamp(10, 500)
}

impl Host {
    /// Builds the policy, with the time of a move here.
    pub fn decide_by(&mut self, asked: &Asked) -> Result<(), FollowingError> {
        // The policy subtracts the time of touches from its observations; the user's setting of it
        // comes first.
        let of = asked
            .policy
            .of(policy::Kind::Threads)
            .map_or("regions", |entry| entry.name);
        let set = |name: &str| {
            let prefix = format!("{of}.{name}=");
            let of_user = asked
                .settings
                .iter()
                .rev()
                .find_map(|setting| setting.strip_prefix(&prefix));
            of_user.and_then(|value| value.parse().ok())
        };
        let touch_ns = set("fault").unwrap_or(self.switch_ns.max(1));
        let period_us = set("period").unwrap_or(PERIOD_US);
        let mut settings = vec![
            format!("{of}.fault={touch_ns}"),
            format!("{of}.period={period_us}"),
            format!("{of}.share={}", share(&self.domains, touch_ns, period_us)),
            format!("{of}.alone={ALONE}"),
            format!("{of}.steady={STEADY}"),
        ];
        // Wrong ones are errors of the policy's.
        settings.extend(asked.settings.iter().cloned());
        let mut policy = policy::build(&asked.policy, &settings)?;
        policy.take_prices(&Arc::new(Prices {
            cost: Cost {
                move_page_ns: 0.0,
                recolor_page_ns: 0.0,
                copy_page_ns: 0.0,
                collapse_ns: 0.0,
                touch_fault_ns: self.switch_ns as f64,
                move_thread_ns: self.switch_ns as f64,
            },
            nodes: 1,
            latency_ns: vec![0.0],
            following: Following {
                switch_ns: Some(self.switch_ns),
                bounds: asked.bounds,
                idle_least_ns: touch_ns.saturating_mul(IDLE_TOUCHES),
                just_measured: asked.bounds.is_some(),
            },
        }));
        self.interest = policy.interest();
        self.clock.touch_ns = self.interest.touch_fault_ns;
        self.policy = Some(policy);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_as_long_as_touches_take() {
        let domains = |bytes| Domains {
            bytes,
            of_cpu: vec![0, 1],
            ..Domains::none(2)
        };
        // 1024 pages, 24 times 80 us each: 1.97 of 4 s; and the time of a touch in the simulator.
        assert_eq!(share(&domains(2 << 20), 80_000, PERIOD_US), 492);
        assert_eq!(share(&domains(2 << 20), 1_500, PERIOD_US), 10);
        assert_eq!(share(&domains(2 << 20), 1_500, 1_000_000), 37);
        assert_eq!(share(&domains(16 << 10), 80_000, PERIOD_US), 10);
        assert_eq!(share(&domains(1 << 30), 80_000, PERIOD_US), 500);
    }
}
