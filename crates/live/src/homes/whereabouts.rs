//! The nodes on which the threads of a process ran during an interval.
//!
//! The kernel says of each thread for how long it has run so far, and which cpu it ran on last. A thread that has run
//! since the look before ran on the cpu of that look or of this one, or on both; its cpus in between are not seen. So
//! there are several looks an interval.

use std::collections::{BTreeSet, HashMap};

use sys::tasks::Task;

use super::layout::Layout;

/// The record of one process.
#[derive(Clone, Debug, Default)]
pub struct Whereabouts {
    /// Each thread's time and its node at the last look.
    last: HashMap<u32, (u64, Option<u32>)>,
    /// Nodes since [`Whereabouts::take`].
    nodes: BTreeSet<u32>,
}

impl Whereabouts {
    /// Looks at the threads that there are.
    pub fn look(&mut self, tasks: &[Task], layout: &Layout) {
        let mut now = HashMap::with_capacity(tasks.len());
        for task in tasks {
            let node = layout.node_of(task.cpu);
            match self.last.get(&task.number) {
                Some((time, before)) if *time < task.time => {
                    self.nodes.extend(*before);
                    self.nodes.extend(node);
                }
                // A new thread has run here, if at all.
                None if task.time > 0 => self.nodes.extend(node),
                // The time of one that runs is brought up to date at the scheduler's next step only.
                _ if task.runs => self.nodes.extend(node),
                _ => {}
            }
            now.insert(task.number, (task.time, node));
        }
        self.last = now;
    }

    /// The nodes where threads ran since this was asked last, as policies number them, ascending. Empty if none ran.
    pub fn take(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.nodes).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        Layout::new(&[(0, vec![0, 1]), (1, vec![2, 3]), (2, vec![4, 5])], false)
    }

    fn task(number: u32, cpu: u32, time: u64) -> Task {
        let runs = false;
        Task {
            number,
            cpu,
            runs,
            time,
        }
    }

    #[test]
    fn who_did_not_run_is_nowhere_and_who_did_is_where_it_was_and_is() {
        let layout = layout();
        let mut seen = Whereabouts::default();
        seen.look(&[task(1, 0, 5), task(2, 4, 9)], &layout);
        assert_eq!(seen.take(), [0, 2]);
        // The first waits for the others.
        seen.look(&[task(1, 0, 5), task(2, 4, 10)], &layout);
        assert_eq!(seen.take(), [2]);
        seen.look(&[task(1, 0, 5), task(2, 4, 10)], &layout);
        assert!(seen.take().is_empty());
        // The second goes to node 1, and on to node 0, in one interval.
        seen.look(&[task(1, 0, 5), task(2, 3, 11)], &layout);
        seen.look(&[task(1, 0, 5), task(2, 1, 12)], &layout);
        assert_eq!(seen.take(), [0, 1, 2]);
        seen.look(&[task(1, 0, 5), task(2, 1, 13)], &layout);
        assert_eq!(seen.take(), [0]);
    }

    #[test]
    fn a_thread_that_runs_counts_before_its_time_does() {
        let layout = layout();
        let mut seen = Whereabouts::default();
        let running = Task {
            runs: true,
            ..task(1, 2, 0)
        };
        seen.look(&[running, task(2, 0, 0)], &layout);
        assert_eq!(seen.take(), [1]);
        // A cpu of no node says nothing.
        seen.look(&[task(3, 77, 5)], &layout);
        assert!(seen.take().is_empty());
    }
}
