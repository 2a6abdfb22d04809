//! The attributes of a new order, checked, with the defaults filled in.

use policy::order::{HINTS_MAX, Limit, Shape, Tour, default_block};
use threads::Scheduler;

use crate::cache::{self, Fit};
use crate::call::Call;
use crate::error::{Failure, domicile_error::DOMICILE_INVALID};
use crate::handle::failure;
use crate::structures::{DOMICILE_LEVELS_MAX, DOMICILE_WORKERS_MAX, domicile_order_attributes};

/// The attributes of an order, checked.
#[derive(Clone, Debug)]
pub struct Plan {
    pub shape: Shape,
    pub tour: Tour,
    pub workers: usize,
    /// `None`: bins do not run at the caches of their blocks; else whether they always do.
    pub at_caches: Option<Always>,
    /// The expected number of bins.
    pub bins: usize,
    /// Why the block has its size.
    pub reason: String,
}

/// True if every run is at the caches; if not, the faster way is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Always(pub bool);

fn invalid(text: String) -> Failure {
    Failure::saying(DOMICILE_INVALID, text)
}

impl Plan {
    /// Checks attributes and fills in the defaults. `dimensions` of the hints are present, and share the cache.
    pub fn new(attributes: &domicile_order_attributes, dimensions: usize) -> Result<Plan, Failure> {
        let hints = hints(attributes)?;
        let tour = match attributes.tour {
            0 => Tour::FirstFork,
            1 => Tour::Nearest,
            2 => Tour::Hilbert,
            other => return Err(invalid(format!("tour is {other}: use a domicile_tour"))),
        };
        let workers = (attributes.workers as usize).max(1);
        if workers > DOMICILE_WORKERS_MAX {
            return Err(invalid(format!(
                "workers is {workers}: use 1 to {DOMICILE_WORKERS_MAX}"
            )));
        }
        let at_caches = match attributes.at_caches {
            0 => None,
            always @ 1..=2 => Some(Always(always == 2)),
            other => return Err(invalid(format!("at_caches is {other}: use 0 to 2"))),
        };
        let levels = attributes.levels as usize;
        if levels > DOMICILE_LEVELS_MAX {
            return Err(invalid(format!("levels is {levels}: use 0 to {DOMICILE_LEVELS_MAX}")));
        }
        let mut sides = attributes.block;
        let reason = fill(&mut sides[..hints], attributes, dimensions.clamp(1, hints));
        let wrong = |error: policy::order::ShapeError| invalid(format!("block: {error}"));
        let mut shape = Shape::new(&sides[..hints]).map_err(wrong)?;
        if attributes.fold != 0 {
            shape = shape.fold().map_err(wrong)?;
        }
        for (level, outer) in attributes.outer[..levels].iter().enumerate() {
            let wrong = |error| invalid(format!("outer[{level}]: {error}"));
            shape = shape.within(&outer[..hints]).map_err(wrong)?;
        }
        Ok(Plan {
            shape,
            tour,
            workers,
            at_caches,
            bins: attributes.bins as usize,
            reason,
        })
    }

    /// A scheduler for this plan, without threads.
    pub fn scheduler(&self) -> Result<Scheduler<Call>, Failure> {
        let mut scheduler = Scheduler::new(self.shape.clone(), self.tour);
        scheduler.reserve(0, self.bins).map_err(failure)?;
        Ok(scheduler)
    }
}

/// How many hints a thread has.
pub fn hints(attributes: &domicile_order_attributes) -> Result<usize, Failure> {
    match attributes.hints as usize {
        0 => Ok(2),
        hints @ 1..=HINTS_MAX => Ok(hints),
        other => Err(invalid(format!("hints is {other}: use 1 to {HINTS_MAX}"))),
    }
}

/// Replaces sides of 0 by the default, and explains the sides.
fn fill(sides: &mut [u64], attributes: &domicile_order_attributes, dimensions: usize) -> String {
    if sides.iter().all(|&side| side != 0) {
        return "the block's sides were given".to_owned();
    }
    let fit = Fit {
        cache_bytes: attributes.cache_bytes,
        tlb_reach_bytes: (attributes.tlb_reach_bytes != 0).then_some(attributes.tlb_reach_bytes),
        source: "given",
    };
    let fit = if fit.cache_bytes == 0 {
        cache::fit().within(fit)
    } else {
        fit
    };
    let default = default_block(fit.cache_bytes, fit.tlb_reach_bytes, dimensions);
    for side in sides.iter_mut().filter(|side| **side == 0) {
        *side = default.bytes;
    }
    let limit = match default.limit {
        Limit::Cache => "cache",
        Limit::TlbReach => "TLB reach",
    };
    format!("{} (limit: {limit}; figures: {})", default.reason, fit.source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structures::DOMICILE_HINTS_MAX;

    fn given(hints: u32, block: u64) -> domicile_order_attributes {
        domicile_order_attributes {
            hints,
            block: [block; DOMICILE_HINTS_MAX],
            ..Default::default()
        }
    }

    fn refused(attributes: &domicile_order_attributes) -> String {
        let failure = Plan::new(attributes, 2).expect_err("it should be refused");
        assert_eq!(failure.code, DOMICILE_INVALID);
        failure.message.to_str().unwrap().to_owned()
    }

    #[test]
    fn given_sides_stay() {
        let plan = Plan::new(&given(3, 4096), 3).unwrap();
        assert_eq!((plan.shape.hints(), plan.shape.side(2), plan.workers), (3, 4096, 1));
        assert_eq!(plan.tour, Tour::FirstFork);
    }

    #[test]
    fn the_default_is_the_cache_divided_by_the_dimensions_that_are_there() {
        let mut attributes = given(3, 0);
        attributes.cache_bytes = 2 << 20;
        // The paper's package has three dimensions, and its block for a plane is half the cache (section 4.2).
        let plan = Plan::new(&attributes, 2).unwrap();
        assert_eq!(plan.shape.side(0), 1 << 20);
        assert!(plan.reason.contains("limit: cache"), "{}", plan.reason);
        attributes.tlb_reach_bytes = 1 << 20;
        let plan = Plan::new(&attributes, 2).unwrap();
        assert_eq!(plan.shape.side(0), 1 << 19);
        assert!(plan.reason.contains("limit: TLB reach"), "{}", plan.reason);
    }

    #[test]
    fn a_side_that_is_given_stands_beside_a_default_one() {
        let mut attributes = given(2, 0);
        attributes.cache_bytes = 2 << 20;
        attributes.block[1] = 64;
        let plan = Plan::new(&attributes, 2).unwrap();
        assert_eq!((plan.shape.side(0), plan.shape.side(1)), (1 << 20, 64));
    }

    #[test]
    fn what_cannot_be_is_named() {
        assert!(refused(&given(9, 1)).contains("hints is 9"));
        let mut attributes = given(2, 64);
        attributes.tour = 3;
        assert!(refused(&attributes).contains("tour is 3"));
        attributes.tour = 0;
        attributes.workers = 5000;
        assert!(refused(&attributes).contains("workers is 5000"));
        attributes.workers = 0;
        attributes.levels = 4;
        assert!(refused(&attributes).contains("levels is 4"));
        attributes.levels = 1;
        attributes.outer[0] = [96; DOMICILE_HINTS_MAX];
        assert!(refused(&attributes).contains("outer[0]"));
        attributes.levels = 0;
        attributes.fold = 1;
        attributes.block[1] = 128;
        assert!(refused(&attributes).contains("folded"));
    }
}
