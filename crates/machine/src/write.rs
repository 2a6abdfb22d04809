//! Writing a machine as TOML, every key in full, so that reading it gives the same machine.

use std::fmt::{Display, Write as _};

use crate::model::{Cache, HugeData, Index, Kind, Machine, Regions, Replacement, Write};

impl Machine {
    /// A description that [`crate::from_toml`] reads back as this machine.
    pub fn to_toml(&self) -> String {
        let mut out = Toml(String::new());
        out.key("name", text(&self.name));
        out.key("clock_mhz", number(self.clock_mhz));
        out.key("page_bytes", self.page_bytes);
        out.key("cpus", self.cpus);
        for cache in &self.caches {
            out.cache(cache);
        }
        if let Some(tlb) = &self.tlb {
            out.header("[tlb]");
            out.key("entries", tlb.entries);
            out.key("ways", tlb.ways);
            out.key("wired", tlb.wired);
            out.key("refill_ns", number(tlb.refill_ns));
            if tlb.walkers > 0 {
                out.key("walkers", tlb.walkers);
            }
            if let Some(huge_refill_ns) = tlb.huge_refill_ns {
                out.key("huge_refill_ns", number(huge_refill_ns));
            }
            for far in &tlb.far {
                out.header("[[tlb.far]]");
                out.key("pages", far.pages);
                out.key("refill_ns", number(far.refill_ns));
            }
        }
        let memory = &self.memory;
        out.header("[memory]");
        out.key("nodes", memory.nodes);
        out.key("local_ns", number(memory.local_ns));
        out.key("remote_ns", number(memory.remote_ns));
        out.key("dirty_remote_ns", number(memory.dirty_remote_ns));
        out.key("bandwidth_gbps", number(memory.bandwidth_gbps));
        if memory.upgrade_ns > 0.0 {
            out.key("upgrade_ns", number(memory.upgrade_ns));
        }
        if memory.fault_ns > 0.0 || memory.clear_ns > 0.0 {
            out.key("fault_ns", number(memory.fault_ns));
            out.key("clear_ns", number(memory.clear_ns));
        }
        match memory.huge_pages {
            HugeData::Never => {}
            HugeData::Madvise => out.key("huge_pages", text("madvise")),
            HugeData::Always => out.key("huge_pages", text("always")),
        }
        out.key("frames_per_node", memory.frames_per_node);
        if !memory.distances.is_empty() {
            let rows: Vec<String> = memory.distances.iter().map(|row| format!("    {row:?},\n")).collect();
            out.key("distances", format!("[\n{}]", rows.concat()));
        }
        for tier in &memory.tiers {
            out.header("[[memory.tier]]");
            out.key("name", text(&tier.name));
            out.key("latency_ns", number(tier.latency_ns));
            out.key("far_latency_ns", number(tier.far_latency_ns));
            out.key("near", format!("{:?}", tier.near));
            out.key("bandwidth_gbps", number(tier.bandwidth_gbps));
            out.key("frames", tier.frames);
        }
        if let Some(prefetch) = &self.prefetch {
            out.header("[prefetch]");
            out.key("outstanding", prefetch.outstanding);
        }
        if let Some(core) = &self.core {
            out.header("[core]");
            out.key("instructions_per_clock", number(core.instructions_per_clock));
            out.key("window", core.window);
            out.key("outstanding", core.outstanding);
            if core.outstanding_of_bank > 0 {
                out.key("outstanding_of_bank", core.outstanding_of_bank);
            }
            if core.line_ns > 0.0 {
                out.key("line_ns", number(core.line_ns));
            }
            if core.memory_line_ns > 0.0 {
                out.key("memory_line_ns", number(core.memory_line_ns));
            }
            if core.huge_memory_line_ns > 0.0 {
                out.key("huge_memory_line_ns", number(core.huge_memory_line_ns));
            }
            out.key("store_buffer", core.store_buffer);
            if core.set_refill_ns > 0.0 {
                out.key("set_refill_ns", number(core.set_refill_ns));
                out.key("set_rewrite_ns", number(core.set_rewrite_ns));
            }
            if core.bank_refill_ns > 0.0 {
                out.key("bank_refill_ns", number(core.bank_refill_ns));
            }
            if core.misprediction_ns > 0.0 {
                out.key("misprediction_ns", number(core.misprediction_ns));
            }
        }
        if let Some(regions) = &self.regions {
            out.header("[regions]");
            out.regions(regions);
        }
        out.0
    }
}

impl Regions {
    /// The keys of the table `[regions]`.
    pub fn to_toml(&self) -> String {
        let mut out = Toml(String::new());
        out.regions(self);
        out.0
    }
}

struct Toml(String);

impl Toml {
    // Writing to a String cannot fail.
    fn key(&mut self, key: &str, value: impl Display) {
        let _ = writeln!(self.0, "{key} = {value}");
    }

    fn header(&mut self, header: &str) {
        let _ = writeln!(self.0, "\n{header}");
    }

    fn regions(&mut self, regions: &Regions) {
        self.key("switch_ns", number(regions.switch_ns));
        if let Some(gains) = &regions.gains {
            self.key("stay_least_ns", gains.stay_least_ns);
            self.key("stay_most_ns", gains.stay_most_ns);
            self.key("one_cache", gains.one_cache);
            self.key("all_caches", gains.all_caches);
        }
    }

    fn cache(&mut self, cache: &Cache) {
        self.header("[[cache]]");
        self.key("name", text(&cache.name));
        self.key("level", cache.level);
        let kind = match cache.kind {
            Kind::Data => "data",
            Kind::Instruction => "instruction",
            Kind::Unified => "unified",
        };
        self.key("kind", text(kind));
        self.key("bytes", cache.bytes);
        self.key("ways", cache.ways);
        self.key("line_bytes", cache.line_bytes);
        self.key("cpus_per_instance", cache.cpus_per_instance);
        let index = match cache.index {
            Index::Virtual => "virtual",
            Index::Physical => "physical",
        };
        self.key("index", text(index));
        self.key("hit_ns", number(cache.hit_ns));
        if cache.transfer_ns > 0.0 {
            self.key("transfer_ns", number(cache.transfer_ns));
        }
        if cache.others_gbps > 0.0 {
            self.key("others_gbps", number(cache.others_gbps));
        }
        let write = match cache.write {
            Write::Back => "back",
            Write::Through => "through",
        };
        self.key("write", text(write));
        self.key("allocate_on_write", cache.allocate_on_write);
        self.key("inclusive", cache.inclusive);
        let replacement = match cache.replacement {
            Replacement::Lru => "lru",
            Replacement::Plru => "plru",
            Replacement::Random => "random",
            Replacement::Reuse => "reuse",
        };
        self.key("replacement", text(replacement));
        if let Some(prefetch) = &cache.prefetch {
            self.key("prefetch", text("stream"));
            self.key("prefetch_streams", prefetch.streams);
            self.key("prefetch_lines", prefetch.lines);
            if prefetch.step != prefetch.lines {
                self.key("prefetch_step", prefetch.step);
            }
            if prefetch.pair {
                self.key("prefetch_pair", true);
            }
            if prefetch.runs_on {
                self.key("prefetch_runs_on", true);
            }
            if prefetch.after > 0 {
                self.key("prefetch_after", prefetch.after);
            }
            if let Some(stride) = &prefetch.stride {
                self.key("prefetch_stride_entries", stride.entries);
                self.key("prefetch_stride_ahead", stride.ahead);
                self.key("prefetch_stride_bytes", stride.bytes);
            }
        }
        if let Some(hash) = &cache.hash {
            self.header("[cache.hash]");
            self.key("slices", hash.slices);
            let masks: Vec<String> = hash.masks.iter().map(|mask| format!("{mask:#x}")).collect();
            self.key("masks", format!("[{}]", masks.join(", ")));
        }
    }
}

fn text(text: &str) -> String {
    toml::Value::from(text).to_string()
}

// The shortest digits that read back as the same number, and always with a point or an exponent.
fn number(number: f64) -> String {
    format!("{number:?}")
}
