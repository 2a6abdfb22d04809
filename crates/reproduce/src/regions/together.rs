//! Sections 5.5 and 5.6: recorded programs that share the caches of a machine, as the scheduler puts them and as policy `regions` does.
//!
//! A workload's programs are recorded at once (`workloads/servers/together/run`). Of the trace those processes are simulated that the item
//! names; shells and clients are left out, as the paper has its load come from elsewhere. All begin at once.

use std::path::Path;

use results::Outcome;
use serde::{Deserialize, Serialize};
use sim::{Config, Detail};
use trace::{Batch, Event, Header, Thread, ThreadId, Trace, Writer};

use super::programs::{Varied, hashed, lines_of};
use super::recordings::Several;
use super::spec;
use crate::error::ReproduceError;
use crate::paper::Item;
use crate::record::Recording;
use crate::region_items::{Member, Regions, Variant};
use crate::reproduce::{Reproduction, Section};
use crate::watch::Step;
use machine::Machine;

/// A thread with less than this part of its process's references waits most of the time.
const IDLE: u64 = 100;
/// The row of all processes of a machine.
const ALL: &str = "all";

/// What one process took, or all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Took {
    references: u64,
    /// What its threads wait for memory and execute; of all: from the beginning to the end of the last.
    ns: f64,
    /// Of the outermost cache.
    misses: u64,
}

/// What a row is of: alone, together unaware, and together under policy `regions`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Ways {
    alone: Option<Took>,
    unaware: Took,
    regions: Took,
}

impl Reproduction<'_> {
    /// A row for each process and machine, and one of all processes.
    pub(super) fn together(
        &mut self,
        item: &Item,
        regions: &Regions,
        section: &mut Section,
    ) -> Result<(), ReproduceError> {
        let Some(name) = &regions.workload else {
            return Ok(());
        };
        let mut rows: Vec<(String, Vec<Ways>)> = Vec::new();
        for variant in &regions.machines {
            let mut names: Vec<&str> = members(regions, variant).map(|member| member.name.as_str()).collect();
            names.push(ALL);
            rows.extend(names.into_iter().map(|name| (format!("{}, {name}", variant.name), Vec::new())));
        }
        match self.recordings_together(name, regions) {
            Ok(recordings) => {
                for found in recordings {
                    for ((_, of_row), ways) in rows.iter_mut().zip(found) {
                        of_row.push(ways);
                    }
                }
            }
            Err(error) => {
                section.failures.push(format!("{name}: {error}"));
                return Ok(());
            }
        }
        let several = |row: &str, column: &str| {
            let found = rows.iter().find(|(name, _)| name == row);
            let found = found.map_or(&[][..], |(_, found)| found);
            Several(found.iter().map(|ways| ways.number(column)).collect())
        };
        for (name, _) in &rows {
            self.several(item, name, section, |column| (unit(name, column), several(name, column)));
        }
        for claim in &regions.claims {
            section
                .notes
                .push(claim.conclusion(&several(&claim.row, &claim.column)));
        }
        section.notes.push(format!(
            "Debian's programs, recorded at once, prepared by `make traces`; ns: what the threads of a process wait for memory and execute, for a \
             reference, its turns on a cpu not counted; of all: ms until the last has ended; `unaware`: threads in their order on the cpus, so that \
             the first two are under one cache; policy `regions` with {}; numbers are medians of {} recordings, which differ in environment, growth \
             of the heap, seeds, and what is asked in which order",
            regions.set.join(" "),
            self.recordings()
        ));
        Ok(())
    }

    /// What came of each recording: all rows.
    fn recordings_together(&self, name: &str, regions: &Regions) -> Result<Vec<Vec<Ways>>, ReproduceError> {
        let inputs = self.prepared().join("inputs");
        let folder = inputs.join(format!("together-{name}-small"));
        let words = lines_of(&folder.join("command"))?;
        let files = hashed(&lines_of(&folder.join("files"))?)?;
        let machines: Vec<(&Variant, Machine)> = regions
            .machines
            .iter()
            .map(|variant| Ok((variant, machine::load(&variant.preset)?)))
            .collect::<Result<_, ReproduceError>>()?;
        let texts: Vec<String> = machines.iter().map(|(_, machine)| machine.to_toml()).collect();
        let mut all = Vec::new();
        for recording in 0..self.recordings() {
            (self.watch)(Step::Simulating {
                what: name,
                done: recording,
                total: self.recordings(),
            });
            let (set, members, variants) = (&regions.set, &regions.together, &regions.machines);
            let key = format!("{words:?} {files:x} {recording} {set:?} {members:?} {variants:?}\n{}", texts.concat());
            let varied = Varied {
                name,
                words: &words,
                recording,
                inputs: Some(inputs.clone()),
            };
            all.push(self.kept(&key, || {
                self.with_recording(&varied, |recorder, trace| rows_of(recorder, trace, &machines, regions))
            })?);
        }
        Ok(all)
    }
}

/// The processes that run in a row.
fn members<'a>(regions: &'a Regions, variant: &'a Variant) -> impl Iterator<Item = &'a Member> {
    let runs = |member: &&Member| !variant.leaves_out.contains(&member.name);
    regions.together.iter().filter(runs)
}

/// Simulates all rows of a recording.
fn rows_of(
    recorder: &Recording,
    recorded: &Path,
    machines: &[(&Variant, Machine)],
    regions: &Regions,
) -> Result<Vec<Ways>, ReproduceError> {
    let trace = Trace::open(recorded)?;
    let part = recorded.with_extension("part");
    let mut rows = Vec::new();
    // What a process takes alone, by machine.
    let mut known: Vec<(&str, &str, Took)> = Vec::new();
    for (variant, machine) in machines {
        let mut alone = Vec::new();
        let mut processes = Vec::new();
        for member in members(regions, variant) {
            let threads = threads_of(&trace, member)?;
            let same = |(name, preset, _): &&(&str, &str, Took)| *name == member.name && *preset == variant.preset;
            let took = match known.iter().find(same) {
                Some((_, _, took)) => *took,
                None => {
                    let instructions = write_part(&trace, std::slice::from_ref(&threads), &part)?;
                    let (took, _) = took(recorder, &part, machine, &instructions, ("first-touch", &[]))?;
                    known.push((&member.name, &variant.preset, took[0]));
                    took[0]
                }
            };
            alone.push(took);
            processes.push(threads);
        }
        let instructions = write_part(&trace, &processes, &part)?;
        let set = [&regions.set[..], &variant.set].concat();
        let (unaware, unaware_all) = took(recorder, &part, machine, &instructions, ("first-touch", &[]))?;
        let (ours, ours_all) = took(recorder, &part, machine, &instructions, ("regions", &set))?;
        for ((alone, unaware), regions) in alone.into_iter().zip(unaware).zip(ours) {
            rows.push(Ways {
                alone: Some(alone),
                unaware,
                regions,
            });
        }
        rows.push(Ways {
            alone: None,
            unaware: unaware_all,
            regions: ours_all,
        });
    }
    Ok(rows)
}

/// The threads of a process that are simulated: of the busy ones those that began last, as a ray tracer's workers do.
fn threads_of(trace: &Trace, member: &Member) -> Result<Vec<ThreadId>, ReproduceError> {
    let counted: Vec<(u32, u64)> = (0..)
        .zip(trace.threads())
        .map(|(thread, of)| (of.process, trace.thread_references(thread)))
        .collect();
    let named = |process: &u32| {
        let process = &trace.processes()[*process as usize];
        Path::new(&process.program).file_name().is_some_and(|name| name == &*member.program)
    };
    let processes = (0..trace.processes().len() as u32).filter(named);
    chosen(&counted, processes, member.threads).ok_or_else(|| {
        ReproduceError::Host(format!("{} has no {} busy threads in the trace", member.program, member.threads))
    })
}

/// Of these processes the one with most references, and of its busy threads the last ones; `None`: it has fewer. Threads have the
/// process and the references of each.
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

/// Writes the references of these threads, by process, and nothing that one would wait for. Returns the instructions of each process.
fn write_part(trace: &Trace, processes: &[Vec<ThreadId>], to: &Path) -> Result<Vec<u64>, ReproduceError> {
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

/// Simulates a part of a recording: what each process took, and all of them.
fn took(
    recorder: &Recording,
    part: &Path,
    machine: &Machine,
    instructions: &[u64],
    (policy, set): (&str, &[String]),
) -> Result<(Vec<Took>, Took), ReproduceError> {
    let config = Config {
        classes: false,
        detail: Detail {
            threads: true,
            ..Detail::default()
        },
        ..Config::new(machine.clone(), vec![spec(policy, set)?])
    };
    let runs = recorder.simulate(part, &config)?;
    let outcome = runs.into_iter().next().map(|run| run.outcome).unwrap_or_default();
    let each = of_processes(&outcome, instructions, machine.clock_mhz)
        .ok_or_else(|| ReproduceError::Host(format!("policy {policy}: threads were not counted")))?;
    let all = Took {
        references: outcome.references,
        ns: outcome.time_ns.wall as f64,
        misses: each.iter().map(|took| took.misses).sum(),
    };
    Ok((each, all))
}

/// Threads put together by process.
fn of_processes(outcome: &Outcome, instructions: &[u64], clock_mhz: f64) -> Option<Vec<Took>> {
    let mut each: Vec<Took> = instructions
        .iter()
        .map(|&instructions| Took {
            ns: instructions as f64 * 1000.0 / clock_mhz,
            ..Took::default()
        })
        .collect();
    for thread in outcome.threads.as_ref()? {
        let took = each.get_mut(thread.process as usize)?;
        took.references += thread.references;
        took.ns += thread.stall_ns as f64;
        let outermost = thread.caches.iter().max_by_key(|cache| cache.level);
        took.misses += outermost.map_or(0, |cache| cache.misses);
    }
    Some(each)
}

impl Ways {
    fn number(&self, column: &str) -> Result<f64, String> {
        let alone = || self.alone.ok_or_else(|| "all are not one".to_string());
        // Of all processes the time as it is.
        let time = |took: &Took| match self.alone {
            Some(_) => took.ns / took.references.max(1) as f64,
            None => took.ns / 1e6,
        };
        let misses = |took: &Took| took.misses as f64 * 1000.0 / took.references.max(1) as f64;
        let less = |of: &dyn Fn(&Took) -> f64| (1.0 - of(&self.regions) / of(&self.unaware)) * 100.0;
        match column {
            "alone" => alone().map(|took| time(&took)),
            "unaware" => Ok(time(&self.unaware)),
            "regions" => Ok(time(&self.regions)),
            "lower" => Ok(less(&time)),
            "misses alone" => alone().map(|took| misses(&took)),
            "misses unaware" => Ok(misses(&self.unaware)),
            "misses with regions" => Ok(misses(&self.regions)),
            "fewer misses" => Ok(less(&misses)),
            other => Err(format!("`{other}` is not counted")),
        }
    }
}

fn unit(row: &str, column: &str) -> &'static str {
    match column {
        "lower" | "fewer misses" => "percent",
        column if column.starts_with("misses") => "of 1000 references",
        _ if row.ends_with(ALL) => "ms",
        _ => "ns a reference",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::{Op, Ref, Site};

    #[test]
    fn a_process_is_the_largest_of_its_name_and_its_last_busy_threads() {
        // Process 1 is a shell's child that has not become the program's yet, and process 2 has two workers behind its first thread.
        let threads = [(0, 5), (1, 10), (2, 900), (2, 2), (2, 700), (2, 800)];
        assert_eq!(chosen(&threads, 1..3, 2), Some(vec![4, 5]));
        assert_eq!(chosen(&threads, 1..3, 3), Some(vec![2, 4, 5]));
        assert_eq!(chosen(&threads, 1..3, 4), None);
        assert_eq!(chosen(&threads, 0..0, 1), None);
    }

    #[test]
    fn times_are_for_a_reference_but_of_all_processes_in_ms() {
        let took = |ns, misses| Took {
            references: 1_000_000,
            ns,
            misses,
        };
        let mut ways = Ways {
            alone: Some(took(2e6, 500)),
            unaware: took(8e6, 2000),
            regions: took(4e6, 1500),
        };
        let of = |ways: &Ways| ["alone", "unaware", "regions", "lower", "fewer misses"].map(|column| ways.number(column));
        assert_eq!(of(&ways), [2.0, 8.0, 4.0, 50.0, 25.0].map(Ok));
        assert_eq!(ways.number("misses alone"), Ok(0.5));
        ways.alone = None;
        assert_eq!(of(&ways)[1..], [8.0, 4.0, 50.0, 25.0].map(Ok));
        assert!(of(&ways)[0].is_err() && ways.number("higher").is_err());
        assert_eq!(unit("clovertown, all", "unaware"), "ms");
        assert_eq!(unit("clovertown, server", "unaware"), "ns a reference");
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
