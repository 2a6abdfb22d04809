//! The registry: every policy's name, parameters, ranges and source.
//!
//! To add a policy, add its file and one [`Entry`] here; the command line, `policy list`, the
//! sweeps and the documentation take it from this table.

use crate::order::HINTS_MAX;
use crate::settings::{Entry, Kind, Later, Param, Range, Traits, WEIGHTS};
use crate::{color, homes, regions, work};

const ANY: Range = Range {
    least: 0,
    most: u64::MAX,
};

const REGISTRY: &[Entry] = &[
    Entry {
        name: "page-coloring",
        kind: Kind::Color,
        summary: "consecutive virtual pages get consecutive colors",
        source: "Bugnion96, section 2.1 (IRIX, Windows NT)",
        params: &[Param {
            name: "offset",
            summary: "color of page 0",
            unit: "colors",
            range: ANY,
            default: 0,
            names: &[],
        }],
        traits: Traits {
            default: true,
            weighed: true,
            ..Traits::NONE
        },
        build: color::page_coloring::build,
    },
    Entry {
        name: "bin-hopping",
        kind: Kind::Color,
        summary: "the colors in turn, in the order of page faults",
        source: "Bugnion96, section 2.1 (Digital UNIX)",
        params: &[
            Param {
                name: "start",
                summary: "color of the first page touched",
                unit: "colors",
                range: ANY,
                default: 0,
                names: &[],
            },
            Param {
                name: "race",
                summary: "seed of the race of cpus that fault together; 0: decided by the order of their clocks",
                unit: "",
                range: ANY,
                default: 0,
                names: &[],
            },
        ],
        traits: Traits {
            weighed: true,
            ..Traits::NONE
        },
        build: color::bin_hopping::build,
    },
    Entry {
        name: "random",
        kind: Kind::Color,
        summary: "a random color for each page",
        source: "the usual baseline; a kernel without coloring",
        params: &[Param {
            name: "seed",
            summary: "seed of the generator",
            unit: "",
            range: ANY,
            default: 1,
            names: &[],
        }],
        traits: Traits {
            linux: true,
            ..Traits::NONE
        },
        build: color::random::build,
    },
    Entry {
        name: "cdpc",
        kind: Kind::Color,
        summary: "compiler-directed page coloring: each cpu's part of all arrays lies together in the cache",
        source: "Bugnion96, section 5",
        params: &[
            Param {
                name: "from",
                summary: "where the hints come from: what the compiler said of each parallel loop, or which cpus touch which \
                          pages; auto: from what the compiler said, if it said anything",
                unit: "",
                range: Range { least: 0, most: 2 },
                default: 0,
                names: color::directed::FROM,
            },
            Param {
                name: "weigh",
                summary: "give arrays the colors of page coloring or bin hopping where their loops are predicted to gain nothing by \
                          hints; no: the paper's order for all",
                unit: "",
                range: Range { least: 0, most: 1 },
                default: 1,
                names: color::directed::NO_YES,
            },
            Param {
                name: "fit",
                summary: "exchange colors after the paper's five steps until no cpu whose pages fit in the cache has two of one color; \
                          no: the five steps alone",
                unit: "",
                range: Range { least: 0, most: 1 },
                default: 1,
                names: color::directed::NO_YES,
            },
            Param {
                name: "rest",
                summary: "colors for pages without a hint; auto: bin hopping where there are fewer hints than colors, else page \
                          coloring",
                unit: "",
                range: Range { least: 0, most: 2 },
                default: 2,
                names: color::directed::REST,
            },
        ],
        traits: Traits {
            hints: true,
            ..Traits::NONE
        },
        build: color::directed::build,
    },
    Entry {
        name: "slots",
        kind: Kind::Color,
        summary: "data sets get the colors of their cache slots, as the program or a plan says; the rest random colors",
        source: "Ding11, section 3",
        params: &[
            Param {
                name: "seed",
                summary: "seed of the generator for pages that are in no data set",
                unit: "",
                range: ANY,
                default: 1,
                names: &[],
            },
            Param {
                name: "rest",
                summary: "colors for pages that are in no data set: any, or all but those of private slots",
                unit: "",
                range: Range { least: 0, most: 1 },
                default: 0,
                names: color::slots::REST,
            },
        ],
        traits: Traits {
            slots: true,
            ..Traits::NONE
        },
        build: color::slots::build,
    },
    Entry {
        name: "first-touch",
        kind: Kind::Home,
        summary: "a page lives on the node of the cpu that touches it first",
        source: "Verghese96, section 6",
        params: &[],
        traits: Traits {
            default: true,
            linux: true,
            ..Traits::NONE
        },
        build: homes::first_touch::build,
    },
    Entry {
        name: "round-robin",
        kind: Kind::Home,
        summary: "the nodes in turn, in the order of page faults",
        source: "Verghese96, section 6",
        params: &[Param {
            name: "start",
            summary: "node of the first page touched",
            unit: "nodes",
            range: ANY,
            default: 0,
            names: &[],
        }],
        traits: Traits::NONE,
        build: homes::round_robin::build,
    },
    Entry {
        name: "interleave",
        kind: Kind::Home,
        summary: "the nodes in turn by the page's number, each as often as its weight says",
        source: "Linux, MPOL_INTERLEAVE and MPOL_WEIGHTED_INTERLEAVE (numactl --interleave)",
        params: &[Param {
            name: "weights",
            summary: "pages in a row of node 0, 1 ..., as in 3:1; nodes beyond the list get none; 0: all nodes alike",
            unit: WEIGHTS,
            range: Range { least: 0, most: 255 },
            default: 0,
            names: &[],
        }],
        traits: Traits {
            interleaves: true,
            ..Traits::NONE
        },
        build: homes::interleave::build,
    },
    Entry {
        name: "summary-homes",
        kind: Kind::Home,
        summary: "a page of a parallel loop's arrays lives on the node whose cpus' iterations touch it most; the rest on first touch",
        source: "the summaries of Bugnion96, section 5.1",
        params: &[],
        traits: Traits {
            summaries: true,
            ..Traits::NONE
        },
        build: homes::summary_homes::build,
    },
    Entry {
        name: "post-facto",
        kind: Kind::Home,
        summary: "a page lives where most of its misses will come from: the best that placing it once can do",
        source: "Verghese96, section 6.2.1",
        params: &[],
        traits: Traits {
            later: Later::Foretold,
            ..Traits::NONE
        },
        build: homes::post_facto::build,
    },
    Entry {
        name: "kernel-balancing",
        kind: Kind::Home,
        summary: "a page moves to the node of a cpu that twice in a row is the first to touch it after it was unmapped",
        source: "Linux, kernel/sched/fair.c (sysctl kernel.numa_balancing)",
        params: homes::kernel_balancing::PARAMS,
        traits: Traits {
            later: Later::Balanced,
            ..Traits::NONE
        },
        build: homes::kernel_balancing::build,
    },
    Entry {
        name: "migrate",
        kind: Kind::Home,
        summary: "a hot page that one cpu uses moves to its node; shared pages stay",
        source: "Verghese96, section 6.2.1",
        params: homes::params::MIGRATE,
        traits: Traits {
            later: Later::Moves,
            ..Traits::NONE
        },
        build: homes::migrate::build,
    },
    Entry {
        name: "replicate",
        kind: Kind::Home,
        summary: "a hot page that several cpus read gets a copy on each of their nodes, until it is written",
        source: "Verghese96, section 6.2.1",
        params: homes::params::REPLICATE,
        traits: Traits {
            later: Later::Copied,
            ..Traits::NONE
        },
        build: homes::replicate::build,
    },
    Entry {
        name: "migrate-replicate",
        kind: Kind::Home,
        summary: "hot pages move if one cpu uses them, and are copied if several read them",
        source: "Verghese96, Figure 3.1 and section 6.1",
        params: homes::params::MIGRATE_REPLICATE,
        traits: Traits {
            later: Later::MovesOrCopied,
            ..Traits::NONE
        },
        build: homes::migrate_replicate::build,
    },
    Entry {
        name: "order",
        kind: Kind::Order,
        summary: "marked work items with hints in the same block of memory run one after another",
        source: "Philbin96, sections 2 and 3",
        params: ORDER,
        traits: Traits::NONE,
        build: work::build,
    },
    Entry {
        name: "regions",
        kind: Kind::Threads,
        summary: "pages that are used together get a cache, and threads run where the cache of what they touch is",
        source: "Lee12, sections 3 and 4",
        params: regions::params::PARAMS,
        traits: Traits {
            follows: true,
            ..Traits::NONE
        },
        build: regions::scheduler::build,
    },
    Entry {
        name: "pairing",
        kind: Kind::Threads,
        summary: "whole processes get a cache, a large working set beside a small one, as `daemon --regions` does it on a running system",
        source: "the balancer of Lee12, section 4, over processes",
        params: regions::pairing::simulated::PARAMS,
        traits: Traits::NONE,
        build: regions::pairing::simulated::build,
    },
];

const ORDER: &[Param] = &[
    Param {
        name: "block",
        summary: "side of a block along each hint's dimension; 0: together they fill the last cache, or the TLB's reach",
        unit: "bytes",
        range: ANY,
        default: 0,
        names: &[],
    },
    Param {
        name: "hints",
        summary: "how many of an item's hints count, the first ones; 0: all",
        unit: "hints",
        range: Range {
            least: 0,
            most: HINTS_MAX as u64,
        },
        default: 0,
        names: &[],
    },
    Param {
        name: "fold",
        summary: "1: the same hints in another order are the same block",
        unit: "",
        range: Range { least: 0, most: 1 },
        default: 0,
        names: &[],
    },
    Param {
        name: "tour",
        summary: "in which order bins run",
        unit: "",
        range: Range {
            least: 0,
            most: work::TOURS.len() as u64 - 1,
        },
        default: 0,
        names: work::TOURS,
    },
    Param {
        name: "workers",
        summary: "workers among which the tour is dealt, each on a cpu of its own; 0: as many as cpus",
        unit: "workers",
        range: Range {
            least: 0,
            most: u32::MAX as u64,
        },
        default: 1,
        names: &[],
    },
    Param {
        name: "gap",
        summary: "references between two items beyond which the second begins a new run; 0: 256, or 1024 with fetches",
        unit: "references",
        range: ANY,
        default: 0,
        names: &[],
    },
];

/// All policies, in the order in which they are listed to people.
pub fn registry() -> &'static [Entry] {
    REGISTRY
}

/// The entry of a name that stands for one policy (not a combination).
pub fn entry(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::best_homes::HomesFrom;
    use crate::cdpc::Choice;
    use crate::settings::Settings;

    #[test]
    fn traits_are_those_of_the_policies_that_are_built() {
        for entry in registry() {
            let built = (entry.build)(&Settings::of(entry, &[]).unwrap()).unwrap();
            let (traits, interest, name) = (entry.traits, built.interest(), entry.name);
            assert_eq!(traits.hints, built.hints_wanted().is_some(), "{name}");
            assert_eq!(traits.slots, interest.slots, "{name}");
            let later = traits.later;
            let wants = |from: HomesFrom| built.wants_best_homes() == Some(from);
            assert_eq!(later == Later::Foretold, wants(HomesFrom::Misses), "{name}");
            assert_eq!(traits.summaries, wants(HomesFrom::Summaries), "{name}");
            let misses = interest.cache_misses > 0 || interest.tlb_misses > 0;
            assert_eq!(later.on_misses(), misses, "{name}");
            assert_eq!(
                traits.follows,
                entry.kind == Kind::Threads && interest.touches,
                "{name}"
            );
            let touches = entry.kind == Kind::Home && interest.touches;
            assert_eq!(later == Later::Balanced, touches, "{name}");
            let choices = [Choice::ByAddress, Choice::ByTouch].map(Choice::policy);
            assert_eq!(traits.weighed, choices.contains(&name), "{name}");
        }
    }

    #[test]
    fn of_colors_and_homes_one_is_the_default_and_one_is_linuxs() {
        let names = |is: fn(&Traits) -> bool| {
            let entries = registry().iter().filter(|entry| is(&entry.traits));
            entries.map(|entry| (entry.kind, entry.name)).collect::<Vec<_>>()
        };
        let default = names(|traits| traits.default);
        assert_eq!(default, [(Kind::Color, "page-coloring"), (Kind::Home, "first-touch")]);
        let linux = names(|traits| traits.linux);
        assert_eq!(linux, [(Kind::Color, "random"), (Kind::Home, "first-touch")]);
    }
}
