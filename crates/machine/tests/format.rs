//! The TOML format: input that it accepts, input that it refuses, and its error messages.
#![allow(clippy::unwrap_used)]

use machine::{
    Cache, Core, FarPages, Gains, HugeData, Index, IndexHash, Kind, Machine, Memory, Prefetch, Regions, Replacement,
    SoftwarePrefetch, Stride, Tier, Tlb, Write, from_toml, load, presets,
};
use proptest::prelude::*;

const SMALLEST: &str = r#"name = "m"
clock_mhz = 100
page_bytes = 4096
cpus = 2

[[cache]]
name = "L1"
level = 1
kind = "unified"
bytes = 8192
ways = 2
line_bytes = 32
hit_ns = 0

[[cache]]
name = "L2"
level = 2
kind = "unified"
bytes = 65536
ways = 4
line_bytes = 64
cpus_per_instance = 2
hit_ns = 10

[memory]
local_ns = 100
"#;

/// The error of `SMALLEST` with one line replaced (line numbers from 1).
fn error_with(line: usize, text: &str) -> String {
    let mut lines: Vec<&str> = SMALLEST.lines().collect();
    lines[line - 1] = text;
    from_toml(&lines.join("\n"), "m.toml").unwrap_err().to_string()
}

#[test]
fn what_is_left_out_has_the_documented_default() {
    let machine = from_toml(SMALLEST, "m.toml").unwrap();
    let l1 = &machine.caches[0];
    assert_eq!(
        (l1.cpus_per_instance, l1.index, l1.write, l1.allocate_on_write),
        (1, Index::Physical, Write::Back, true)
    );
    assert_eq!(
        (l1.inclusive, l1.replacement, l1.hash.as_ref(), l1.prefetch),
        (false, Replacement::Lru, None, None)
    );
    assert_eq!(machine.tlb, None);
    let memory = &machine.memory;
    assert_eq!(
        (memory.nodes, memory.remote_ns, memory.dirty_remote_ns),
        (1, 100.0, 100.0)
    );
    assert_eq!(
        (memory.bandwidth_gbps, memory.frames_per_node, memory.distances.len()),
        (0.0, 0, 0)
    );

    let through = SMALLEST.replacen("hit_ns = 0\n", "hit_ns = 0\nwrite = \"through\"\n", 1);
    assert!(!from_toml(&through, "m.toml").unwrap().caches[0].allocate_on_write);
    let tlb = format!("{SMALLEST}\n[tlb]\nentries = 64\nrefill_ns = 5\n");
    let tlb = from_toml(&tlb, "m.toml").unwrap().tlb.unwrap();
    assert_eq!((tlb.ways, tlb.wired), (64, 0));
}

#[test]
fn caches_are_ordered_by_level_and_errors_by_the_file() {
    let swapped = SMALLEST
        .replace("level = 1", "level = X")
        .replace("level = 2", "level = 1")
        .replace("level = X", "level = 2");
    // The second in the file is now the nearer one, with the longer line.
    let error = from_toml(&swapped, "m.toml").unwrap_err().to_string();
    assert_eq!(
        error,
        "m.toml:12: cache[0].line_bytes: found 32; allowed: at least the 64 of \"L2\", which is nearer to the cpu"
    );
    let fitting = swapped
        .replace("line_bytes = 32", "line_bytes = 64")
        .replace("cpus_per_instance = 2\n", "");
    let machine = from_toml(&fitting, "m.toml").unwrap();
    let names: Vec<&str> = machine.caches.iter().map(|cache| cache.name.as_str()).collect();
    assert_eq!(names, ["L2", "L1"]);
}

#[test]
fn errors_name_file_line_key_what_was_found_and_what_is_allowed() {
    for (line, text, expected) in [
        (
            2,
            "clock_mhz = -1",
            "m.toml:2: clock_mhz: found -1; allowed: 0.001 to 1000000",
        ),
        (
            2,
            "clock_mhz = nan",
            "m.toml:2: clock_mhz: found NaN; allowed: 0.001 to 1000000",
        ),
        (
            2,
            "clock_mhz = \"fast\"",
            "m.toml:2: clock_mhz: found \"fast\"; allowed: a number, such as 75 or 93.5",
        ),
        (
            3,
            "page_bytes = 5000",
            "m.toml:3: page_bytes: found 5000; allowed: a power of two from 512 to 1073741824",
        ),
        (4, "cpus = 129", "m.toml:4: cpus: found 129; allowed: 1 to 128"),
        (
            4,
            "cpus = -1",
            "m.toml:4: cpus: found -1; allowed: a whole number from 0 to 4294967295",
        ),
        (
            4,
            "",
            "m.toml:1: cpus: this key is required and missing; give it a whole number",
        ),
        (
            9,
            "kind = \"both\"",
            "m.toml:9: cache[0].kind: found \"both\"; allowed: \"data\" or \"instruction\" or \"unified\"",
        ),
        (
            10,
            "bytes = 8200",
            "m.toml:10: cache[0].bytes: found 8200; allowed: a multiple of ways x line_bytes = 64",
        ),
        (
            10,
            "bytes = 99999999999999",
            "m.toml:10: cache[0].bytes: found 99999999999999; allowed: 1 to 17179869184",
        ),
        (
            11,
            "way = 2",
            "m.toml:6: cache[0].ways: this key is required and missing (did you mean it by `way`?); give it a whole number",
        ),
        (
            12,
            "line_bytes = 512",
            "m.toml:12: cache[0].line_bytes: found 512; allowed: a power of two from 4 to 256",
        ),
        (
            13,
            "hit_ns = inf",
            "m.toml:13: cache[0].hit_ns: found inf; allowed: 0 to 1000000000 nanoseconds",
        ),
        (
            16,
            "name = \"L1\"",
            "m.toml:16: cache[1].name: found \"L1\"; allowed: a name that no other cache has",
        ),
        (
            17,
            "level = 3",
            "m.toml:17: cache[1].level: found 3; allowed: levels without gaps; nothing has level 2",
        ),
        (
            22,
            "cpus_per_instance = 0",
            "m.toml:22: cache[1].cpus_per_instance: found 0; allowed: 1 to 128",
        ),
        (
            26,
            "local_ns = 100\nnodes = 2",
            "m.toml:25: memory.remote_ns: this key is required and missing; give it a number, such as 75 or 93.5",
        ),
        (
            26,
            "local_ns = 1\nlocl_ns = 2",
            "m.toml:27: memory.locl_ns: there is no such key (did you mean `local_ns`?); the keys here are \
            nodes, local_ns, remote_ns, dirty_remote_ns, bandwidth_gbps, upgrade_ns, fault_ns, clear_ns, huge_pages, frames_per_node, distances, tier",
        ),
        (
            26,
            "loacl_ns = 1\nnodes = 1",
            "m.toml:25: memory.local_ns: this key is required and missing (did you mean it by `loacl_ns`?); give it a number, \
            such as 75 or 93.5",
        ),
    ] {
        assert_eq!(error_with(line, text), expected);
    }
    let error = error_with(2, "clock_mhz = = 3");
    assert!(error.starts_with("m.toml:2:13: not valid TOML: "), "{error}");
    let error = from_toml("", "m.toml").unwrap_err().to_string();
    assert_eq!(
        error,
        "m.toml:1: name: this key is required and missing; give it a string, such as \"L2\""
    );
}

#[test]
fn rules_about_several_keys() {
    for (from, to, expected) in [
        (
            "level = 2",
            "level = 1",
            "m.toml:18: cache[1].kind: found a second cache at level 1",
        ),
        ("ways = 2\n", "ways = 1\nreplacement = \"plru\"\n", ""),
        (
            "bytes = 8192\nways = 2\n",
            "bytes = 12288\nways = 3\nreplacement = \"plru\"\n",
            "m.toml:11: cache[0].ways: found 3; allowed: a power of two",
        ),
        (
            "[memory]",
            "[tlb]\nentries = 8\nwired = 8\nrefill_ns = 1\n[memory]",
            "m.toml:27: tlb.wired: found 8; allowed: less than entries = 8",
        ),
        (
            "[memory]",
            "[tlb]\nentries = 8\nways = 3\nrefill_ns = 1\n[memory]",
            "m.toml:27: tlb.ways: found 3; allowed: a divisor of entries = 8",
        ),
        (
            "cpus = 2",
            "cpus = 3",
            "m.toml:22: cache[1].cpus_per_instance: found 2; allowed: a divisor of cpus = 3",
        ),
        (
            "cpus_per_instance = 2",
            "cpus_per_instance = 2\nothers_gbps = -1",
            "m.toml:23: cache[1].others_gbps: found -1; allowed: a number from 0 to 10000",
        ),
        (
            "name = \"L1\"",
            "name = \"L1\"\nothers_gbps = 1",
            "m.toml:8: cache[0].others_gbps: found 1; allowed: 0, because this is the first cache that a core asks, and \
             others bring lines only into caches behind it",
        ),
        (
            "local_ns = 100",
            "local_ns = 1\ndistances = [[10, 20]]",
            "m.toml:27: memory.distances[0]: found 2 distances; allowed: one for each of the 1 nodes",
        ),
        (
            "local_ns = 100",
            "local_ns = 1\ndistances = [[9]]",
            "m.toml:27: memory.distances[0][0]: found 9; allowed: 10",
        ),
        ("[memory]", "[cache.hash]\nslices = 2\nmasks = [0x20000]\n[memory]", ""),
        (
            "[memory]",
            "[cache.hash]\nslices = 2\nmasks = [0x40]\n[memory]",
            "m.toml:27: cache[1].hash.masks: found 0 independent masks above bit 12",
        ),
        (
            "[memory]",
            "[cache.hash]\nslices = 2\nmasks = [0x20]\n[memory]",
            "m.toml:27: cache[1].hash.masks[0]: found 0x20; allowed: address bits from 6",
        ),
        (
            "[memory]",
            "[cache.hash]\nslices = 4\nmasks = [0x20000]\n[memory]",
            "m.toml:27: cache[1].hash.masks: found 1 masks; allowed: 2",
        ),
        (
            "[memory]",
            "[cache.hash]\nslices = 2\nmasks = [0x20000, 0x40000]\n[memory]",
            "m.toml:27: cache[1].hash.masks: found 2 masks; allowed: 1",
        ),
    ] {
        let result = from_toml(&SMALLEST.replacen(from, to, 1), "m.toml");
        match result {
            Ok(_) => assert_eq!(expected, "", "{to} was accepted"),
            Err(error) => {
                let error = error.to_string();
                assert!(!expected.is_empty() && error.starts_with(expected), "{error}");
            }
        }
    }
}

#[test]
fn names_that_are_not_there_get_the_nearest() {
    let error = load("simos-r440").unwrap_err().to_string();
    assert!(error.contains("(did you mean `simos-r4400`?)"), "{error}");
    assert!(
        load("no-such-file.toml")
            .unwrap_err()
            .to_string()
            .starts_with("no-such-file.toml: cannot be read")
    );
    assert!(load("/dev/zero").unwrap_err().to_string().contains("too long"));
    assert!(load("/").is_err());
    assert!(load("").is_err());
}

#[test]
fn files_are_read_by_path() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine.toml");
    std::fs::write(&path, SMALLEST).unwrap();
    assert_eq!(load(path.to_str().unwrap()).unwrap(), from_toml(SMALLEST, "").unwrap());
}

#[test]
fn another_number_of_cpus() {
    let clovertown = load("clovertown-x5355").unwrap();
    for cpus in [1, 2, 6, 12, 126] {
        assert_eq!(
            clovertown.with_cpus(cpus).unwrap(),
            Machine {
                cpus,
                ..clovertown.clone()
            }
        );
    }
    let error = clovertown.with_cpus(3).unwrap_err().to_string();
    assert_eq!(
        error,
        "machine `clovertown-x5355`: cpus: found 3; allowed: 1 to 128, a multiple of 2 (the cpus of one L2) or fewer"
    );
    assert!(clovertown.with_cpus(0).is_err());
    assert!(clovertown.with_cpus(129).is_err());
}

/// Two sockets of six cpus with an L3 each.
#[test]
fn caches_stay_within_their_node() {
    let westmere = load("westmere-x5660").unwrap();
    for (cpus, of_an_l3) in [(1, 1), (2, 1), (4, 2), (8, 4), (12, 6), (24, 6)] {
        let machine = westmere.with_cpus(cpus).unwrap();
        let of = |name: &str| machine.caches.iter().find(|cache| cache.name == name).unwrap();
        assert_eq!((machine.cpus, machine.memory.nodes), (cpus, 2));
        assert_eq!(of("L3").cpus_per_instance, of_an_l3, "{cpus}");
        assert_eq!((of("L3").bytes, of("L2").cpus_per_instance), (12 << 20, 1));
    }
    for cpus in [3, 18] {
        let error = westmere.with_cpus(cpus).unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "machine `westmere-x5660`: cpus: found {cpus}; allowed: 1 to 128, as many on each of the 2 nodes, a multiple \
                 of 6 (the cpus of one L3) or fewer on each"
            )
        );
    }
}

#[test]
fn colors_of_caches_whose_ways_are_not_whole_pages() {
    let mut machine = from_toml(SMALLEST, "").unwrap();
    // 6 KiB a way: frames 0 and 3 use the same sets, 0 and 1 share some of theirs.
    machine.caches[1].bytes = 4 * 6144;
    let l2 = machine.caches[1].clone();
    assert_eq!((machine.colors(&l2), machine.color_count()), (3, 3));
    // With another cache of two colors, six decide both.
    machine.caches[0].bytes = 2 * 8192;
    assert_eq!(machine.color_count(), 6);
    machine.caches[0].index = Index::Virtual;
    assert_eq!((machine.colors(&machine.caches[0]), machine.color_count()), (1, 3));
}

fn any_cache(position: usize) -> impl Strategy<Value = Cache> {
    let geometry = (1u64..200, 1u32..24, any::<bool>(), prop::option::of(1u32..4));
    let policy = (any::<bool>(), any::<bool>(), any::<bool>(), 0..4usize, 0.0..500.0f64);
    let stride = prop::option::of((1u32..=256, 1u32..=64, 1u64..=1 << 32));
    let stride = stride.prop_map(|stride| stride.map(|(entries, ahead, bytes)| Stride { entries, ahead, bytes }));
    let prefetch = prop::option::weighted(0.2, (1u32..=256, 1u32..=64, 1u32..=64, any::<bool>(), stride));
    (geometry, policy, prefetch).prop_map(
        move |((sets, ways, is_virtual, slice_bits), (through, allocate, inclusive, victim, hit_ns), prefetch)| {
            let replacement = [
                Replacement::Lru,
                Replacement::Plru,
                Replacement::Random,
                Replacement::Reuse,
            ][victim];
            let ways = if replacement == Replacement::Plru {
                ways.next_power_of_two()
            } else {
                ways
            };
            let hash = slice_bits.map(|bits| IndexHash {
                slices: 1 << bits,
                masks: (0..bits).map(|bit| 1 << (40 + bit)).collect(),
            });
            let slices = hash.as_ref().map_or(1, |hash| u64::from(hash.slices));
            Cache {
                name: format!("cache \"{position}\" \\ é"),
                level: position as u8 + 1,
                kind: if position == 0 { Kind::Data } else { Kind::Unified },
                bytes: sets * u64::from(ways) * 64 * slices,
                ways,
                line_bytes: 64,
                cpus_per_instance: 1 << position,
                index: if is_virtual { Index::Virtual } else { Index::Physical },
                hash,
                hit_ns,
                transfer_ns: if inclusive { 2.0 * hit_ns } else { 0.0 },
                others_gbps: if position > 1 && through { hit_ns } else { 0.0 },
                write: if through { Write::Through } else { Write::Back },
                allocate_on_write: allocate,
                inclusive,
                replacement,
                prefetch: prefetch.map(|(streams, lines, step, runs_on, stride)| Prefetch {
                    pair: lines % 2 == 0,
                    streams,
                    lines,
                    step,
                    runs_on,
                    after: (streams + step) % 4,
                    stride,
                }),
            }
        },
    )
}

fn any_machine() -> impl Strategy<Value = Machine> {
    let caches = (any_cache(0), any_cache(1), any_cache(2), 1usize..4);
    let tlb = prop::option::of((1u32..500, 1u32..8, 0.0..1e4f64));
    let memory = (
        1u32..6,
        0.0..1e6f64,
        0.0..1e6f64,
        0.0..1e3f64,
        0u64..1 << 40,
        any::<bool>(),
    );
    let head = ("[ -~äß\u{1F980}]{1,30}", 1e-3..1e5f64, 9u32..20, 0u32..5);
    (head, caches, tlb, memory).prop_map(|((name, clock_mhz, page, cpus), (a, b, c, levels), tlb, memory)| {
        let (nodes, local_ns, remote_ns, bandwidth_gbps, frames_per_node, has_distances) = memory;
        let row = |from| (0..nodes).map(|to| if from == to { 10 } else { 11 + to }).collect();
        let caches: Vec<Cache> = [a, b, c].into_iter().take(levels).collect();
        let prefetches = caches.iter().any(|cache| cache.prefetch.is_some());
        let outer = caches
            .iter()
            .any(|cache| cache.level > 1 && cache.kind != Kind::Instruction);
        let prefetch = (outer && !prefetches && cpus % 2 == 0).then_some(SoftwarePrefetch { outstanding: 1 + cpus });
        Machine {
            prefetch,
            core: (cpus == 2 && prefetch.is_none()).then_some(Core {
                instructions_per_clock: 2.5,
                window: 224,
                outstanding: 10,
                outstanding_of_bank: levels as u32,
                line_ns: levels as f64 * 0.25,
                memory_line_ns: levels as f64 * 0.5,
                huge_memory_line_ns: (levels as f64 - 1.0) * 0.5,
                store_buffer: 48,
                set_refill_ns: levels as f64 - 1.0,
                bank_refill_ns: levels as f64 * 0.75 - 0.75,
                set_rewrite_ns: (levels as f64 - 1.0) * 5.5,
                misprediction_ns: levels as f64 * 2.25,
            }),
            regions: (nodes > 1).then_some(Regions {
                switch_ns: local_ns,
                gains: (levels > 1).then_some(Gains {
                    stay_least_ns: frames_per_node,
                    stay_most_ns: u64::MAX >> 1,
                    one_cache: 0,
                    all_caches: 1000,
                }),
            }),
            name,
            clock_mhz,
            page_bytes: 1 << page,
            cpus: if prefetches { 1 } else { 4 << cpus },
            caches,
            tlb: tlb.map(|(sets, ways, refill_ns)| Tlb {
                entries: sets * ways,
                ways,
                wired: sets * ways - 1,
                refill_ns,
                walkers: ways % 3,
                huge_refill_ns: (ways % 2 == 1).then_some(12.5),
                far: (0..ways % 3)
                    .map(|tier| FarPages {
                        pages: 12_288 + tier,
                        refill_ns: refill_ns + 200.25,
                    })
                    .collect(),
            }),
            memory: Memory {
                nodes,
                local_ns,
                remote_ns,
                dirty_remote_ns: remote_ns / 3.0,
                bandwidth_gbps,
                upgrade_ns: bandwidth_gbps / 3.0,
                fault_ns: (levels as f64 - 1.0) * 500.5,
                clear_ns: (levels as f64 - 1.0) * 40.25,
                huge_pages: [HugeData::Never, HugeData::Madvise, HugeData::Always][levels % 3],
                frames_per_node,
                distances: if has_distances {
                    (0..nodes).map(row).collect()
                } else {
                    vec![]
                },
                tiers: (0..frames_per_node % 3)
                    .map(|tier| Tier {
                        name: format!("CXL {tier}"),
                        latency_ns: local_ns + remote_ns,
                        far_latency_ns: 2.0 * remote_ns,
                        near: (0..nodes.min(tier as u32)).collect(),
                        bandwidth_gbps: bandwidth_gbps / 7.0,
                        frames: frames_per_node / 3,
                    })
                    .collect(),
            },
        }
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(machine in any_machine()) {
        prop_assert!(machine.check().is_ok(), "{:?}", machine.check());
        prop_assert_eq!(from_toml(&machine.to_toml(), "round trip").unwrap(), machine);
    }

    #[test]
    fn frames_of_one_color_use_the_same_sets_and_no_fewer_colors_would_do(
        machine in any_machine(),
        frame in 0u64..1 << 30,
    ) {
        for cache in machine.caches.iter().filter(|cache| cache.index == Index::Physical && cache.hash.is_none()) {
            let colors = u64::from(machine.colors(cache));
            let first_set = |frame: u64| cache.set_of(frame * machine.page_bytes);
            prop_assert_eq!(first_set(frame), first_set(frame + colors));
            for fewer in (1..colors).take(100) {
                prop_assert_ne!(first_set(frame), first_set(frame + fewer));
            }
            prop_assert_eq!(machine.color_count() % machine.colors(cache), 0);
        }
        prop_assert!(machine.color_of(frame) < machine.color_count());
    }

    #[test]
    fn no_text_panics(text in ".{0,400}") {
        let _ = from_toml(&text, "any");
    }

    #[test]
    fn no_damaged_preset_panics_and_what_is_accepted_is_sound(
        preset in 0..presets().len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), "[ -~\n]{0,4}", 0usize..6), 1..6),
    ) {
        let mut text: Vec<char> = presets()[preset].text.chars().collect();
        for (at, insert, delete) in edits {
            let at = at.index(text.len() + 1);
            let end = (at + delete).min(text.len());
            text.splice(at..end, insert.chars());
        }
        let text: String = text.into_iter().collect();
        match from_toml(&text, "damaged") {
            Ok(machine) => {
                prop_assert!(machine.check().is_ok());
                prop_assert_eq!(from_toml(&machine.to_toml(), "again").unwrap(), machine);
            }
            // Every error says where.
            Err(error) => prop_assert!(error.to_string().starts_with("damaged:"), "{error}"),
        }
    }

    #[test]
    fn no_number_in_a_preset_panics(
        preset in 0..presets().len(),
        which in any::<prop::sample::Index>(),
        number in prop_oneof![Just("0".to_string()), Just("-1".into()), Just("1e400".into()), Just("nan".into()),
            Just("9223372036854775807".into()), Just("18446744073709551616".into()), Just("4294967295".into()),
            any::<i64>().prop_map(|n| n.to_string()), any::<u32>().prop_map(|n| n.to_string())],
    ) {
        let text = presets()[preset].text;
        let lines: Vec<&str> = text.lines().collect();
        let keys: Vec<usize> = (0..lines.len()).filter(|line| lines[*line].contains(" = ") && !lines[*line].starts_with('#')).collect();
        let line = keys[which.index(keys.len())];
        let changed = format!("{} = {number}", lines[line].split(" = ").next().unwrap());
        let mut lines = lines.clone();
        lines[line] = &changed;
        if let Ok(machine) = from_toml(&lines.join("\n"), "number") {
            prop_assert!(machine.check().is_ok());
            let _ = machine.color_count();
        }
    }
}
