//! A made-up machine for tests: processes with working sets, threads with cpus, and a source that knows both.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sys::cpus::parse_list;
use sys::cpusets;
use sys::tasks::Demand;
use sys::{Problem, SysError};

use super::Whom;
use super::linux::Linux;
use super::log::Counted;
use super::sources::{Choice, Source};
use sys::cache_domains::CacheDomain;

#[derive(Clone, Debug)]
pub struct Process {
    pub began: u64,
    pub name: String,
    pub bytes: u64,
    /// Cpus that each of its threads keeps busy, in thousandths.
    pub busy: u64,
    pub parent: u32,
    pub threads: BTreeMap<u32, Thread>,
    pub cpuset: Vec<u32>,
    /// Its control group.
    pub group: Option<PathBuf>,
    /// The error with which the kernel refuses its threads.
    pub refuses: Option<i32>,
    /// Instructions in a microsecond; 0: they are not counted.
    pub pace: u64,
    /// The source can neither begin with it, nor say what it uses.
    pub no_begin: bool,
    pub no_look: bool,
}

#[derive(Clone, Debug)]
pub struct Thread {
    pub began: u64,
    pub mask: Vec<u32>,
    /// The cpus asked for; its mask is their intersection with the cpuset.
    asked: Option<Vec<u32>>,
    ran: u64,
}

impl Thread {
    pub fn on(mask: &[u32]) -> Thread {
        Thread {
            began: 1,
            mask: mask.to_vec(),
            asked: None,
            ran: 0,
        }
    }

    /// True if its cpus were asked for.
    pub fn was_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// A thread that this one starts: it inherits the cpus.
    pub fn starts(&self, began: u64) -> Thread {
        Thread {
            began,
            ran: 0,
            ..self.clone()
        }
    }
}

impl Process {
    /// A program of one thread that is always busy, on a machine of two cpus.
    pub fn busy(number: u32, bytes: u64) -> Process {
        Process {
            began: 1,
            name: "memlat".to_string(),
            bytes,
            busy: 1000,
            parent: 1,
            threads: BTreeMap::from([(number, Thread::on(&[0, 1]))]),
            cpuset: vec![0, 1],
            group: None,
            refuses: None,
            pace: 0,
            no_begin: false,
            no_look: false,
        }
    }

    /// A process of one thread that a thread of this one starts.
    pub fn starts(&self, parent: u32, number: u32, began: u64) -> Process {
        Process {
            began,
            parent,
            threads: BTreeMap::from([(number, self.threads[&parent].starts(began))]),
            ..self.clone()
        }
    }

    /// Its cpuset changes, as the kernel does that since 6.2: threads have the cpus that were asked for, as far as they are in it,
    /// or else all.
    pub fn moves_to(&mut self, cpuset: &[u32]) {
        self.cpuset = cpuset.to_vec();
        for thread in self.threads.values_mut() {
            let asked = thread.asked.iter().flatten().copied();
            thread.mask = asked.filter(|cpu| cpuset.contains(cpu)).collect();
            if thread.mask.is_empty() {
                thread.mask = cpuset.to_vec();
            }
        }
    }

    /// The same in a kernel before that: it forgets the cpus asked for.
    pub fn moves_and_forgets(&mut self, cpuset: &[u32]) {
        self.threads.values_mut().for_each(|thread| thread.asked = None);
        self.moves_to(cpuset);
    }
}

/// All that is on the machine: shared by the system, the source and the test.
#[derive(Debug, Default)]
pub struct World {
    pub now: Duration,
    pub processes: BTreeMap<u32, Process>,
    /// Units of work done so far; none are told where this is absent.
    pub units: Option<f64>,
    /// Units that are done in a second.
    pub pace: f64,
    /// Calls that changed a mask, or the cpus of a group.
    pub changes: usize,
    pub groups: BTreeMap<PathBuf, Group>,
    /// Instructions since they were asked for last, of processes for which they were.
    counted: BTreeMap<u32, Counted>,
}

/// A control group with a cpuset.
#[derive(Clone, Debug)]
pub struct Group {
    pub cpuset: cpusets::Group,
    /// True if it has a cpuset that may be written.
    pub open: bool,
    /// Threads lose their own choice when the cpuset changes, as before Linux 6.2.
    pub forgets: bool,
}

impl Group {
    /// A group that has the cpus of the group above it.
    pub fn of(above: &[u32]) -> Group {
        Group {
            cpuset: cpusets::Group {
                id: 1,
                cpus: String::new(),
                above: above.to_vec(),
                obstacle: None,
            },
            open: true,
            forgets: false,
        }
    }
}

impl World {
    /// Somebody chooses the cpus of a group.
    pub fn choose(&mut self, group: &Path, cpus: &str) {
        let Some(of) = self.groups.get_mut(group) else { return };
        of.cpuset.cpus = cpus.to_string();
        let above = &of.cpuset.above;
        let chosen = parse_list(cpus).unwrap_or_default();
        let mut has: Vec<u32> = above.iter().copied().filter(|cpu| chosen.contains(cpu)).collect();
        if has.is_empty() {
            has.clone_from(above);
        }
        let all = self.processes.values_mut();
        for process in all.filter(|process| process.group.as_deref() == Some(group)) {
            match of.forgets {
                true => process.moves_and_forgets(&has),
                false => process.moves_to(&has),
            }
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Fake(pub Arc<Mutex<World>>);

impl Fake {
    pub fn with(processes: impl IntoIterator<Item = (u32, Process)>) -> Fake {
        Fake(Arc::new(Mutex::new(World {
            processes: processes.into_iter().collect(),
            ..World::default()
        })))
    }

    /// Two private caches of 512 KiB.
    pub fn domains() -> Vec<CacheDomain> {
        Fake::domains_of(&[&[0], &[1]])
    }

    /// Caches of 512 KiB with these cpus.
    pub fn domains_of(cpus: &[&[u32]]) -> Vec<CacheDomain> {
        let domain = |cpus: &&[u32]| CacheDomain {
            cpus: cpus.to_vec(),
            level: Some(2),
            bytes: Some(512 << 10),
        };
        cpus.iter().map(domain).collect()
    }

    pub fn choice(&self) -> Choice {
        Choice {
            source: Box::new(self.clone()),
            others: Vec::new(),
        }
    }

    pub fn change<R>(&self, change: impl FnOnce(&mut World) -> R) -> R {
        change(&mut self.0.lock().unwrap())
    }

    /// The mask of each thread.
    pub fn masks(&self) -> BTreeMap<u32, Vec<u32>> {
        self.change(|world| {
            let threads = world.processes.values().flat_map(|process| process.threads.iter());
            threads.map(|(&number, thread)| (number, thread.mask.clone())).collect()
        })
    }
}

impl Source for Fake {
    fn name(&self) -> &'static str {
        "made up"
    }

    fn limit(&self) -> &'static str {
        "it knows everything"
    }

    fn begin(&mut self, process: u32) -> Result<(), String> {
        self.change(|world| match world.processes.get(&process) {
            Some(process) if process.no_begin => Err("no room to begin".to_string()),
            _ => Ok(()),
        })
    }

    fn look(&mut self, process: u32) -> Result<u64, String> {
        self.change(|world| match world.processes.get(&process) {
            None => Err("it has ended".to_string()),
            Some(process) if process.no_look => Err("no room to look".to_string()),
            Some(process) => Ok(process.bytes),
        })
    }

    fn end(&mut self, _: u32) {}
}

const ESRCH: i32 = 3;
const EINVAL: i32 = 22;

impl Linux for Fake {
    fn now(&mut self) -> Duration {
        self.change(|world| world.now)
    }

    fn sleep(&mut self, time: Duration) {
        self.change(|world| {
            world.now += time;
            let nanos = time.as_nanos() as u64;
            for (&number, process) in &mut world.processes {
                let busy = process.busy;
                if let Some(counted) = world.counted.get_mut(&number) {
                    let ns = nanos * busy / 1000 * process.threads.len() as u64;
                    counted.instructions += ns * process.pace / 1000;
                    counted.ns += ns;
                }
                process
                    .threads
                    .values_mut()
                    .for_each(|thread| thread.ran += nanos * busy / 1000);
            }
            let pace = world.pace;
            world.units = world.units.map(|units| units + pace * time.as_secs_f64());
        });
    }

    fn own_time(&mut self) -> Duration {
        self.now() / 100
    }

    fn members(&mut self, whom: &Whom) -> Result<Vec<u32>, SysError> {
        Ok(match whom {
            Whom::Processes(processes) => processes.clone(),
            Whom::Name(name) => self.change(|world| {
                let all = world.processes.iter().filter(|(_, process)| process.name == *name);
                all.map(|(&number, _)| number).collect()
            }),
            _ => self.change(|world| world.processes.keys().copied().collect()),
        })
    }

    fn began(&mut self, process: u32) -> Option<u64> {
        self.change(|world| world.processes.get(&process).map(|process| process.began))
    }

    fn name(&mut self, process: u32) -> String {
        self.change(|world| world.processes.get(&process).map(|process| process.name.clone()))
            .unwrap_or_default()
    }

    fn threads(&mut self, process: u32) -> Vec<Demand> {
        self.change(|world| {
            let threads = world
                .processes
                .get(&process)
                .into_iter()
                .flat_map(|process| &process.threads);
            let demand = |(&number, thread): (&u32, &Thread)| Demand {
                number,
                began: thread.began,
                cpu: thread.mask[0],
                ran: thread.ran,
                waited: 0,
            };
            threads.map(demand).collect()
        })
    }

    fn cpuset(&mut self, process: u32) -> Option<Vec<u32>> {
        self.change(|world| world.processes.get(&process).map(|process| process.cpuset.clone()))
    }

    fn mask(&mut self, process: u32, thread: u32) -> Option<Vec<u32>> {
        self.change(|world| Some(world.processes.get(&process)?.threads.get(&thread)?.mask.clone()))
    }

    fn allow(&mut self, thread: u32, cpus: &[u32]) -> io::Result<()> {
        self.change(|world| {
            world.changes += 1;
            let mut all = world.processes.values_mut();
            let process = all.find(|process| process.threads.contains_key(&thread));
            let process = process.ok_or_else(|| io::Error::from_raw_os_error(ESRCH))?;
            if let Some(error) = process.refuses {
                return Err(io::Error::from_raw_os_error(error));
            }
            let mask: Vec<u32> = cpus
                .iter()
                .copied()
                .filter(|cpu| process.cpuset.contains(cpu))
                .collect();
            if mask.is_empty() {
                return Err(io::Error::from_raw_os_error(EINVAL));
            }
            if let Some(thread) = process.threads.get_mut(&thread) {
                (thread.mask, thread.asked) = (mask, Some(cpus.to_vec()));
            }
            Ok(())
        })
    }

    fn group_of(&mut self, process: u32) -> Option<PathBuf> {
        self.change(|world| world.processes.get(&process)?.group.clone())
    }

    fn in_group(&mut self, group: &Path) -> Vec<u32> {
        self.change(|world| {
            let all = world.processes.iter();
            let inside = all.filter(|(_, process)| process.group.as_deref() == Some(group));
            inside.map(|(&number, _)| number).collect()
        })
    }

    fn group(&mut self, group: &Path) -> Result<cpusets::Group, SysError> {
        let found = self.change(|world| world.groups.get(group).map(|group| group.cpuset.clone()));
        found.ok_or_else(|| SysError {
            path: group.join("cpuset.cpus"),
            problem: Problem::Absent,
        })
    }

    fn choose(&mut self, group: &Path, cpus: &str) -> Result<(), SysError> {
        let path = group.join("cpuset.cpus");
        self.change(|world| {
            world.changes += 1;
            let problem = match world.groups.get(group) {
                None => Problem::Absent,
                Some(group) if !group.open => Problem::Closed,
                Some(_) => {
                    world.choose(group, cpus);
                    return Ok(());
                }
            };
            Err(SysError { path, problem })
        })
    }

    fn parents(&mut self) -> Vec<(u32, u32)> {
        self.change(|world| {
            let all = world.processes.iter();
            all.map(|(&number, process)| (number, process.parent)).collect()
        })
    }

    /// Whole seconds; those that are there from the beginning began in the first one.
    fn ticks(&mut self) -> u64 {
        self.change(|world| 10 + world.now.as_secs())
    }

    fn units(&mut self) -> Option<f64> {
        self.change(|world| world.units)
    }

    fn counted(&mut self, process: u32, _: &[Demand]) -> Option<Counted> {
        self.change(|world| {
            let counts = world.processes.get(&process).is_some_and(|process| process.pace > 0);
            counts
                .then(|| world.counted.insert(process, Counted::default()))
                .flatten()
        })
    }

    fn uncount(&mut self, process: u32) {
        self.change(|world| world.counted.remove(&process));
    }

    fn uncountable(&self) -> Option<String> {
        let counts = self.change(|world| world.processes.values().any(|process| process.pace > 0));
        (!counts).then(|| "this machine is made up".to_string())
    }
}
