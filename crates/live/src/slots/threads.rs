//! Groups of threads: a data set gets its colors on the caches of their cpus.

use super::Error;

/// Threads that use a data set.
///
/// The cpus of a thread are read when colors are allocated, so that threads can be bound to cpus after they joined the
/// group. For a thread that has ended by then, the last answer counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadGroup {
    /// `None`: all threads of the program.
    members: Option<Vec<Member>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Member {
    /// The kernel's number, and where it may run as far as was last known.
    Thread(u32, Vec<u32>),
    Cpus(Vec<u32>),
}

impl ThreadGroup {
    /// All threads of the program, those to come included.
    pub fn all() -> ThreadGroup {
        ThreadGroup { members: None }
    }

    /// A group without threads, to add to.
    pub fn none() -> ThreadGroup {
        ThreadGroup {
            members: Some(Vec::new()),
        }
    }

    /// The threads that run on these cpus, whichever they are.
    pub fn on_cpus(cpus: &[u32]) -> ThreadGroup {
        ThreadGroup {
            members: Some(vec![Member::Cpus(cpus.to_vec())]),
        }
    }

    /// Adds a thread, by the kernel's number (`gettid`). A group of all threads has it already.
    pub fn add(&mut self, thread: u32) -> Result<(), Error> {
        let cpus = allowed(Some(thread)).map_err(|source| Error::NoThread { thread, source })?;
        let Some(members) = &mut self.members else {
            return Ok(());
        };
        let there = |member: &Member| matches!(member, Member::Thread(other, _) if *other == thread);
        if !members.iter().any(there) {
            members.push(Member::Thread(thread, cpus));
        }
        Ok(())
    }

    /// Adds the calling thread.
    pub fn add_this(&mut self) -> Result<(), Error> {
        self.add(sys::affinity::this_thread())
    }

    /// The kernel's numbers of its threads; `None` for all.
    pub(super) fn threads(&self) -> Option<Vec<u32>> {
        let members = self.members.as_ref()?;
        let thread = |member: &Member| match member {
            Member::Thread(thread, _) => Some(*thread),
            Member::Cpus(_) => None,
        };
        Some(members.iter().filter_map(thread).collect())
    }

    /// The same, but all that there are now where it is of all.
    pub(super) fn threads_now(&self) -> Result<Vec<u32>, Error> {
        if let Some(threads) = self.threads() {
            return Ok(threads);
        }
        let threads = sys::Root::default().numbered("proc/self/task", "");
        let unavailable = |error: sys::SysError| crate::Error::Unavailable {
            what: "the threads of this process".to_string(),
            why: error.to_string(),
        };
        Ok(threads.map_err(unavailable)?)
    }

    /// The cpus of `program` on which its threads may run.
    pub(super) fn cpus(&mut self, program: &[u32]) -> Result<Vec<u32>, Error> {
        let Some(members) = &mut self.members else {
            return Ok(program.to_vec());
        };
        let mut cpus = Vec::new();
        for member in members {
            match member {
                Member::Thread(thread, known) => {
                    if let Ok(now) = allowed(Some(*thread)) {
                        *known = now;
                    }
                    cpus.extend_from_slice(known);
                }
                Member::Cpus(named) => {
                    if let Some(&cpu) = named.iter().find(|cpu| !program.contains(cpu)) {
                        let allowed = sys::cpus::list(program);
                        return Err(Error::Cpu { cpu, allowed });
                    }
                    cpus.extend_from_slice(named);
                }
            }
        }
        cpus.retain(|cpu| program.contains(cpu));
        cpus.sort_unstable();
        cpus.dedup();
        if cpus.is_empty() {
            return Err(Error::NoThreads);
        }
        Ok(cpus)
    }
}

fn allowed(thread: Option<u32>) -> std::io::Result<Vec<u32>> {
    sys::affinity::allowed(thread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_runs_where_its_threads_may() {
        let here = allowed(None).unwrap();
        let mut group = ThreadGroup::none();
        assert!(matches!(group.cpus(&here), Err(Error::NoThreads)));
        group.add_this().unwrap();
        group.add_this().unwrap();
        assert_eq!(group.cpus(&here).unwrap(), here);
        assert_eq!(group.threads().unwrap().len(), 1);
        let error = ThreadGroup::none().add(u32::MAX).unwrap_err();
        assert!(matches!(error, Error::NoThread { thread: u32::MAX, .. }));
        assert_eq!(ThreadGroup::all().cpus(&[3, 4]).unwrap(), [3, 4]);
        assert_eq!(ThreadGroup::on_cpus(&[4]).cpus(&[3, 4]).unwrap(), [4]);
        assert!(matches!(
            ThreadGroup::on_cpus(&[5]).cpus(&[3, 4]),
            Err(Error::Cpu { cpu: 5, .. })
        ));
    }

    #[test]
    fn a_thread_that_was_bound_later_counts_where_it_is_bound() {
        let here = allowed(None).unwrap();
        let mut group = ThreadGroup::none();
        group.add_this().unwrap();
        let pinned = sys::affinity::pin_to_last().unwrap();
        assert_eq!(group.cpus(&here).unwrap(), [pinned.cpu() as u32]);
    }

    #[test]
    fn of_a_thread_that_has_ended_the_last_answer_counts() {
        let here = allowed(None).unwrap();
        let mut group = std::thread::spawn(|| {
            let mut group = ThreadGroup::none();
            group.add_this().unwrap();
            group
        })
        .join()
        .unwrap();
        assert_eq!(group.cpus(&here).unwrap(), here);
    }
}
