//! Changes of when loads begin: several chains followed in turn, and prefetches of the program.
//!
//! README.md, "Changes", specifies these loads. Only a processor that overlaps uses them.

use std::collections::{HashMap, HashSet};

use results::ProgramChange;
use trace::{Dependence, Op};

use crate::config::Config;
use crate::detail::{self, Names};
use crate::error::SimError;
use crate::overlap::Loads;

/// The result of the changes of `config`; `dependences`: of the input.
pub fn changed(config: &Config, names: &Names, dependences: &[Dependence]) -> Result<Loads, SimError> {
    let mut loads = Loads::default();
    for change in &config.changes {
        let (line, number) = match change {
            ProgramChange::Chains { line, chains, .. } => (line, *chains),
            ProgramChange::Prefetch { line, ahead, .. } => (line, *ahead),
            _ => continue,
        };
        let refused = |what: String| SimError::Change {
            change: change.to_string(),
            what,
        };
        if config.machine.core.is_none() {
            return Err(refused(format!(
                "on {} each load waits by itself; a machine with `[core]` overlaps them",
                config.machine.name
            )));
        }
        let of_line = detail::sites_of(names, line).map_err(refused)?;
        let waits = Waits::new(dependences);
        match change {
            ProgramChange::Chains { .. } => {
                let reached = of_line.iter().flat_map(|site| waits.reached(*site));
                let looked_at: HashSet<u32> = of_line.iter().copied().chain(reached).collect();
                let links = looked_at.into_iter().filter(|site| waits.is_link(*site));
                let links: Vec<(u32, usize)> = links.map(|site| (site, number as usize)).collect();
                if links.is_empty() {
                    return Err(refused(format!("no load of {line} waits for the one before it")));
                }
                loads.chains.extend(links);
            }
            _ => {
                let is_load = |site: &u32| {
                    let site = names.sites.get(*site as usize);
                    site.is_some_and(|site| matches!(site.op, Op::Read | Op::Modify))
                };
                // A site that waits for a link is known no earlier than the link.
                let known = |site: &u32| {
                    let on = waits.reached(*site);
                    !on.contains(site) && !on.iter().any(|on| waits.is_link(*on))
                };
                let ahead = of_line.into_iter().filter(|site| is_load(site) && known(site));
                let ahead: Vec<(u32, usize)> = ahead.map(|site| (site, number as usize)).collect();
                if ahead.is_empty() {
                    return Err(refused(format!("no address of {line} is known ahead")));
                }
                loads.ahead.extend(ahead);
            }
        }
    }
    Ok(loads)
}

/// The sites that each site waits for.
struct Waits<'a>(HashMap<u32, &'a [u32]>);

impl Waits<'_> {
    fn new(dependences: &[Dependence]) -> Waits<'_> {
        Waits(dependences.iter().map(|one| (one.site, &one.on[..])).collect())
    }

    /// All that a site waits for, directly or through others.
    fn reached(&self, site: u32) -> HashSet<u32> {
        let mut reached = HashSet::new();
        let mut next = vec![site];
        while let Some(site) = next.pop() {
            let on = self.0.get(&site).copied().unwrap_or_default();
            next.extend(on.iter().filter(|from| reached.insert(**from)));
        }
        reached
    }

    /// Returns whether a site waits for itself.
    fn is_link(&self, site: u32) -> bool {
        self.reached(site).contains(&site)
    }
}
