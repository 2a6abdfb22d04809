//! Whether it pays to move or copy a page: what its misses are predicted to save, against what the action costs.
//!
//! Verghese96, section 3: the quantity to maximize is what is saved by making remote misses local, less what migrating and
//! replicating costs; its trigger stands for that. Here it is computed: a page is taken to be missed on as often again, by the
//! same cpus, as since the last reset.

use std::sync::Arc;

use crate::homes::counters::OfPage;
use crate::seam::Prices;

pub struct Worth {
    /// What must be saved, in percent of the cost; 0: whatever is saved is enough.
    gain: u64,
    /// Each counted miss stands for so many.
    sample: u32,
    prices: Option<Arc<Prices>>,
}

impl Worth {
    pub fn new(gain: u64, sample: u32) -> Worth {
        let prices = None;
        Worth { gain, sample, prices }
    }

    pub fn take(&mut self, prices: &Arc<Prices>) {
        self.prices = Some(Arc::clone(prices));
    }

    /// Whether to move a page to a node: its misses come nearer, and those of nodes that have it now get further.
    pub fn moving(&self, counts: &OfPage, to: u32) -> bool {
        self.is_worth(|prices| {
            let saved = |(node, misses)| f64::from(misses) * (now(prices, counts, node) - prices.miss_ns(node, to));
            (counts.by_node().map(saved).sum(), prices.cost.move_page_ns)
        })
    }

    /// Whether to copy a page to a node, whose misses come nearer. A page that was written will be again, and is collapsed then.
    pub fn copying(&self, counts: &OfPage, to: u32) -> bool {
        self.is_worth(|prices| {
            let misses: u64 = counts
                .by_node()
                .filter(|(node, _)| *node == to)
                .map(|(_, misses)| u64::from(misses))
                .sum();
            let collapse = if counts.writes() > 0 {
                prices.cost.collapse_ns
            } else {
                0.0
            };
            let nearer = now(prices, counts, to) - prices.miss_ns(to, to);
            (misses as f64 * nearer, prices.cost.copy_page_ns + collapse)
        })
    }

    /// `weigh`: what the counted misses save, and what that costs. Where prices are not known, nothing is worth it.
    fn is_worth(&self, weigh: impl Fn(&Prices) -> (f64, f64)) -> bool {
        self.gain == 0
            || self.prices.as_ref().is_some_and(|prices| {
                let (saved, cost) = weigh(prices);
                saved * f64::from(self.sample) * 100.0 >= cost * self.gain as f64
            })
    }
}

/// What a miss of a node's cpus takes now.
fn now(prices: &Prices, counts: &OfPage, node: u32) -> f64 {
    prices.miss_ns(node, if counts.is_on(node) { node } else { counts.home() })
}
