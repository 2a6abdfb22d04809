//! The presets against the figures of their papers, read from the papers a second time.
#![allow(clippy::unwrap_used)]

use machine::{Cache, Index, Kind, Machine, load, presets};

fn cache<'m>(machine: &'m Machine, name: &str) -> &'m Cache {
    machine.caches.iter().find(|cache| cache.name == name).unwrap()
}

/// (bytes, ways, line, cpus that share one)
fn shape(machine: &Machine, name: &str) -> (u64, u32, u32, u32) {
    let cache = cache(machine, name);
    (cache.bytes, cache.ways, cache.line_bytes, cache.cpus_per_instance)
}

#[test]
fn every_preset_loads_under_its_own_name() {
    let names: Vec<&str> = presets().iter().map(|preset| preset.name).collect();
    let designed = [
        "sgi-power-indigo2-r8000",
        "sgi-indigo2-impact-r10000",
        "simos-r4400",
        "simos-r4400-2way",
        "simos-r4400-4mb",
        "alphaserver-8400",
        "alphaserver-8400-core",
        "flash-cc-numa",
        "flash-cc-now",
        "clovertown-x5355",
        "clovertown-x5365",
        "westmere-x5660",
        "zen3-milan",
        "icelake-sp",
        "zen4-genoa",
        "zen5-turin",
        "zen4-genoa-cxl",
        "sapphire-rapids",
        "sapphire-rapids-snc4",
        "granite-rapids",
        "cascade-lake-4s",
        "ryzen-9950x",
        "core-ultra-285k",
        "graviton4",
    ];
    assert_eq!(names, designed);
    for name in names {
        assert_eq!(load(name).unwrap().name, name);
    }
}

#[test]
fn every_figure_of_a_preset_has_a_source() {
    for preset in presets() {
        for line in preset
            .text
            .lines()
            .filter(|line| line.contains("_ns = ") || line.starts_with("entries = "))
        {
            let explained = line.contains('#') || line.starts_with("hit_ns = 0.0");
            assert!(explained, "{}: `{line}` does not say where it is from", preset.name);
        }
        assert!(preset.text.starts_with('#'), "{} does not say what it is", preset.name);
    }
}

#[test]
fn philbin96_section_4() {
    let r8000 = load("sgi-power-indigo2-r8000").unwrap();
    assert_eq!((r8000.clock_mhz, r8000.cpus), (75.0, 1));
    assert_eq!(shape(&r8000, "L1D"), (16 << 10, 1, 32, 1));
    assert_eq!(shape(&r8000, "L2"), (2 << 20, 4, 128, 1));
    assert_eq!(r8000.memory.local_ns, 1060.0);
    // 7 cycles of 75 MHz.
    assert_eq!(cache(&r8000, "L2").hit_ns, (7.0f64 / 75.0 * 1000.0).floor());

    let r10000 = load("sgi-indigo2-impact-r10000").unwrap();
    assert_eq!((r10000.clock_mhz, r10000.cpus), (195.0, 1));
    assert_eq!(shape(&r10000, "L1I"), (32 << 10, 2, 64, 1));
    assert_eq!(shape(&r10000, "L1D"), (32 << 10, 2, 32, 1));
    assert_eq!(shape(&r10000, "L2"), (1 << 20, 2, 128, 1));
    assert_eq!(r10000.memory.local_ns, 850.0);
}

#[test]
fn bugnion96_sections_2_3_and_6() {
    let base = load("simos-r4400").unwrap();
    assert_eq!(
        (base.clock_mhz, base.memory.nodes, base.memory.bandwidth_gbps),
        (400.0, 1, 1.2)
    );
    assert_eq!((base.memory.local_ns, base.memory.dirty_remote_ns), (500.0, 750.0));
    assert_eq!(shape(&base, "L1D"), (32 << 10, 2, 32, 1));
    for (name, shape_of_l2, colors) in [
        ("simos-r4400", (1 << 20, 1, 128, 1), 256),
        ("simos-r4400-2way", (1 << 20, 2, 128, 1), 128),
        ("simos-r4400-4mb", (4 << 20, 1, 128, 1), 1024),
    ] {
        let machine = load(name).unwrap();
        assert_eq!(shape(&machine, "L2"), shape_of_l2, "{name}");
        assert_eq!(machine.color_count(), colors, "{name}");
        for cpus in 1..=16 {
            assert_eq!(machine.with_cpus(cpus).unwrap().cpus, cpus);
        }
        // Everything but the external cache is the same machine.
        let mut as_base = machine.clone();
        as_base.name.clone_from(&base.name);
        as_base.caches[2] = base.caches[2].clone();
        assert_eq!(as_base, base, "{name}");
    }
}

#[test]
fn bugnion96_section_7() {
    let alpha = load("alphaserver-8400").unwrap();
    assert_eq!((alpha.clock_mhz, alpha.cpus, alpha.page_bytes), (350.0, 8, 8192));
    assert_eq!(shape(&alpha, "B"), (4 << 20, 1, 64, 1));
    assert_eq!(alpha.colors(cache(&alpha, "B")), 512);
    // 96 KB in three ways: 32 KB a way are four pages, which the 512 colors decide as well.
    assert_eq!(alpha.colors(cache(&alpha, "S")), 4);
    assert_eq!(alpha.color_count(), 512);
    // The second machine is the same but for its core, which goes without the software prefetches.
    let mut plain = load("alphaserver-8400-core").unwrap();
    assert!(plain.core.take().is_some() && plain.prefetch.is_none());
    plain.name.clone_from(&alpha.name);
    plain.prefetch.clone_from(&alpha.prefetch);
    assert_eq!(plain, alpha);
}

#[test]
fn verghese96_section_4() {
    for (name, remote) in [("flash-cc-numa", 1200.0), ("flash-cc-now", 3000.0)] {
        let flash = load(name).unwrap();
        assert_eq!((flash.clock_mhz, flash.cpus, flash.memory.nodes), (300.0, 8, 8));
        assert_eq!((flash.memory.local_ns, flash.memory.remote_ns), (300.0, remote));
        assert_eq!(shape(&flash, "L1I"), (32 << 10, 2, 64, 1));
        assert_eq!(shape(&flash, "L2"), (512 << 10, 2, 64, 1));
        assert_eq!(cache(&flash, "L2").hit_ns, 50.0);
        let tlb = flash.tlb.unwrap();
        assert_eq!((tlb.entries, tlb.wired), (64, 8));
        // Section 7.1: the refill is about 15 cycles.
        assert_eq!(tlb.refill_ns, 15.0 / 0.3);
    }
}

#[test]
fn ding11_section_4_1() {
    let x5355 = load("clovertown-x5355").unwrap();
    assert_eq!((x5355.clock_mhz, x5355.cpus), (2660.0, 8));
    let l2 = cache(&x5355, "L2");
    assert_eq!(shape(&x5355, "L2"), (4 << 20, 16, 64, 2));
    // "64 cache colors in each shared L2 cache", each of 64 KB.
    assert_eq!(x5355.colors(l2), 64);
    assert_eq!(l2.bytes / u64::from(x5355.colors(l2)), 64 << 10);
}

#[test]
fn lee12_section_5() {
    let clovertown = load("clovertown-x5365").unwrap();
    assert_eq!((clovertown.clock_mhz, clovertown.cpus), (3000.0, 4));
    assert_eq!(shape(&clovertown, "L1D"), (32 << 10, 8, 64, 1));
    assert_eq!(shape(&clovertown, "L2"), (4 << 20, 16, 64, 2));
    let westmere = load("westmere-x5660").unwrap();
    assert_eq!((westmere.clock_mhz, westmere.cpus), (2800.0, 12));
    assert_eq!(shape(&westmere, "L1I"), (32 << 10, 4, 64, 1));
    assert_eq!(shape(&westmere, "L1D"), (32 << 10, 8, 64, 1));
    assert_eq!(shape(&westmere, "L2"), (256 << 10, 8, 64, 1));
    assert_eq!(shape(&westmere, "L3"), (12288 << 10, 16, 64, 6));
}

/// (nodes, cpus of a node, nodes that share the outermost cache's instances)
fn nodes(name: &str) -> (u32, u32, u32) {
    let machine = load(name).unwrap();
    let of_a_node = machine.cpus / machine.memory.nodes;
    let shared = machine.caches.last().unwrap().cpus_per_instance;
    assert_eq!(machine.cpus % machine.memory.nodes, 0, "{name}: nodes differ in size");
    (machine.memory.nodes, of_a_node, shared.div_ceil(of_a_node))
}

#[test]
fn servers_of_today_have_their_nodes_and_caches_where_they_belong() {
    assert_eq!(nodes("zen4-genoa"), (2, 64, 1));
    assert_eq!(nodes("sapphire-rapids"), (2, 48, 1));
    assert_eq!(nodes("sapphire-rapids-snc4"), (8, 12, 1));
    assert_eq!(nodes("cascade-lake-4s"), (4, 28, 1));
    assert_eq!(nodes("graviton4"), (2, 64, 1));
}

#[test]
fn memory_behind_cxl_is_a_node_without_cpus() {
    let (plain, cxl) = (load("zen4-genoa").unwrap(), load("zen4-genoa-cxl").unwrap());
    assert_eq!((plain.memory.all_nodes(), cxl.memory.all_nodes()), (2, 3));
    assert_eq!(cxl.memory.nodes, 2);
    let tier = cxl.memory.tier(2).unwrap();
    assert_eq!((tier.latency_from(0), tier.latency_from(1)), (279.0, 364.0));
    assert_eq!((cxl.memory.tier(1), cxl.memory.bandwidth_of(2)), (None, 17.6));
    // All else is that of the machine without.
    let mut without = cxl.clone();
    without.memory.tiers.clear();
    without.name.clone_from(&plain.name);
    assert_eq!(without, plain);
}

#[test]
fn sub_numa_clusters_are_one_socket_in_four_parts() {
    let (whole, parts) = (load("sapphire-rapids").unwrap(), load("sapphire-rapids-snc4").unwrap());
    assert_eq!(cache(&whole, "L3").bytes, 4 * cache(&parts, "L3").bytes);
    assert_eq!(whole.memory.bandwidth_gbps, 4.0 * parts.memory.bandwidth_gbps);
    // Whichever way a line goes it takes as long back, and every node has three neighbours in its socket.
    let distances = &parts.memory.distances;
    for (from, row) in distances.iter().enumerate() {
        for (to, distance) in row.iter().enumerate().filter(|(to, _)| *to != from) {
            assert_eq!(*distance, distances[to][from]);
            let latency = parts.memory.remote_ns * f64::from(*distance) / 15.0;
            let measured = if from / 4 == to / 4 { 102.0..123.5 } else { 186.0..189.5 };
            assert!(measured.contains(&latency), "{from} to {to}: {latency}");
        }
    }
}

#[test]
fn sliced_caches_fill_all_their_sets_evenly() {
    for preset in presets() {
        let machine = load(preset.name).unwrap();
        for cache in machine.caches.iter().filter(|cache| cache.hash.is_some()) {
            // As many lines as the cache holds sets, 64 times over, from consecutive addresses.
            let sets = cache.sets();
            let mut lines_of_slice = vec![0u64; cache.slices() as usize];
            let mut used = vec![false; sets as usize];
            for line in 0..64 * sets {
                let set = cache.set_of(line * u64::from(cache.line_bytes));
                lines_of_slice[(set / cache.sets_per_slice()) as usize] += 1;
                used[set as usize] = true;
            }
            assert!(
                used.iter().all(|used| *used),
                "{} {} leaves sets unused",
                machine.name,
                cache.name
            );
            let fair = 64 * sets / u64::from(cache.slices());
            let worst = lines_of_slice.iter().map(|lines| lines.abs_diff(fair)).max().unwrap();
            assert!(
                worst <= fair / 100,
                "{} {}: a slice is {worst} off {fair}",
                machine.name,
                cache.name
            );
        }
    }
}

#[test]
fn colors_keep_their_promise_whatever_the_slice() {
    // Pages of different colors never share a set of any physically indexed cache.
    for name in [
        "westmere-x5660",
        "icelake-sp",
        "zen3-milan",
        "clovertown-x5355",
        "zen4-genoa",
        "sapphire-rapids",
        "cascade-lake-4s",
    ] {
        let machine = load(name).unwrap();
        let last = machine.caches.last().unwrap();
        assert_eq!((last.index, last.kind), (Index::Physical, Kind::Unified));
        let sets = |frame: u64| {
            let lines = machine.page_bytes / u64::from(last.line_bytes);
            let page = frame * machine.page_bytes;
            (0..lines).map(move |line| last.set_of(page + line * u64::from(last.line_bytes)))
        };
        let first: std::collections::HashSet<u64> = sets(12345).collect();
        for frame in 12346..12346 + u64::from(machine.color_count()) - 1 {
            assert_ne!(machine.color_of(frame), machine.color_of(12345));
            assert!(
                sets(frame).all(|set| !first.contains(&set)),
                "{name}: frames 12345 and {frame} meet"
            );
        }
    }
}

/// The cache that is divided among cpus, and the number of its instances: a placement of threads chooses among these.
#[test]
fn chiplet_machines_have_their_complexes() {
    for (name, divided, cpus, bytes, count) in [
        ("zen3-milan", "L3", 8, 32 << 20, 16),
        ("zen4-genoa", "L3", 8, 32 << 20, 16),
        ("zen5-turin", "L3", 8, 32 << 20, 16),
        ("sapphire-rapids", "L3", 48, 105 << 20, 2),
        ("sapphire-rapids-snc4", "L3", 12, (105 << 20) / 4, 8),
        ("granite-rapids", "L3", 32, 160 << 20, 3),
        ("graviton4", "L3", 64, 36 << 20, 2),
        ("clovertown-x5355", "L2", 2, 4 << 20, 4),
    ] {
        let machine = load(name).unwrap();
        let cache = machine.divided_cache().unwrap();
        assert_eq!(
            (
                cache.name.as_str(),
                cache.cpus_per_instance,
                cache.bytes,
                machine.cpus / cache.cpus_per_instance
            ),
            (divided, cpus, bytes, count),
            "{name}"
        );
    }
    for name in ["simos-r4400", "flash-cc-numa", "sgi-power-indigo2-r8000"] {
        assert_eq!(load(name).unwrap().divided_cache(), None, "{name}");
    }
}
