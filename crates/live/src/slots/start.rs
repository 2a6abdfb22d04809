//! The start of an application: its cpus, the colors, the ledger, and the engine that moves its
//! pages.

use policy::slots::Caches;

use super::ledger::{Ledger, Own, Recorded};
use super::means::Means;
use super::place::Nothing;
use super::served::Served;
use super::ways::ByWays;
use super::{Application, Error};
use crate::daemon::Client;
use crate::discovery::{ColorsFrom, Unknown, discover};
use crate::resctrl::Instead;
use crate::{Colors, Config, Engine, PAGE_BYTES, Source};

/// How an application wants to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    pub on: On,
    pub colors: ColorsFrom,
    pub through: Through,
}

/// The processors that an application runs on. A processor is, here, a set of cpus that share a cache
/// with colors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum On {
    /// All that the process's first thread may use.
    #[default]
    Affinity,
    /// The first so many of these (the paper's `ULCC_Init`).
    Processors(u32),
    /// The processors of these cpus, and only these cpus.
    Cpus(Vec<u32>),
}

/// The programs that keep the ledger and have frames at hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Through {
    /// The daemon if its socket answers, else this process; and this process too while a daemon that did answer is away.
    #[default]
    DaemonIfThere,
    /// The daemon; refused if it does not answer, then or later.
    Daemon,
    /// This process: its colors are its own only as far as it goes.
    Own,
}

impl Application {
    /// Starts the use of slots in this process. Several applications in one process have nothing to do with
    /// one another; without the daemon, they do not know of each other's colors.
    pub fn start(start: Start) -> Result<Application, Error> {
        let allowed = sys::affinity::allowed(Some(std::process::id())).map_err(|error| crate::Error::Unavailable {
            what: "the cpus of this process".to_string(),
            why: error.to_string(),
        })?;
        if sys::requests::recording() {
            let colors = match start.colors {
                ColorsFrom::Given(colors) => colors,
                _ => discover(Unknown::Refuse).or_else(|_| described())?,
            };
            let (caches, cpus) = caches_and_cpus(&colors, &allowed, &start.on)?;
            let ledger = Recorded(Own::new(caches.clone())?);
            let engine = "none: the trace keeps what is asked for slots and data sets".to_string();
            let means = means(Some(colors), caches, &ledger, engine, true);
            return Ok(Application::with(means, cpus, Box::new(ledger), Box::new(Nothing)));
        }
        let (colors, served) = match colors_and_daemon(start.colors, start.through) {
            Err(Error::Live(crate::Error::NoColors { why })) if start.through != Through::Daemon => {
                let instead = Instead::of(&why, &sys::Root::default())?;
                return by_ways(instead.ok_or(crate::Error::NoColors { why })?, &allowed, &start.on);
            }
            found => found?,
        };
        let (caches, cpus) = caches_and_cpus(&colors, &allowed, &start.on)?;
        let mut config = Config::new(colors.clone());
        let (ledger, why): (Box<dyn Ledger>, Option<String>) = match served {
            Ok((client, name)) => {
                let alone = (start.through != Through::Daemon).then(|| caches.clone());
                let served = Served::new(client, name, alone);
                // Frames come over a connection of their own: an answer is never that to the other's request.
                config.supply = Some(Box::new(Client::find().map_err(crate::Error::from)?));
                (Box::new(served), None)
            }
            Err(why) => (Box::new(Own::new(caches.clone())?), Some(why)),
        };
        let engine = Engine::open(config)?;
        let mut engine_means = engine.means().to_string();
        if let Some(why) = why {
            engine_means += &format!("ledger: this process's own; {why}\n");
        }
        let means = means(Some(colors), caches, &*ledger, engine_means, false);
        Ok(Application::with(means, cpus, ledger, Box::new(engine)))
    }
}

/// An application whose slots are ways for its threads.
pub(super) fn by_ways(instead: Instead, allowed: &[u32], on: &On) -> Result<Application, Error> {
    let (ways, way_bytes) = instead.ways.shape();
    let caches = Caches {
        colors: ways,
        color_bytes: way_bytes,
        page_bytes: PAGE_BYTES as u64,
        cpus: instead.ways.sharers(allowed)?,
    };
    caches.check()?;
    let cpus = cpus_of(&caches, &format!("L{}", instead.level), allowed, on)?;
    let note = instead.note();
    let ledger = ByWays::new(instead.ways, caches.clone());
    let means = means(None, caches, &ledger, note, false);
    Ok(Application::with(means, cpus, Box::new(ledger), Box::new(Nothing)))
}

fn means(colors: Option<Colors>, caches: Caches, ledger: &dyn Ledger, engine: String, recording: bool) -> Means {
    Means {
        colors,
        caches,
        ledger: ledger.name(),
        engine,
        recording,
    }
}

/// The daemon and the name of its ledger, or the reason for not using it.
type Daemons = Result<(Client, String), String>;

/// The colors, and the daemon if it is to be used and has the same ones. By default everybody uses the daemon's
/// colors.
fn colors_and_daemon(from: ColorsFrom, through: Through) -> Result<(Colors, Daemons), Error> {
    let client = match through {
        Through::Own => Err("as it was asked for".to_string()),
        Through::Daemon => Ok(Client::find().map_err(crate::Error::from)?),
        Through::DaemonIfThere => Client::find().map_err(|error| error.to_string()),
    };
    let served = || Some(client.as_ref().ok()?.colors().clone());
    let colors = from.decide(served)?;
    let client = match client {
        Ok(client) => client,
        Err(why) => return Ok((colors, Err(why))),
    };
    let theirs = client.colors();
    if colors.agree(theirs) {
        let name = format!("the daemon's at {}", crate::daemon::socket().display());
        return Ok((colors, Ok((client, name))));
    }
    let why = format!(
        "the daemon has other colors: {} bits from bit {} on, {} bytes each",
        theirs.bits, theirs.first_bit, theirs.color_bytes
    );
    if through == Through::Daemon {
        return Err(Error::Live(crate::Error::Unavailable {
            what: "the daemon".to_string(),
            why,
        }));
    }
    Ok((colors, Err(why)))
}

/// The shared caches of these colors, and which cpus an application uses of those that it may.
fn caches_and_cpus(colors: &Colors, allowed: &[u32], on: &On) -> Result<(Caches, Vec<u32>), Error> {
    let shared = crate::daemon::sharers(&sys::Root::default(), &colors.cache);
    let shared = shared.map_err(|error| crate::Error::Unavailable {
        what: "which cpus share a cache".to_string(),
        why: error.to_string(),
    })?;
    let caches = Caches {
        colors: colors.count(),
        color_bytes: colors.color_bytes,
        page_bytes: PAGE_BYTES as u64,
        cpus: shared,
    };
    let cpus = cpus_of(&caches, &colors.cache, allowed, on)?;
    caches.check()?;
    Ok((caches, cpus))
}

/// The allowed cpus that an application uses; `cache` is the caches' name.
fn cpus_of(caches: &Caches, cache: &str, allowed: &[u32], on: &On) -> Result<Vec<u32>, Error> {
    Ok(match on {
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
            let mut processors: Vec<Vec<u32>> = caches.cpus.iter().map(mine).collect();
            processors.retain(|cpus| !cpus.is_empty());
            if asked == 0 || asked as usize > processors.len() {
                return Err(Error::Processors {
                    asked,
                    there: processors.len() as u32,
                    cache: cache.to_string(),
                });
            }
            processors[..asked as usize].concat()
        }
    })
}

/// Under `domicile record` colors decide nothing here, but a program may ask for the amount of cache: Linux's
/// figures are good enough for that.
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
