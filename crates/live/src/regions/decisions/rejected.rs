//! Changes that lost, so that they are not tried again: each once, the last ones.

use std::collections::VecDeque;

use super::{Places, keep};

/// Changes that are remembered, at most.
const MOST: usize = 64;

/// Changes by the places that they gave.
#[derive(Default)]
pub struct Rejected(VecDeque<Places>);

impl Rejected {
    pub fn contains(&self, places: &Places) -> bool {
        self.0.contains(places)
    }

    /// Adds a change. One that is there already counts as the last.
    pub fn add(&mut self, places: Places) {
        self.0.retain(|one| *one != places);
        keep(&mut self.0, places, MOST);
    }

    /// Forgets changes of processes that have ended: these cannot come again.
    pub fn retain(&mut self, is_there: impl Fn(u32) -> bool) {
        self.0.retain(|places| places.keys().all(|&process| is_there(process)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(process: u32, domain: u32) -> Places {
        Places::from([(process, Some(vec![domain]))])
    }

    #[test]
    fn each_stands_once_and_the_oldest_go() {
        let mut rejected = Rejected::default();
        for _ in 0..3 {
            rejected.add(places(1, 0));
            rejected.add(places(1, 1));
        }
        assert_eq!(rejected.0.len(), 2);
        for domain in 2..200 {
            rejected.add(places(1, domain));
            rejected.add(places(1, 0));
        }
        assert_eq!(rejected.0.len(), MOST);
        assert!(rejected.contains(&places(1, 0)) && rejected.contains(&places(1, 199)));
        assert!(!rejected.contains(&places(1, 1)));
        rejected.add(places(2, 0));
        rejected.retain(|process| process == 2);
        assert_eq!(rejected.0, [places(2, 0)]);
    }
}
