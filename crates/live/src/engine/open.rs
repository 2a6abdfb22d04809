//! Probing for the means that work here.

use sys::faults::{Door, Faults, Scope};
use sys::frames::Pagemap;
use sys::memory;

use super::{Config, Engine, Knowledge, Lock, Means, Placing};
use crate::pool::Pool;
use crate::{Error, Source};

/// A huge page fixes the bits of an address below this one.
const HUGE_PAGE_BITS: u32 = 21;

impl Engine {
    /// Probes for the means that work here. Fails if no means is left, or if a means that the
    /// configuration forces does not work.
    pub fn open(config: Config) -> Result<Engine, Error> {
        config.colors.check()?;
        // The first pass would be too late: a fork under way holds the lock of its handlers, and may wait for the
        // engine.
        sys::forks::watch().map_err(Error::system("registering handlers of fork"))?;
        let pagemap = Pagemap::own().map_err(Error::system("opening /proc/self/pagemap"))?;
        let visible = Pagemap::own_numbers_visible() && config.knowledge != Some(Knowledge::HugePages);
        let mut means = Means::default();
        if config.colors.source == Source::Forced {
            means.say("colors: forced, not validated");
        }
        let faults = Faults::open(false);
        let knowledge = knowledge(&config, visible, &mut means)?;
        let placing = placing(&config, visible, &faults, &mut means)?;
        let stage = faults.ok().filter(|_| placing == Placing::Move);
        means.running = running(stage.as_ref(), &mut means.reasons);
        means.forks = means.running && forks(stage.as_ref(), &mut means.reasons);
        means.placing = Some(placing);
        means.knowledge = knowledge;
        let pool = match knowledge {
            Some(knowledge) => Some(Pool::open(
                config.colors.clone(),
                knowledge,
                placing,
                config.reserve_bytes,
                config.collect_bytes,
            )?),
            None => None,
        };
        if config.supply.is_some() {
            means.say("frames: from the supply first");
        }
        if config.lock != Lock::Never {
            means.say(match memory::lock_limit() {
                None => "locking: as asked for; no limit".to_string(),
                Some(limit) => format!(
                    "locking: as asked for; {} KiB allowed (unless CAP_IPC_LOCK)",
                    limit >> 10
                ),
            });
        }
        Ok(Engine {
            config,
            means,
            process: std::process::id(),
            pagemap,
            visible,
            stage,
            pool,
            locked: Vec::new(),
            may_lock: memory::may_lock_all(),
            allowance: 0,
            trouble: None,
            lacked: None,
        })
    }

    /// Reopens everything in a child of fork: the parent's descriptors concern the parent's memory,
    /// and the pool is empty here. The supply is not taken along.
    pub(super) fn renew(&mut self) -> Result<(), Error> {
        if self.process == std::process::id() {
            return self.reopen();
        }
        let mut config = Config::new(self.config.colors.clone());
        let old = &self.config;
        (config.placing, config.knowledge, config.lock) = (old.placing, old.knowledge, old.lock);
        (config.reserve_bytes, config.collect_bytes) = (old.reserve_bytes, old.collect_bytes);
        (config.mappings, config.batch) = (old.mappings, old.batch);
        *self = Engine::open(config)?;
        self.means.say("after fork: the process's own frames only");
        Ok(())
    }
}

impl Engine {
    /// Reopens descriptors that the program has closed unknowingly (`closefrom`).
    fn reopen(&mut self) -> Result<(), Error> {
        if !self.pagemap.is_ours() {
            self.pagemap = Pagemap::own().map_err(Error::system("opening /proc/self/pagemap"))?;
        }
        if self.stage.as_ref().is_some_and(|stage| !stage.is_ours()) {
            self.stage = Some(Faults::open(false).map_err(Error::system("opening a userfaultfd"))?);
        }
        match self.pool.as_mut() {
            Some(pool) => pool.reopen(),
            None => Ok(()),
        }
    }
}

impl Means {
    fn say(&mut self, reason: impl Into<String>) {
        self.reasons.push(reason.into());
    }
}

fn knowledge(config: &Config, visible: bool, means: &mut Means) -> Result<Option<Knowledge>, Error> {
    let colors = &config.colors;
    let huge = if colors.first_bit + colors.bits > HUGE_PAGE_BITS {
        Err("a huge page fixes bits 12 to 20 of an address, and the colors need more")
    } else if sys::pages::huge_pages(&sys::Root::default()).is_ok_and(|huge| huge.enabled == "never") {
        Err("/sys/kernel/mm/transparent_hugepage/enabled is `never`; `madvise` is enough")
    } else {
        Ok(())
    };
    const HIDDEN: &str = "/proc/self/pagemap hides frame numbers from this user (CAP_SYS_ADMIN shows them)";
    let unavailable = |why: String| Error::Unavailable {
        what: "knowing the colors of frames".into(),
        why,
    };
    match (config.knowledge, visible, huge) {
        (None | Some(Knowledge::Pagemap), true, _) => {
            means.say("colors of own frames: by /proc/self/pagemap");
            Ok(Some(Knowledge::Pagemap))
        }
        (Some(Knowledge::Pagemap), false, _) => Err(unavailable(HIDDEN.into())),
        (Some(Knowledge::HugePages), _, Ok(())) => {
            means.say("colors of own frames: by the order within huge pages, as configured");
            Ok(Some(Knowledge::HugePages))
        }
        (None, false, Ok(())) => {
            means.say(format!(
                "colors of own frames: by the order within huge pages; {HIDDEN}"
            ));
            Ok(Some(Knowledge::HugePages))
        }
        (Some(Knowledge::HugePages), _, Err(why)) => Err(unavailable(why.into())),
        (None, false, Err(why)) if config.supply.is_some() => {
            means.say(format!("colors of own frames: unknown; {HIDDEN}; {why}"));
            Ok(None)
        }
        (None, false, Err(why)) => Err(unavailable(format!("{HIDDEN}; {why}; or run the daemon"))),
    }
}

fn placing(
    config: &Config,
    visible: bool,
    faults: &std::io::Result<Faults>,
    means: &mut Means,
) -> Result<Placing, Error> {
    let moves = match faults {
        Ok(faults) if faults.features().moves() => Ok(faults),
        Ok(_) => Err("this kernel has no UFFDIO_MOVE (it came with Linux 6.8)".to_string()),
        Err(error) => Err(format!("userfaultfd: {error}")),
    };
    let unavailable = |why: String| Error::Unavailable {
        what: "bringing frames into place".into(),
        why,
    };
    let chosen = match (config.placing, moves) {
        (None | Some(Placing::Move), Ok(faults)) => {
            let door = match faults.door() {
                Door::SystemCall => "the system call",
                Door::Device => "/dev/userfaultfd",
            };
            means.say(format!("placing: UFFDIO_MOVE, userfaultfd by {door}"));
            Placing::Move
        }
        (Some(Placing::Move), Err(why)) => return Err(unavailable(why)),
        (None, Err(why)) if visible || config.supply.is_some() => {
            means.say(format!("placing: by refilling from the cpu's free frames; {why}"));
            Placing::Refill
        }
        (None, Err(why)) => {
            means.say(format!("placing: mremap, up to {} mappings; {why}", config.mappings));
            Placing::Remap
        }
        (Some(Placing::Refill), _) if !visible && config.supply.is_none() => {
            return Err(unavailable(
                "refilling needs a page map that shows frames, to see what came (CAP_SYS_ADMIN), or the daemon".into(),
            ));
        }
        (Some(forced), _) => {
            means.say(format!("placing: {forced:?}, as configured"));
            forced
        }
    };
    Ok(chosen)
}

/// Returns whether ranges that others use can be colored.
fn running(stage: Option<&Faults>, reasons: &mut Vec<String>) -> bool {
    let (works, why) = match stage {
        None => (false, "no, it needs UFFDIO_MOVE"),
        Some(stage) if !stage.features().events() => (false, "no, userfaultfd reports no events here"),
        Some(stage) if stage.scope() == Scope::UserOnly => (
            false,
            "with one thread only: this user's userfaultfd does not make system calls wait (CAP_SYS_PTRACE, \
             vm.unprivileged_userfaultfd=1 or /dev/userfaultfd would)",
        ),
        Some(_) => (true, "yes, threads and system calls wait for pages on their way"),
    };
    reasons.push(format!("coloring while others run: {why}"));
    works
}

/// Returns whether children that no handler sees have all pages.
fn forks(stage: Option<&Faults>, reasons: &mut Vec<String>) -> bool {
    let heard = stage.is_some_and(Faults::hears_forks);
    reasons.push(if heard {
        "children made meanwhile: whole, whatever call makes them".into()
    } else {
        "children made meanwhile: whole by fork, vfork and posix_spawn; without CAP_SYS_PTRACE userfaultfd does not report \
         others (_Fork, a bare clone)"
            .into()
    });
    heard
}
