//! Decides if it pays to move or copy a page: the predicted saving of its misses against the cost of the action.
//!
//! Verghese96, section 3: the quantity to maximize is the saving by making remote misses local, less the cost of
//! migrating and replicating; its trigger stands for that. Here it is computed: a page is assumed to be missed on as
//! often again, by the same cpus, as since the last reset.

use std::sync::Arc;

use crate::homes::counters::OfPage;
use crate::seam::Prices;

pub struct Worth {
    /// The least saving, in percent of the cost; 0: any saving is enough.
    gain: u64,
    /// Each counted miss stands for this many.
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

    /// True if a move of a page to a node pays: its misses come nearer, and those of nodes that have it now get further.
    pub fn moving(&self, counts: &OfPage, to: u32) -> bool {
        self.is_worth(|prices| {
            let saved = |(node, misses)| f64::from(misses) * (now(prices, counts, node) - prices.miss_ns(node, to));
            (counts.by_node().map(saved).sum(), prices.cost.move_page_ns)
        })
    }

    /// True if a copy of a page on a node pays: its misses come nearer. A page that was written will be again, and is collapsed then.
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

    /// `weigh`: the saving of the counted misses, and its cost. If prices are not known, nothing is worth it.
    fn is_worth(&self, weigh: impl Fn(&Prices) -> (f64, f64)) -> bool {
        self.gain == 0
            || self.prices.as_ref().is_some_and(|prices| {
                let (saved, cost) = weigh(prices);
                saved * f64::from(self.sample) * 100.0 >= cost * self.gain as f64
            })
    }
}

/// The present time of a miss of a node's cpus.
fn now(prices: &Prices, counts: &OfPage, node: u32) -> f64 {
    prices.miss_ns(node, if counts.is_on(node) { node } else { counts.home() })
}
