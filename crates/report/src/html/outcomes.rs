//! Simulated runs side by side, as a page.

use super::markup::Html;
use results::{Outcome, Time, count, percent, time};

const FAULTS: &str = "#page faults";

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
        // As most machines know of no page faults, there is a column only where some are.
        let faults = outcomes.iter().any(|outcome| outcome.time_ns.page_faults > 0);
        type Of = fn(&Time) -> u64;
        let parts: [(&str, Of); 13] = [
            ("#wall", |of| of.wall),
            ("#cpu total", |of| of.total),
            ("#busy", |of| of.busy),
            ("#caches", |of| of.cache_stall),
            ("#local", |of| of.local_stall),
            ("#remote", |of| of.remote_stall),
            ("#TLB", |of| of.tlb_stall),
            ("#policy", |of| of.policy_overhead),
            (FAULTS, |of| of.page_faults),
            ("#prefetches", |of| of.prefetch_stall),
            ("#imbalance", |of| of.imbalance),
            ("#sequential", |of| of.sequential),
            ("#synchronization", |of| of.synchronization),
        ];
        let parts: Vec<&(&str, Of)> = parts.iter().filter(|(name, _)| faults || *name != FAULTS).collect();
        let mut titles = vec!["policy", ""];
        titles.extend(parts.iter().map(|(name, _)| *name));
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
                    for (_, part) in &parts {
                        html.number(&time(part(of)));
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
