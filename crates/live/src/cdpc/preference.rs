//! Which color each page is to have: by the five steps, or as other ways of dealing colors would have it, for
//! comparison.

use std::collections::HashSet;
use std::str::FromStr;

use policy::cdpc::{self, Hints, Loop, Machine, Malformed};

use crate::PAGE_BYTES;

/// How colors are dealt to the pages that the loops touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Compiler-directed page coloring.
    Directed,
    /// Page coloring: the color follows the address, page after page.
    ByAddress,
    /// Bin hopping, as the summaries would touch the pages: loop after loop in the order in which they were told, the
    /// threads of each in step; each page that is new gets the next color. (What the kernel would do in truth depends on
    /// what the program touches before, and on which thread comes first.)
    ByTouch,
    /// Any color, the same in each run.
    Random,
}

/// There is no order of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no policy is called {0:?} here: there are cdpc, page-coloring, bin-hopping and random")]
pub struct UnknownOrder(pub String);

impl Order {
    pub const ALL: [Order; 4] = [Order::Directed, Order::ByAddress, Order::ByTouch, Order::Random];

    /// As policies are called elsewhere.
    pub fn name(self) -> &'static str {
        match self {
            Order::Directed => "cdpc",
            Order::ByAddress => "page-coloring",
            Order::ByTouch => "bin-hopping",
            Order::Random => "random",
        }
    }

    /// A color for each page that the loops touch, in the order of dealing; the first color dealt in turn is `from`.
    pub(super) fn hints(self, loops: &[Loop], colors: u32, from: u32) -> Result<Vec<(u64, u16)>, Malformed> {
        if self == Order::ByTouch {
            let pages = as_touched(loops)?;
            let dealt = pages.into_iter().zip(0u64..);
            return Ok(dealt
                .map(|(page, turn)| (page, ((u64::from(from) + turn) % u64::from(colors)) as u16))
                .collect());
        }
        let color = |page: u64, directed: u32| match self {
            Order::Directed => (directed + from) % colors,
            Order::ByAddress => (page % u64::from(colors)) as u32,
            _ => (mixed(page) % u64::from(colors)) as u32,
        };
        let hints = cdpc::hints(loops, &machine(loops, colors))?;
        Ok(touched(&hints)
            .map(|hint| (hint.page, color(hint.page, hint.color) as u16))
            .collect())
    }
}

fn machine(loops: &[Loop], colors: u32) -> Machine {
    Machine {
        page_bytes: PAGE_BYTES as u64,
        colors,
        cpus: loops.iter().map(|told| told.threads).max().unwrap_or(1),
    }
}

/// Pages of the arrays that no loop touches come last: they need no frame.
fn touched(hints: &Hints) -> impl Iterator<Item = &cdpc::Hint> {
    hints.pages[..hints.used].iter()
}

impl FromStr for Order {
    type Err = UnknownOrder;

    fn from_str(name: &str) -> Result<Order, UnknownOrder> {
        let found = Order::ALL.into_iter().find(|order| order.name() == name);
        found.ok_or_else(|| UnknownOrder(name.to_string()))
    }
}

/// The pages in the order in which the loops would touch them, each once.
fn as_touched(loops: &[Loop]) -> Result<Vec<u64>, Malformed> {
    let mut seen = HashSet::new();
    let mut order = Vec::new();
    for told in loops {
        told.check()?;
        let mut threads: Vec<_> = Vec::new();
        for thread in 0..told.threads {
            let mut ranges = Vec::new();
            for summary in &told.summaries {
                ranges.extend(cdpc::pages(told, summary, thread, PAGE_BYTES as u64)?);
            }
            threads.push(ranges.into_iter().flatten());
        }
        cdpc::in_step(&mut threads, |page| seen.insert(page), |page| order.push(page));
    }
    Ok(order)
}

/// Well mixed bits of a number (splitmix64).
fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::super::tests::a_loop;
    use super::*;

    #[test]
    fn orders_are_known_by_name() {
        for order in Order::ALL {
            assert_eq!(order.name().parse(), Ok(order));
        }
        assert!(
            "kernel"
                .parse::<Order>()
                .unwrap_err()
                .to_string()
                .contains("bin-hopping")
        );
    }

    #[test]
    fn bin_hopping_deals_to_threads_in_step() {
        // Two arrays of four pages, two threads.
        let told = a_loop("f", &[(16 << 12, 4 << 12), (32 << 12, 4 << 12)], 2);
        let hints = Order::ByTouch.hints(&[told], 16, 0).unwrap();
        let pages: Vec<u64> = hints.iter().map(|hint| hint.0).collect();
        assert_eq!(pages, [16, 18, 17, 19, 32, 34, 33, 35]);
        let colors: Vec<u16> = hints.iter().map(|hint| hint.1).collect();
        assert_eq!(colors, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn every_order_has_the_same_pages() {
        let loops = [
            a_loop("f", &[(16 << 12, 9 << 12), (64 << 12, 5 << 12)], 3),
            a_loop("g", &[(32 << 12, 7 << 12)], 3),
        ];
        let pages = |order: Order| {
            let mut pages: Vec<u64> = order.hints(&loops, 4, 0).unwrap().iter().map(|hint| hint.0).collect();
            pages.sort_unstable();
            pages
        };
        for order in Order::ALL {
            assert_eq!(pages(order), pages(Order::Directed), "{order:?}");
            assert_eq!(order.hints(&loops, 4, 0), order.hints(&loops, 4, 0));
        }
        let by_address = Order::ByAddress.hints(&loops, 4, 0).unwrap();
        assert!(by_address.iter().all(|&(page, color)| u64::from(color) == page % 4));
    }
}
