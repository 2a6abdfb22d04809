//! Parts of a trace of several processes: those that an item names.

use std::path::Path;

use trace::{Batch, Event, Header, Thread, ThreadId, Trace, Writer};

use crate::error::ReproduceError;
use crate::region_items::Member;

/// A thread with a smaller part of its process's references waits most of the time.
const IDLE: u64 = 100;

/// The simulated threads of a process: the busy ones that began last, as a ray tracer's workers do.
pub fn threads_of(trace: &Trace, member: &Member) -> Result<Vec<ThreadId>, ReproduceError> {
    let counted: Vec<(u32, u64)> = (0..)
        .zip(trace.threads())
        .map(|(thread, of)| (of.process, trace.thread_references(thread)))
        .collect();
    let named = |process: &u32| {
        let process = &trace.processes()[*process as usize];
        Path::new(&process.program)
            .file_name()
            .is_some_and(|name| name == &*member.program)
    };
    let processes = (0..trace.processes().len() as u32).filter(named);
    chosen(&counted, processes, member.threads).ok_or_else(|| {
        ReproduceError::Host(format!(
            "{} has no {} busy threads in the trace",
            member.program, member.threads
        ))
    })
}

/// The last busy threads of the process with most references; `None`: it has too few. Threads have the process and the
/// references of each.
fn chosen(threads: &[(u32, u64)], processes: impl Iterator<Item = u32>, count: usize) -> Option<Vec<ThreadId>> {
    let of = |process: u32| (0..).zip(threads).filter(move |(_, thread)| thread.0 == process);
    let total = |process: u32| of(process).map(|(_, thread)| thread.1).sum::<u64>();
    let process = processes.max_by_key(|&process| total(process))?;
    let least = total(process) / IDLE;
    let busy: Vec<ThreadId> = of(process)
        .filter(|(_, thread)| thread.1 > least)
        .map(|(number, _)| number)
        .collect();
    let first = busy.len().checked_sub(count)?;
    Some(busy[first..].to_vec())
}

/// Writes the references of these threads, by process, without anything to wait for. Returns the instructions of each
/// process.
pub fn write_part(trace: &Trace, processes: &[Vec<ThreadId>], to: &Path) -> Result<Vec<u64>, ReproduceError> {
    let mut writer = Writer::create(
        to,
        &Header {
            counts_instructions: true,
            ..trace.header().clone()
        },
    )?;
    let sites: Vec<u32> = trace.sites().iter().map(|site| writer.site(*site)).collect();
    let mut batch = Batch::default();
    let mut instructions = Vec::new();
    for threads in processes {
        let mut executed = 0;
        let process = match threads.first() {
            Some(&first) => trace.threads()[first as usize].process,
            None => continue,
        };
        let process = writer.process(trace.processes()[process as usize].clone());
        for &thread in threads {
            let own = writer.thread(Thread {
                process,
                ..trace.threads()[thread as usize].clone()
            });
            let mut stream = trace.thread(thread)?;
            while stream.next(&mut batch)? {
                for reference in &mut batch.refs {
                    executed += u64::from(reference.insns);
                    reference.site = sites[reference.site as usize];
                }
                let mut written = 0;
                for timed in &batch.events {
                    if let Event::Work { instructions } = timed.event {
                        executed += instructions;
                        writer.refs(own, &batch.refs[written..timed.at as usize])?;
                        written = timed.at as usize;
                        writer.event(own, Event::Work { instructions })?;
                    }
                }
                writer.refs(own, &batch.refs[written..])?;
            }
        }
        instructions.push(executed);
    }
    writer.finish()?;
    Ok(instructions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::{Op, Ref, Site};

    #[test]
    fn a_process_is_the_largest_of_its_name_and_its_last_busy_threads() {
        // Process 1 is a shell's child that has not become the program yet, and process 2 has two workers after its
        // first thread.
        let threads = [(0, 5), (1, 10), (2, 900), (2, 2), (2, 700), (2, 800)];
        assert_eq!(chosen(&threads, 1..3, 2), Some(vec![4, 5]));
        assert_eq!(chosen(&threads, 1..3, 3), Some(vec![2, 4, 5]));
        assert_eq!(chosen(&threads, 1..3, 4), None);
        assert_eq!(chosen(&threads, 0..0, 1), None);
    }

    #[test]
    fn a_part_has_the_references_and_instructions_of_its_threads_and_nothing_to_wait_for() {
        let folder = tempfile::tempdir().unwrap();
        let [whole, part] = ["whole", "part"].map(|name| folder.path().join(name));
        let mut writer = Writer::create(&whole, &Header::default()).unwrap();
        let reference = |site, addr| Ref {
            addr,
            site,
            insns: 3,
            op: Op::Read,
            size: 8,
        };
        for program in ["sh", "server"] {
            let process = writer.process(trace::Process {
                program: program.to_string(),
                ..trace::Process::default()
            });
            let thread = writer.thread(Thread {
                process,
                ..Thread::default()
            });
            let site = writer.site(Site {
                pc: 0,
                op: Op::Read,
                size: 8,
            });
            writer.push(thread, reference(site, 4096 + u64::from(process))).unwrap();
            writer.event(thread, Event::Work { instructions: 40 }).unwrap();
            writer.event(thread, Event::Wait { ticket: 7 }).unwrap();
        }
        writer.finish().unwrap();
        let trace = Trace::open(&whole).unwrap();
        assert_eq!(write_part(&trace, &[vec![1]], &part).unwrap(), [43]);
        let part = Trace::open(&part).unwrap();
        assert_eq!((part.processes().len(), part.threads().len()), (1, 1));
        assert_eq!(part.processes()[0].program, "server");
        let mut batch = Batch::default();
        assert!(part.thread(0).unwrap().next(&mut batch).unwrap());
        assert_eq!(batch.refs[0].addr, 4097);
        assert_eq!(batch.events.len(), 1);
    }
}
