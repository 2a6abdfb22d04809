//! A placement in the forms that schedulers read: commands of taskset, control groups with cpusets, systemd slices,
//! layers of scx_layered.
//!
//! A placement is for threads of a finished run. The text identifies those of the next run by stable properties: the
//! order in which a process starts its threads (their ids ascend), the names of threads, and the names of programs.
//! Each thread may use all cpus under its cache. Cpus have the numbers of the machine's description.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use results::{SharingAdvice, SharingThread};
use serde_json::{Value, json};

/// The form in which a placement is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementForm {
    /// A shell script that calls `taskset` for each thread.
    Taskset,
    /// A shell script that makes threaded control groups with cpusets.
    Cpuset,
    /// Slices of systemd with `AllowedCPUs`: whole processes.
    Systemd,
    /// Layers of the scheduler scx_layered (JSON).
    ScxLayered,
}

/// The most layers in scx_layered (`MAX_LAYERS`), including one for everything else.
const LAYERS: usize = 16;
/// Alternatives that match a layer (`MAX_LAYER_MATCH_ORS`).
const ALTERNATIVES: usize = 32;
/// Bytes of a thread's name that Linux keeps.
const COMM: usize = 15;

/// A thread of the run, and how to find the next run's.
struct Member<'a> {
    thread: &'a SharingThread,
    /// Its process's place among those of the trace, and its own among the process's threads; from 1.
    process: usize,
    place: usize,
}

impl Member<'_> {
    /// Its name, as far as Linux keeps it; for an unnamed thread, its program's.
    fn comm(&self) -> &str {
        match self.thread.name.is_empty() {
            true => self.pcomm(),
            false => kept(&self.thread.name),
        }
    }

    fn pcomm(&self) -> &str {
        let program = &self.thread.program;
        kept(program.rsplit('/').next().unwrap_or(program))
    }
}

/// As much of a name as Linux keeps.
pub fn kept(name: &str) -> &str {
    let end = (0..=name.len().min(COMM)).rev().find(|end| name.is_char_boundary(*end));
    &name[..end.unwrap_or(0)]
}

/// Threads under one cache.
struct Placed<'a> {
    cache: u32,
    cpus: [u32; 2],
    members: Vec<Member<'a>>,
}

impl Placed<'_> {
    /// `8-15`.
    fn cpus(&self) -> String {
        let [first, last] = self.cpus;
        format!("{first}-{last}")
    }
}

/// The fastest placement in a form. Error: why it is impossible, and what to do.
pub fn placement_text(advice: &SharingAdvice, form: PlacementForm) -> Result<String, String> {
    if advice.graph.left_out > 0 {
        return Err(format!(
            "{} threads were not looked at, and a placement would say nothing of them",
            advice.graph.left_out
        ));
    }
    let placed = placed(advice);
    match form {
        PlacementForm::Taskset => Ok(script(&placed, TASKSET)),
        PlacementForm::Cpuset => Ok(script(&placed, CPUSET)),
        PlacementForm::Systemd => systemd(&placed),
        PlacementForm::ScxLayered => layered(&placed),
    }
}

/// The threads under each cache in the fastest placement.
fn placed(advice: &SharingAdvice) -> Vec<Placed<'_>> {
    let width = advice.cpus_per_cache.max(1);
    let threads = &advice.graph.threads;
    let processes: BTreeSet<u32> = threads.iter().map(|thread| thread.process).collect();
    let mut seen: BTreeMap<u32, usize> = BTreeMap::new();
    let mut caches: BTreeMap<u32, Vec<Member>> = BTreeMap::new();
    let cpus = advice.placements.first().map_or(&[][..], |best| &best.cpus);
    for (thread, cpu) in threads.iter().zip(cpus) {
        let place = seen.entry(thread.process).or_default();
        *place += 1;
        caches.entry(cpu / width).or_default().push(Member {
            thread,
            process: processes.range(..thread.process).count() + 1,
            place: *place,
        });
    }
    let of = |(cache, members): (u32, Vec<_>)| Placed {
        cache,
        cpus: [cache * width, (cache + 1) * width - 1],
        members,
    };
    caches.into_iter().map(of).collect()
}

/// `under PID NUMBER CACHE CPUS`: puts a process's thread, by its number in the order of their ids, under a cache.
const TASKSET: &str = r#"under() {
    tid=$(thread "$1" "$2") || return 1
    taskset --cpu-list --pid "$4" "$tid"
}
"#;

/// The same by threaded control groups (version 2).
const CPUSET: &str = r#"top=${DOMICILE_CGROUP:-/sys/fs/cgroup/domicile}
mkdir -p "$top"
echo +cpuset > "$top/../cgroup.subtree_control"
for pid in "$@"; do
    echo "$pid" > "$top/cgroup.procs"
done
under() {
    tid=$(thread "$1" "$2") || return 1
    if [ ! -d "$top/cache$3" ]; then
        mkdir "$top/cache$3"
        echo threaded > "$top/cache$3/cgroup.type"
        echo +cpuset > "$top/cgroup.subtree_control"
        echo "$4" > "$top/cache$3/cpuset.cpus"
    fi
    echo "$tid" > "$top/cache$3/cgroup.threads"
}
"#;

const THREAD: &str = r#"thread() {
    tid=$(ls "/proc/$1/task" | sort -n | sed -n "$2p")
    if [ -z "$tid" ]; then
        echo "process $1 has no thread number $2" >&2
        return 1
    fi
    echo "$tid"
}
"#;

/// A script that puts each thread under its cache.
fn script(placed: &[Placed], function: &str) -> String {
    let all = || placed.iter().flat_map(|placed| &placed.members);
    let processes: BTreeMap<usize, &str> = all().map(|of| (of.process, of.thread.program.as_str())).collect();
    let arguments: Vec<String> = processes.keys().map(|number| format!("PID{number}")).collect();
    let arguments = arguments.join(" ");
    let mut text = format!(
        "#!/bin/sh\n# Written by domicile advise: threads that share data run under the same cache.\n\
         # Usage: sh FILE {arguments}, when all threads have started.\n"
    );
    for (number, program) in &processes {
        let _ = writeln!(text, "#   PID{number}: {}", program.escape_default());
    }
    let _ = writeln!(
        text,
        "set -u\nif [ $# -ne {} ]; then\n    echo \"usage: sh $0 {arguments}\" >&2\n    exit 2\nfi",
        processes.len(),
    );
    text += THREAD;
    text += function;
    for placed in placed {
        for of in &placed.members {
            let _ = writeln!(
                text,
                "under \"${{{}}}\" {} {} {}",
                of.process,
                of.place,
                placed.cache,
                placed.cpus()
            );
        }
    }
    text
}

/// Systemd slices: a process is only in one.
fn systemd(placed: &[Placed]) -> Result<String, String> {
    let mut cache_of: BTreeMap<usize, u32> = BTreeMap::new();
    for placed in placed {
        for of in &placed.members {
            if *cache_of.entry(of.process).or_insert(placed.cache) != placed.cache {
                return Err(format!(
                    "threads of one process ({}) belong under several caches, and systemd places whole processes; write it as \
                     taskset, cpuset or scx-layered",
                    of.thread.program
                ));
            }
        }
    }
    let mut text = String::from(
        "# Written by domicile advise. Each part is a file of its own in /etc/systemd/system, named in its first line; a service\n\
         # goes there by Slice= in its unit, a command by `systemd-run --scope --slice=NAME`.\n",
    );
    for placed in placed {
        let programs: BTreeSet<&str> = placed.members.iter().map(|of| of.pcomm()).collect();
        let programs: Vec<String> = programs.iter().map(|name| name.escape_default().to_string()).collect();
        let _ = write!(
            text,
            "\n# /etc/systemd/system/domicile-cache{}.slice\n[Unit]\nDescription=Processes that share a cache: {}\n\n\
             [Slice]\nAllowedCPUs={}\n",
            placed.cache,
            programs.join(", "),
            placed.cpus()
        );
    }
    Ok(text)
}

/// Layers of scx_layered: threads are identified by the beginnings of their and their programs' names.
fn layered(placed: &[Placed]) -> Result<String, String> {
    if placed.len() >= LAYERS {
        return Err(format!(
            "the threads are under {} caches, and scx_layered has room for {} layers besides everybody else's; write it as \
             taskset or cpuset",
            placed.len(),
            LAYERS - 1
        ));
    }
    let names = |placed: &Placed| -> BTreeSet<(String, String)> {
        let name = |of: &Member| (of.pcomm().to_string(), of.comm().to_string());
        placed.members.iter().map(name).collect()
    };
    let names: Vec<BTreeSet<(String, String)>> = placed.iter().map(names).collect();
    let mut layers = Vec::new();
    for (number, (placed, own)) in placed.iter().zip(&names).enumerate() {
        if own.iter().any(|(program, name)| program.is_empty() && name.is_empty()) {
            return Err(
                "the trace has no names of threads or programs, by which scx_layered tells them apart; write it as \
                        taskset or cpuset"
                    .to_string(),
            );
        }
        let mut matches = Vec::new();
        let others = || {
            names
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != number)
                .flat_map(|(_, names)| names)
        };
        for (program, name) in own {
            // A whole program, if no other layer has a thread of a program with such a name.
            if !others().any(|(other, _)| other.starts_with(program.as_str())) {
                let all = vec![json!({"PcommPrefix": program})];
                if !matches.contains(&all) {
                    matches.push(all);
                }
                continue;
            }
            let clash =
                others().find(|(of, other)| of.starts_with(program.as_str()) && other.starts_with(name.as_str()));
            if let Some((_, other)) = clash {
                return Err(format!(
                    "scx_layered tells threads apart by how their names begin, and `{name}` and `{other}` belong under \
                     different caches; name the threads (pthread_setname_np) and record again, or write it as taskset or cpuset"
                ));
            }
            matches.push(vec![json!({"PcommPrefix": program}), json!({"CommPrefix": name})]);
        }
        if matches.len() > ALTERNATIVES {
            return Err(format!(
                "{} names belong under one cache, and a layer of scx_layered has room for {ALTERNATIVES}; write it as taskset or cpuset",
                matches.len()
            ));
        }
        let cpus = placed.cpus[1] - placed.cpus[0] + 1;
        layers.push(json!({
            "name": format!("domicile-cache{}", placed.cache),
            "comment": format!("Threads that share data, under the cache of cpus {}", placed.cpus()),
            "matches": matches,
            "kind": {"Confined": {"util_range": [0.8, 0.9], "cpus_range": [cpus, cpus], "llcs": [placed.cache]}},
        }));
    }
    let nothing: [Value; 0] = [];
    layers.push(json!({"name": "others", "comment": "Everybody else", "matches": [nothing], "kind": {"Open": {}}}));
    serde_json::to_string_pretty(&layers)
        .map(|text| text + "\n")
        .map_err(|error| error.to_string())
}
