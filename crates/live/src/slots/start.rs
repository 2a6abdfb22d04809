//! What an application starts with: its cpus, the colors, the ledger, and what moves its pages.

use policy::slots::Caches;

use super::ledger::{Ledger, Own, Recorded};
use super::place::{Nothing, Place};
use super::{Application, Error};
use crate::found::{self, Unknown};
use crate::{Colors, PAGE_BYTES, Source};

/// How an application wants to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    pub on: On,
    pub colors: ColorsFrom,
    pub through: Through,
}

/// The processors that an application runs on. A processor is, here, what shares a cache with colors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum On {
    /// All that the process's first thread may use.
    #[default]
    Affinity,
    /// The first so many of these (the paper's `ULCC_Init`).
    Processors(u32),
    /// Those of these cpus, and only these cpus.
    Cpus(Vec<u32>),
}

/// Where the colors come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ColorsFrom {
    /// What was validated since the last boot, or `DOMICILE_COLORS` forces; refused where neither is.
    #[default]
    Found,
    /// The same, but measured now where nobody has measured yet (about two seconds).
    Measured,
    /// These.
    Given(Colors),
}

/// Who keeps the ledger and has frames at hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Through {
    /// The daemon if its socket answers, else this process.
    #[default]
    DaemonIfThere,
    /// The daemon; refused where it does not answer.
    Daemon,
    /// This process: its colors are its own only as far as it goes.
    Own,
}

/// What an application runs with, for people and for programs that tell them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Means {
    pub colors: Colors,
    /// The caches that the application uses.
    pub caches: Caches,
    /// Who keeps the ledger.
    pub ledger: String,
    /// What moves pages, and by which facilities of the kernel.
    pub engine: String,
    /// Under `domicile record`: nothing moves, the trace is told.
    pub recording: bool,
}

impl Application {
    /// Starts the use of slots in this process. Several applications in one process have nothing to do with
    /// one another; without the daemon, they do not know of each other's colors.
    pub fn start(start: Start) -> Result<Application, Error> {
        let recording = sys::requests::recording();
        let colors = match start.colors {
            ColorsFrom::Given(colors) => colors,
            ColorsFrom::Found if recording => found::found(Unknown::Refuse).or_else(|_| described())?,
            ColorsFrom::Measured if recording => found::found(Unknown::Refuse).or_else(|_| described())?,
            ColorsFrom::Found => found::found(Unknown::Refuse)?,
            ColorsFrom::Measured => found::found(Unknown::Measure)?,
        };
        let allowed = sys::affinity::allowed(Some(std::process::id())).map_err(|error| crate::Error::Unavailable {
            what: "the cpus of this process".to_string(),
            why: error.to_string(),
        })?;
        let (caches, cpus) = caches_and_cpus(&colors, &allowed, &start.on)?;
        let (ledger, place, engine): (Box<dyn Ledger>, Box<dyn Place>, String) = if recording {
            let told = "none: the trace is told of slots and data sets".to_string();
            (Box::new(Recorded(Own::new(caches.clone())?)), Box::new(Nothing), told)
        } else {
            open(&colors, &caches, start.through)?
        };
        let means = Means {
            colors,
            caches,
            ledger: ledger.name(),
            engine,
            recording,
        };
        Ok(Application::with(means, cpus, ledger, place))
    }
}

type Opened = (Box<dyn Ledger>, Box<dyn Place>, String);

/// The daemon's ledger and frames, or our own.
fn open(_colors: &Colors, _caches: &Caches, _through: Through) -> Result<Opened, Error> {
    Err(Error::Live(crate::Error::Unavailable {
        what: "moving pages".to_string(),
        why: "this build has no engine for it".to_string(),
    }))
}

/// The shared caches of these colors, and which cpus an application uses of those that it may.
fn caches_and_cpus(colors: &Colors, allowed: &[u32], on: &On) -> Result<(Caches, Vec<u32>), Error> {
    let shared = shared_by(&colors.cache, allowed);
    let caches = Caches {
        colors: colors.count(),
        color_bytes: colors.color_bytes,
        page_bytes: PAGE_BYTES as u64,
        cpus: shared,
    };
    let cpus = match on {
        On::Affinity => allowed.to_vec(),
        On::Cpus(cpus) => {
            if let Some(&cpu) = cpus.iter().find(|cpu| !allowed.contains(cpu)) {
                let allowed = sys::cpus::list(allowed);
                return Err(Error::Cpu { cpu, allowed });
            }
            if cpus.is_empty() {
                return Err(Error::NoThreads);
            }
            cpus.clone()
        }
        &On::Processors(asked) => {
            let mine =
                |cpus: &Vec<u32>| -> Vec<u32> { cpus.iter().copied().filter(|cpu| allowed.contains(cpu)).collect() };
            let processors: Vec<Vec<u32>> = caches.cpus.iter().map(mine).collect();
            if asked == 0 || asked as usize > processors.len() {
                return Err(Error::Processors {
                    asked,
                    there: processors.len() as u32,
                    cache: colors.cache.clone(),
                });
            }
            processors[..asked as usize].concat()
        }
    };
    caches.check()?;
    Ok((caches, cpus))
}

/// The cpus of each cache named as `L2` (of the outermost one where the name is none), as far as it has one of
/// `cpus`. Where Linux does not tell, all share one.
fn shared_by(cache: &str, cpus: &[u32]) -> Vec<Vec<u32>> {
    let level = cache.strip_prefix('L').and_then(|rest| rest.parse::<u32>().ok());
    let mut instances: Vec<Vec<u32>> = Vec::new();
    let mut untold = Vec::new();
    for &cpu in cpus {
        if instances.iter().any(|instance| instance.contains(&cpu)) {
            continue;
        }
        let readings = sys::caches::caches(&sys::Root::default(), cpu).unwrap_or_default();
        let mut candidates = readings.into_iter().filter(|reading| reading.kind != "Instruction");
        let found = match level {
            Some(level) => candidates.rfind(|reading| reading.level == level),
            None => candidates.max_by_key(|reading| reading.level),
        };
        match found
            .and_then(|reading| reading.sharers)
            .filter(|sharers| sharers.contains(&cpu))
        {
            // No cpu twice, whatever a strange kernel says.
            Some(mut sharers) => {
                sharers.retain(|cpu| !instances.iter().any(|instance| instance.contains(cpu)) && !untold.contains(cpu));
                instances.push(sharers);
            }
            None => untold.push(cpu),
        }
    }
    if !untold.is_empty() {
        instances.push(untold);
    }
    instances
}

/// Under `domicile record` colors decide nothing here, but a program may ask how much cache there is: then what
/// Linux says is as good as anything.
fn described() -> Result<Colors, Error> {
    let unavailable = |why: String| {
        Error::Live(crate::Error::Unavailable {
            what: "the size of the cache".to_string(),
            why: format!("{why}; give colors with DOMICILE_COLORS=force:FIRST_BIT:BITS:BYTES"),
        })
    };
    let host = machine::host(&sys::Root::default()).map_err(|error| unavailable(error.to_string()))?;
    let outermost = host
        .machine
        .caches
        .iter()
        .rev()
        .find(|cache| host.machine.colors(cache) > 1);
    let cache = outermost.ok_or_else(|| unavailable("no cache of this machine has colors".to_string()))?;
    let colors = host.machine.colors(cache).next_power_of_two().min(1 << 16);
    Ok(Colors {
        first_bit: 12,
        bits: colors.trailing_zeros(),
        color_bytes: (cache.bytes / u64::from(colors)).max(1),
        cache: cache.name.clone(),
        source: Source::Forced,
    })
}
