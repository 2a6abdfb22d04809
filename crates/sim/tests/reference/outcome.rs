//! The counts, under the names and in the units in which the simulator reports them.

use machine::Machine;
use serde_json::{Value, json};

use super::instance::{Counts, Stall};
use super::software_prefetch::Prefetches;
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
        self.stall.late += other.stall.late;
        for (sum, beyond) in self.stall.beyond.iter_mut().zip(other.stall.beyond) {
            *sum += beyond;
        }
    }
}

impl Outcome {
    /// The fields of the JSON object that both simulators fill; classes only where they are on.
    pub fn json(&self, machine: &Machine, classes: bool) -> Value {
        let mut all = sum(&self.cpus, machine, classes);
        all["time_ns"]["wall"] = json!(self.wall >> 20);
        let tiers = &machine.memory.tiers;
        if machine.memory.bandwidth_gbps > 0.0 || tiers.iter().any(|tier| tier.bandwidth_gbps > 0.0) {
            let [data, writebacks, upgrades] = self.occupied.map(|time| time >> 20);
            let percent = match self.wall >> 20 {
                0 => 0.0,
                wall => {
                    100.0 * (data + writebacks + upgrades) as f64
                        / (wall as f64 * (f64::from(machine.memory.nodes) + tiers.len() as f64))
                }
            };
            all["bus"] = json!({
                "data": data, "writebacks": writebacks, "upgrades": upgrades, "occupancy_percent": percent,
            });
        }
        let memory = [
            ("pages", self.pages),
            ("pages_max", self.pages_max),
            ("migrations", self.moved),
            ("replications", self.copied),
            ("collapses", self.collapsed),
        ];
        for (name, count) in memory {
            all["memory"][name] = json!(count);
        }
        if self.faults {
            let sum = |of: fn(&CpuResult) -> u64| self.cpus.iter().map(of).sum::<u64>();
            all["memory"]["page_faults"] =
                json!({ "first": sum(|cpu| cpu.faults.0), "again": sum(|cpu| cpu.faults.1) });
        }
        let total = |of: fn(&CpuResult) -> u64| self.cpus.iter().map(of).sum::<u64>();
        all["references"] = json!(total(|cpu| cpu.references));
        all["instructions"] = match self.knows_instructions {
            true => json!(total(|cpu| cpu.instructions)),
            false => Value::Null,
        };
        if let Some(windows) = &self.windows {
            let window = |(references, wall, misses): &(u64, u64, Vec<u64>)| json!({ "references": references, "wall_ns": wall >> 20, "misses": misses });
            all["windows"]["counted"] = windows.iter().map(window).collect();
        }
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
    let faults = total(&|cpu| cpu.time.faults >> 20);
    let imbalance = total(&|cpu| cpu.time.imbalance >> 20);
    let sequential = total(&|cpu| cpu.time.sequential >> 20);
    let synchronization = total(&|cpu| cpu.time.synchronization >> 20);
    let prefetch_stall = total(&|cpu| cpu.time.prefetch >> 20);
    let parts: Vec<[u64; 9]> = cpus.iter().map(parts).collect();
    let part = |number: usize| parts.iter().map(|parts| parts[number]).sum::<u64>();
    let class = |number: usize| if classes { json!(part(number)) } else { Value::Null };
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
            if machine.core.is_some() || machine.prefetch.is_some() && is_outermost(machine, kind) {
                object["stall_ns"]["late"] = json!(stall(|s| s.late));
            }
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
    let mut all = json!({
        "caches": caches,
        "tlb": match machine.tlb {
            Some(_) => json!({ "accesses": total(&|cpu| cpu.tlb.0), "misses": total(&|cpu| cpu.tlb.1) }),
            None => json!({ "accesses": null, "misses": null }),
        },
        "memory": { "local": total(&|cpu| cpu.local), "remote": total(&|cpu| cpu.remote) },
        "time_ns": {
            "busy": busy, "cache_stall": cache_stall, "local_stall": local_stall, "remote_stall": remote_stall,
            "tlb_stall": tlb_stall, "policy_overhead": policy, "imbalance": imbalance,
            "sequential": sequential, "synchronization": synchronization, "prefetch_stall": prefetch_stall,
            "total": busy + cache_stall + local_stall + remote_stall + tlb_stall + policy + faults
                + imbalance + sequential + synchronization + prefetch_stall,
            "stall_by_class": {
                "on_chip": part(0), "cold": class(1), "capacity": class(2), "conflict": class(3),
                "true_sharing": class(4), "false_sharing": class(5), "unclassed": part(6),
                "upgrade": part(7), "late_prefetch": part(8),
            },
        },
    });
    if faults > 0 {
        all["time_ns"]["page_faults"] = json!(faults);
    }
    if machine.prefetch.is_some() {
        let total = |of: fn(&Prefetches) -> u64| total(&|cpu| of(&cpu.prefetches));
        all["prefetch"] = json!({
            "issued": total(|p| p.issued), "dropped_tlb": total(|p| p.dropped_tlb),
            "dropped_unmapped": total(|p| p.dropped_unmapped), "already_present": total(|p| p.already_present),
            "brought": total(|p| p.brought), "useful": total(|p| p.useful), "late": total(|p| p.late),
        });
    }
    all
}

/// A cpu's waits for caches and memory, by reason, in whole nanoseconds that add up to its reported stalls.
fn parts(cpu: &CpuResult) -> [u64; 9] {
    let mut sum = Counts::default();
    cpu.caches.iter().for_each(|counts| sum.add(counts));
    let [cold, capacity, conflict, true_sharing, false_sharing, no_class] = sum.stall.beyond;
    let unclassed = no_class + cpu.unclassed;
    let parts = [
        cpu.on_chip,
        cold,
        capacity,
        conflict,
        true_sharing,
        false_sharing,
        unclassed,
        sum.stall.upgrade,
        sum.stall.late,
    ];
    let time = &cpu.time;
    let all: u64 = parts.iter().sum();
    assert_eq!(all, time.cache + time.local + time.remote, "nothing is left over");
    let reported = (time.cache >> 20) + (time.local >> 20) + (time.remote >> 20);
    let upto = |number: usize| -> u64 {
        let sum: u64 = parts[..number].iter().sum();
        (u128::from(sum) * u128::from(reported) / u128::from(all.max(1))) as u64
    };
    std::array::from_fn(|number| upto(number + 1) - upto(number))
}

/// Returns whether a cache is the outermost one for data.
fn is_outermost(machine: &Machine, kind: usize) -> bool {
    let data = machine.caches.iter().enumerate();
    let data = data.filter(|(_, cache)| cache.kind != machine::Kind::Instruction);
    data.max_by_key(|(_, cache)| cache.level)
        .is_some_and(|(number, _)| number == kind)
}
