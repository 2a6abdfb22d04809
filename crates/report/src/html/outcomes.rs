//! Simulated runs side by side, as a page.

use super::markup::Html;
use results::{Outcome, count, percent, time};

pub fn body(outcomes: &[Outcome]) -> Html {
    let mut html = Html::default();
    let Some(first) = outcomes.first() else {
        html.text("p", "", "There are no results to show.");
        return html;
    };
    html.inside("header", "", |html| {
        html.text("p", "product", "Domicile: simulation");
        html.text("h1", "", &first.machine);
        html.text("p", "faint", &format!("{} references", count(first.references)));
    });
    html.inside("section", "", |html| {
        html.text("h2", "", "Time");
        let titles = [
            "policy",
            "",
            "#wall",
            "#cpu total",
            "#busy",
            "#caches",
            "#local",
            "#remote",
            "#TLB",
            "#policy",
            "#page faults",
            "#prefetches",
            "#imbalance",
            "#sequential",
            "#synchronization",
        ];
        let slowest = outcomes.iter().map(|outcome| outcome.time_ns.wall).max().unwrap_or(0);
        html.table(&titles, |html| {
            for outcome in outcomes {
                let of = &outcome.time_ns;
                html.inside("tr", "", |html| {
                    html.text("td", "name", &outcome.name());
                    html.inside("td", "wide", |html| {
                        let part = if slowest > 0 {
                            of.wall as f64 / slowest as f64
                        } else {
                            0.0
                        };
                        html.bar([("waiting", part, time(of.wall))]);
                    });
                    for ns in [
                        of.wall,
                        of.total,
                        of.busy,
                        of.cache_stall,
                        of.local_stall,
                        of.remote_stall,
                        of.tlb_stall,
                        of.policy_overhead,
                        of.page_faults,
                        of.prefetch_stall,
                        of.imbalance,
                        of.sequential,
                        of.synchronization,
                    ] {
                        html.number(&time(ns));
                    }
                });
            }
        });
    });
    html.inside("section", "", |html| {
        html.text("h2", "", "Misses");
        let mut titles = vec!["policy", "cache", "#accesses", "#misses", "#rate"];
        titles.extend([
            "#cold",
            "#capacity",
            "#conflict",
            "#true sharing",
            "#false sharing",
            "#writebacks",
        ]);
        html.table(&titles, |html| {
            for outcome in outcomes {
                for cache in outcome.caches.iter().filter(|cache| cache.accesses > 0) {
                    html.inside("tr", "", |html| {
                        html.text("td", "name", &outcome.name());
                        html.text("td", "", &cache.name);
                        html.number(&count(cache.accesses));
                        html.number(&count(cache.misses));
                        html.number(&percent(cache.misses as f64 / cache.accesses.max(1) as f64));
                        for misses in cache.totals().classes {
                            html.maybe(misses);
                        }
                        html.number(&count(cache.writebacks));
                    });
                }
            }
        });
    });
    html
}
