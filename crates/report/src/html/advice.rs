//! The advice as a page.

use super::markup::{Html, class_of};
use results::{Advice, CLASSES, Share, SlotAdvice, WorkAdvice, bytes, change, count, percent, short, time};

use crate::tables::{CAUSES, place_of_cause, sized, what_to_do};
use crate::verified_text::{agreement, beside};

pub fn body(advice: &Advice) -> Html {
    let mut html = Html::default();
    if let Some(warning) = advice.warning() {
        html.inside("section", "verdict", |html| html.prose("p", &warning));
    }
    header(&mut html, advice);
    html.inside("section", "verdict", |html| html.prose("p", &advice.verdict));
    causes(&mut html, advice);
    policies(&mut html, advice);
    if let Some(advice) = &advice.work {
        work(&mut html, advice);
    }
    if let Some(slots) = advice.slots.as_ref().filter(|slots| !slots.data.is_empty()) {
        partition(&mut html, slots);
    }
    if let Some(cdpc) = &advice.cdpc {
        super::cdpc::section(&mut html, cdpc);
    }
    shares(&mut html, advice);
    structures(&mut html, advice);
    false_sharing(&mut html, advice);
    if let Some(verified) = &advice.verified {
        html.inside("section", "", |html| {
            html.text("h2", "", &format!("Verified: {}", verified.command));
            html.text("p", "", &beside(verified));
            html.text("p", "", &agreement(verified));
        });
    }
    if !advice.notes.is_empty() {
        html.inside("section", "notes", |html| {
            html.text("h2", "", "What is only an estimate");
            html.inside("ul", "", |html| {
                for note in &advice.notes {
                    html.prose("li", note);
                }
            });
        });
    }
    html
}

fn header(html: &mut Html, advice: &Advice) {
    let (machine, trace) = (&advice.machine, &advice.trace);
    let command = std::iter::once(&advice.program).chain(&advice.arguments);
    let command = command.map(String::as_str).collect::<Vec<_>>().join(" ");
    html.inside("header", "", |html| {
        html.text("p", "product", "Domicile: where memory time goes");
        html.text("h1", "", &command);
        html.inside("dl", "", |html| {
            let mut fact = |name: &str, value: String| {
                html.inside("div", "", |html| {
                    html.text("dt", "", name);
                    html.text("dd", "", &value);
                });
            };
            fact("machine", machine.name.clone());
            fact("cpus", machine.cpus.to_string());
            fact("nodes", machine.nodes.to_string());
            fact("colors", machine.colors.to_string());
            fact("references", count(trace.references));
            if let Some(instructions) = trace.instructions {
                fact("instructions", count(instructions));
            }
            fact("threads", trace.threads.to_string());
            fact("memory touched", bytes(trace.footprint_bytes));
        });
    });
}

fn causes(html: &mut Html, advice: &Advice) {
    if advice.causes.is_empty() {
        return;
    }
    html.inside("section", "", |html| {
        html.text("h2", "", CAUSES);
        let titles = [
            "data structure",
            "cause",
            "line",
            "#share of time",
            "#gain",
            "why",
            "what to do",
        ];
        html.table(&titles, |html| {
            for cause in &advice.causes {
                html.inside("tr", "", |html| {
                    html.text("td", "name", &cause.structure);
                    html.text("td", "", cause.kind.name());
                    html.text("td", "faint", &place_of_cause(cause));
                    html.number(&percent(cause.share));
                    html.number(&cause.gain.map_or_else(String::new, percent));
                    html.text("td", "", &cause.why);
                    html.text("td", "", &what_to_do(cause));
                });
            }
        });
    });
}

fn policies(html: &mut Html, advice: &Advice) {
    html.inside("section", "", |html| {
        html.text("h2", "", "Policies, the fastest first");
        let slowest = advice
            .policies
            .iter()
            .map(|outcome| outcome.time_ns.wall)
            .max()
            .unwrap_or(0) as f64;
        let base = advice.base().map_or(0, |base| base.time_ns.wall) as f64;
        let outer = advice.policies.iter().find_map(|outcome| outcome.caches.last());
        let misses = format!("#{} misses", outer.map_or("cache", |cache| cache.name.as_str()));
        let mut titles = vec!["policy", "", "#time", "#change", &misses];
        titles.extend([
            "#cold",
            "#capacity",
            "#conflict",
            "#true sharing",
            "#false sharing",
            "#local",
        ]);
        html.table(&titles, |html| {
            for outcome in &advice.policies {
                html.inside("tr", "", |html| {
                    html.text("td", "name", &outcome.policy);
                    html.inside("td", "wide", |html| {
                        let of = &outcome.time_ns;
                        let waiting = of.total.saturating_sub(of.busy);
                        let part = |ns: u64| {
                            if slowest > 0.0 && of.total > 0 {
                                ns as f64 / of.total as f64 * of.wall as f64 / slowest
                            } else {
                                0.0
                            }
                        };
                        html.bar([
                            ("busy", part(of.busy), format!("busy {}", time(of.busy))),
                            ("waiting", part(waiting), format!("waiting {}", time(waiting))),
                        ]);
                    });
                    html.number(&time(outcome.time_ns.wall));
                    let wall = outcome.time_ns.wall as f64;
                    let more = if base > 0.0 { wall / base - 1.0 } else { 0.0 };
                    match outcome.policy == advice.baseline {
                        true => html.text("td", "number none", "as now"),
                        false if more.abs() < 0.0005 => html.text("td", "number none", "same"),
                        false => html.text(
                            "td",
                            if more < 0.0 { "number better" } else { "number worse" },
                            &change(wall, base),
                        ),
                    }
                    let cache = outcome.caches.last().cloned().unwrap_or_default();
                    html.number(&count(cache.misses));
                    for misses in cache.totals().classes {
                        html.maybe(misses);
                    }
                    html.number(&percent(outcome.memory.local_percent / 100.0));
                });
            }
        });
    });
}

fn work(html: &mut Html, advice: &WorkAdvice) {
    html.inside("section", "", |html| {
        html.text("h2", "", &format!("The work in another order, {}", advice.policy));
        html.table(&["cache", "#misses", "#in order", "#change", "by class"], |html| {
            for cache in &advice.caches {
                let (before, after) = (cache.misses.before, cache.misses.after);
                html.inside("tr", "", |html| {
                    html.text("td", "name", &cache.name);
                    html.number(&count(before));
                    html.number(&count(after));
                    match before {
                        _ if before == after => html.text("td", "number none", "same"),
                        0 => html.text("td", "number none", ""),
                        _ => html.text(
                            "td",
                            if after < before {
                                "number better"
                            } else {
                                "number worse"
                            },
                            &change(after as f64, before as f64),
                        ),
                    }
                    let classes = cache
                        .classes
                        .iter()
                        .map(|(class, change)| advise::class_in_words(class, *change));
                    html.text("td", "faint", &classes.collect::<Vec<_>>().join(", "));
                });
            }
        });
        html.text("p", "faint", &crate::work::facts(&advice.work));
    });
}

fn partition(html: &mut Html, advice: &SlotAdvice) {
    html.inside("section", "", |html| {
        html.text("h2", "", &format!("Cache slots: a partition of {}", advice.cache));
        let titles = [
            "data structure",
            "",
            "#slot",
            "#misses",
            "#in slots",
            "#first uses",
            "why",
        ];
        html.table(&titles, |html| {
            for data in &advice.data {
                html.inside("tr", "", |html| {
                    html.text("td", "name", &data.name);
                    html.text("td", "", &data.role);
                    html.number(&bytes(data.slot_bytes));
                    html.number(&count(data.misses.before));
                    html.number(&count(data.misses.after));
                    html.number(&count(data.cold));
                    html.text("td", "faint", &data.why);
                });
            }
        });
    });
}

fn shares(html: &mut Html, advice: &Advice) {
    if advice.shares.is_empty() {
        return;
    }
    html.inside("section", "", |html| {
        html.text("h2", "", &format!("Where the time goes under {}", advice.baseline));
        html.legend(CLASSES);
        let working = || advice.shares.iter().filter(|share| !share.is_waiting());
        let largest = working().map(|share| share.fraction).fold(0.0, f64::max);
        html.table(&["", "", "#share", "#time", "by class of miss"], |html| {
            for share in working() {
                html.inside("tr", "", |html| {
                    html.text("td", "name", &share.name);
                    html.inside("td", "wide", |html| html.bar(parts(share, largest)));
                    html.number(&percent(share.fraction));
                    html.number(&time(share.ns));
                    let classes = share
                        .classes
                        .iter()
                        .map(|(class, ns)| format!("{class} {}", percent(*ns as f64 / share.ns as f64)));
                    html.text("td", "faint", &classes.collect::<Vec<_>>().join(", "));
                });
            }
        });
        let waiting = advice.shares.iter().filter(|share| share.is_waiting());
        let waiting: Vec<_> = waiting
            .map(|share| format!("{} {}", share.name, time(share.ns)))
            .collect();
        if !waiting.is_empty() {
            html.text(
                "p",
                "faint",
                &format!("Beside that, cpus stood idle: {}.", waiting.join(", ")),
            );
        }
        if !advice.served.is_empty() {
            let served = advice
                .served
                .iter()
                .map(|share| format!("{} {}", share.name, percent(share.fraction)));
            let served = served.collect::<Vec<_>>().join(", ");
            html.text("p", "faint", &format!("The waiting ended with data from: {served}."));
        }
    });
}

/// A share's bar: in the colors of its classes where it has any.
fn parts(share: &Share, largest: f64) -> Vec<(&'static str, f64, String)> {
    let scale = |ns: u64| {
        if largest > 0.0 && share.ns > 0 {
            ns as f64 / share.ns as f64 * share.fraction / largest
        } else {
            0.0
        }
    };
    if share.classes.is_empty() {
        let class = if share.part == "busy" { "busy" } else { "waiting" };
        return vec![(class, scale(share.ns), share.name.clone())];
    }
    let classes = share.classes.iter();
    classes
        .map(|(class, ns)| (class_of(class), scale(*ns), format!("{class} {}", time(*ns))))
        .collect()
}

fn structures(html: &mut Html, advice: &Advice) {
    if advice.structures.is_empty() {
        return;
    }
    let stall = advice.base().map_or(0, |base| base.stall_ns());
    html.inside("section", "", |html| {
        html.text("h2", "", "What costs most");
        let titles = [
            "data structure",
            "kind",
            "defined at",
            "#size",
            "#share of stall",
            "misses by class",
            "#misses",
        ];
        html.table(&titles, |html| {
            let most = advice
                .structures
                .iter()
                .map(|structure| structure.nearest().misses)
                .max()
                .unwrap_or(0)
                .max(1);
            for structure in &advice.structures {
                html.inside("tr", "", |html| {
                    html.text("td", "name", &structure.name);
                    html.text("td", "", &structure.kind.to_string());
                    let place = match (&structure.file, structure.line) {
                        (Some(file), Some(line)) => format!("{file}:{line}"),
                        (Some(file), None) => file.clone(),
                        _ => String::new(),
                    };
                    html.text("td", "faint", &place);
                    html.number(&sized(structure).words());
                    html.number(&if stall > 0 {
                        percent(structure.stall_ns as f64 / stall as f64)
                    } else {
                        String::new()
                    });
                    let nearest = structure.nearest();
                    html.inside("td", "wide", |html| {
                        let classes = CLASSES.iter().zip(nearest.classes);
                        html.bar(classes.filter_map(|(class, misses)| {
                            let misses = misses?;
                            Some((
                                class_of(class),
                                misses as f64 / most as f64,
                                format!("{class} {}", count(misses)),
                            ))
                        }));
                    });
                    html.number(&count(nearest.misses));
                });
            }
        });
    });
}

fn false_sharing(html: &mut Html, advice: &Advice) {
    if advice.false_sharing.is_empty() {
        return;
    }
    html.inside("section", "", |html| {
        html.text("h2", "", "False sharing: different data in one line");
        html.table(&["#misses", "structure", "thread", "", "data", "source"], |html| {
            for collision in &advice.false_sharing {
                let structure = short(&collision.structure);
                for (at, side) in collision.sides.iter().enumerate() {
                    html.inside("tr", "", |html| {
                        html.number(&if at == 0 {
                            count(collision.misses)
                        } else {
                            String::new()
                        });
                        html.text("td", "", if at == 0 { &structure } else { "" });
                        html.text("td", "", &side.thread);
                        html.text("td", "", if side.write { "writes" } else { "reads" });
                        html.text("td", "name", &side.field);
                        html.text("td", "faint", side.source.as_deref().unwrap_or(""));
                    });
                }
            }
        });
    });
}
