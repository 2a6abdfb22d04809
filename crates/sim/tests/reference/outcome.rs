//! What was counted, under the names and in the units in which the simulator reports it.

use machine::Machine;
use serde_json::{Value, json};

use super::instance::{Counts, Stall};
use super::{CpuResult, Outcome};

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.accesses += other.accesses;
        self.hits += other.hits;
        self.misses += other.misses;
        self.writebacks += other.writebacks;
        self.upgrades += other.upgrades;
        self.prefetches += other.prefetches;
        self.prefetch_hits += other.prefetch_hits;
        self.cold += other.cold;
        self.capacity += other.capacity;
        self.conflict += other.conflict;
        self.true_sharing += other.true_sharing;
        self.false_sharing += other.false_sharing;
        self.stall.hit += other.stall.hit;
        self.stall.upgrade += other.stall.upgrade;
        self.stall.miss += other.stall.miss;
        self.stall.cold += other.stall.cold;
        self.stall.capacity += other.stall.capacity;
        self.stall.conflict += other.stall.conflict;
        self.stall.true_sharing += other.stall.true_sharing;
        self.stall.false_sharing += other.stall.false_sharing;
    }
}

impl Outcome {
    pub fn cache(&self, kind: usize) -> Counts {
        let mut sum = Counts::default();
        for cpu in &self.cpus {
            sum.add(&cpu.caches[kind]);
        }
        sum
    }

    /// The fields of the JSON object that both simulators fill; classes only where they are on.
    pub fn json(&self, machine: &Machine, classes: bool) -> Value {
        let mut all = sum(&self.cpus, machine, classes);
        all["time_ns"]["wall"] = json!(self.wall >> 20);
        all["memory"]["pages"] = json!(self.pages);
        let total = |of: fn(&CpuResult) -> u64| self.cpus.iter().map(of).sum::<u64>();
        all["references"] = json!(total(|cpu| cpu.references));
        all["instructions"] = match self.knows_instructions {
            true => json!(total(|cpu| cpu.instructions)),
            false => Value::Null,
        };
        if let Some(hints) = &self.hints {
            all["cdpc"] = hints.clone();
        }
        if machine.cpus > 1 {
            let each = self.cpus.iter();
            all["per_cpu"] = each
                .map(|cpu| sum(std::slice::from_ref(cpu), machine, classes))
                .collect();
        }
        all
    }
}

fn sum(cpus: &[CpuResult], machine: &Machine, classes: bool) -> Value {
    let total = |of: &dyn Fn(&CpuResult) -> u64| cpus.iter().map(of).sum::<u64>();
    // Rounded down for each cpu, then added up.
    let busy = total(&|cpu| cpu.time.busy >> 20);
    let cache_stall = total(&|cpu| cpu.time.cache >> 20);
    let local_stall = total(&|cpu| cpu.time.local >> 20);
    let remote_stall = total(&|cpu| cpu.time.remote >> 20);
    let tlb_stall = total(&|cpu| cpu.time.tlb >> 20);
    let policy = total(&|cpu| cpu.time.policy >> 20);
    let imbalance = total(&|cpu| cpu.time.imbalance >> 20);
    let caches: Vec<Value> = (machine.caches.iter().enumerate())
        .map(|(kind, cache)| {
            let mut counts = Counts::default();
            for cpu in cpus {
                counts.add(&cpu.caches[kind]);
            }
            let stall = |of: fn(&Stall) -> u64| total(&|cpu| of(&cpu.caches[kind].stall) >> 20);
            let mut object = json!({
                "name": cache.name, "level": cache.level,
                "accesses": counts.accesses, "hits": counts.hits, "misses": counts.misses,
                "writebacks": counts.writebacks, "upgrades": counts.upgrades,
                "stall_ns": { "hit": stall(|s| s.hit), "upgrade": stall(|s| s.upgrade), "miss": stall(|s| s.miss) },
            });
            if cache.prefetch.is_some() {
                object["prefetches"] = json!(counts.prefetches);
                object["prefetch_hits"] = json!(counts.prefetch_hits);
            }
            if classes {
                let stalls = [
                    ("cold", stall(|s| s.cold)),
                    ("capacity", stall(|s| s.capacity)),
                    ("conflict", stall(|s| s.conflict)),
                    ("true_sharing", stall(|s| s.true_sharing)),
                    ("false_sharing", stall(|s| s.false_sharing)),
                ];
                object["stall_ns"]["miss"] = json!(stalls.iter().map(|(_, ns)| ns).sum::<u64>());
                for (name, ns) in stalls {
                    object["stall_ns"][name] = json!(ns);
                }
                for (name, count) in [
                    ("cold", counts.cold),
                    ("capacity", counts.capacity),
                    ("conflict", counts.conflict),
                    ("true_sharing", counts.true_sharing),
                    ("false_sharing", counts.false_sharing),
                ] {
                    object[name] = json!(count);
                }
            }
            object
        })
        .collect();
    json!({
        "caches": caches,
        "tlb": match machine.tlb {
            Some(_) => json!({ "accesses": total(&|cpu| cpu.tlb.0), "misses": total(&|cpu| cpu.tlb.1) }),
            None => json!({ "accesses": null, "misses": null }),
        },
        "memory": { "local": total(&|cpu| cpu.local), "remote": total(&|cpu| cpu.remote) },
        "time_ns": {
            "busy": busy, "cache_stall": cache_stall, "local_stall": local_stall, "remote_stall": remote_stall,
            "tlb_stall": tlb_stall, "policy_overhead": policy, "imbalance": imbalance,
            "total": busy + cache_stall + local_stall + remote_stall + tlb_stall + policy + imbalance,
        },
    })
}
