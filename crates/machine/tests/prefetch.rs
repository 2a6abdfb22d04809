//! Features of machines beyond waiting for each reference (prefetchers, prefetches of the program, requests to write,
//! cores that overlap): the keys, and the values refused.
#![allow(clippy::unwrap_used)]

use machine::{Core, Machine, Prefetch, SoftwarePrefetch, Stride, from_toml};

const MACHINE: &str = r#"name = "m"
clock_mhz = 100
page_bytes = 4096
cpus = 1

[[cache]]
name = "L1"
level = 1
kind = "unified"
bytes = 8192
ways = 2
line_bytes = 32
hit_ns = 0
"#;

/// `MACHINE` with more keys in its cache.
fn with(keys: &str) -> Result<Machine, String> {
    let text = format!("{MACHINE}{keys}\n[memory]\nlocal_ns = 100\n");
    from_toml(&text, "m.toml").map_err(|error| error.to_string())
}

#[test]
fn a_cache_that_prefetches() {
    let of = |keys| with(keys).unwrap().caches[0].prefetch;
    assert_eq!(of("prefetch = \"none\""), None);
    assert_eq!(of("prefetch = \"stream\""), Some(Prefetch::new(16, 4)));
    assert_eq!(
        of("prefetch = \"stream\"\nprefetch_streams = 32\nprefetch_lines = 20"),
        Some(Prefetch::new(32, 20))
    );
    assert_eq!(
        of(
            "prefetch = \"stream\"\nprefetch_lines = 20\nprefetch_step = 2\nprefetch_pair = true\nprefetch_runs_on = true\nprefetch_after = 3"
        ),
        Some(Prefetch {
            streams: 16,
            lines: 20,
            step: 2,
            pair: true,
            runs_on: true,
            after: 3,
            stride: None,
        })
    );
    let stride = |keys: &str| {
        with(&format!("prefetch = \"stream\"\n{keys}")).unwrap().caches[0]
            .prefetch
            .unwrap()
            .stride
    };
    assert_eq!(stride("prefetch_lines = 4"), None);
    assert_eq!(
        stride("prefetch_stride_entries = 7"),
        Some(Stride {
            entries: 7,
            ahead: 4,
            bytes: 2048,
        })
    );
    for (keys, expected) in [
        (
            "prefetch = \"stream\"\nprefetch_step = 0",
            "m.toml:15: cache[0].prefetch_step: found 0; allowed: 1 to 64",
        ),
        (
            "prefetch = \"stream\"\nprefetch_stride_bytes = 64",
            "m.toml:15: cache[0].prefetch_stride_bytes: found 64; allowed: nothing, unless the cache has prefetch_stride_entries",
        ),
        (
            "prefetch = \"stream\"\nprefetch_stride_entries = 1\nprefetch_stride_bytes = 0",
            "m.toml:16: cache[0].prefetch_stride_bytes: found 0; allowed: 1 to 4294967296",
        ),
        (
            "prefetch_pair = false",
            "m.toml:14: cache[0].prefetch_pair: found false; allowed: nothing, unless the cache has prefetch = \"stream\"",
        ),
        (
            "prefetch_runs_on = true",
            "m.toml:14: cache[0].prefetch_runs_on: found true; allowed: nothing, unless the cache has prefetch = \"stream\"",
        ),
        (
            "prefetch_after = 3",
            "m.toml:14: cache[0].prefetch_after: found 3; allowed: nothing, unless the cache has prefetch = \"stream\"",
        ),
        (
            "prefetch = \"stream\"\nprefetch_after = 65",
            "m.toml:15: cache[0].prefetch_after: found 65; allowed: 0 to 64",
        ),
        (
            "prefetch = \"next-line\"",
            "m.toml:14: cache[0].prefetch: found \"next-line\"; allowed: \"none\" or \"stream\"",
        ),
        (
            "prefetch = \"stream\"\nprefetch_streams = 0",
            "m.toml:15: cache[0].prefetch_streams: found 0; allowed: 1 to 256",
        ),
        (
            "prefetch = \"stream\"\nprefetch_lines = 65",
            "m.toml:15: cache[0].prefetch_lines: found 65; allowed: 1 to 64",
        ),
        (
            "prefetch_lines = 4",
            "m.toml:14: cache[0].prefetch_lines: found 4; allowed: nothing, unless the cache has prefetch = \"stream\"",
        ),
    ] {
        assert_eq!(with(keys).unwrap_err(), expected);
    }
    let machine = with("prefetch = \"stream\"").unwrap();
    assert_eq!(
        machine.with_cpus(2).unwrap_err().to_string(),
        "machine `m`: cache[0].prefetch: found \"stream\" at level 1 of a machine of 2 cpus; allowed: \"none\", a cache beyond the first level, or cpus = 1"
    );
    // A machine without prefetching is written and shown as before.
    let plain = with("").unwrap();
    assert!(!plain.to_toml().contains("prefetch"));
}

/// `MACHINE` with a second level and more tables.
fn of_two_levels(tables: &str) -> Result<Machine, String> {
    let second = "[[cache]]\nname = \"L2\"\nlevel = 2\nkind = \"unified\"\nbytes = 65536\nways = 1\nline_bytes = 64\nhit_ns = 9\n";
    let text = format!("{MACHINE}{second}[memory]\nlocal_ns = 100\n{tables}");
    from_toml(&text, "m.toml").map_err(|error| error.to_string())
}

#[test]
fn prefetches_of_the_program() {
    let of = |tables| of_two_levels(tables).unwrap().prefetch;
    assert_eq!(of(""), None);
    assert_eq!(of("[prefetch]"), Some(SoftwarePrefetch { outstanding: 4 }));
    let machine = of_two_levels("[prefetch]\noutstanding = 64").unwrap();
    assert_eq!(machine.prefetch, Some(SoftwarePrefetch { outstanding: 64 }));
    assert_eq!(from_toml(&machine.to_toml(), "again").unwrap(), machine);
    for (tables, expected) in [
        (
            "[prefetch]\noutstanding = 0",
            "m.toml:25: prefetch.outstanding: found 0; allowed: 1 to 64",
        ),
        (
            "[prefetch]\noutstanding = 65",
            "m.toml:25: prefetch.outstanding: found 65; allowed: 1 to 64",
        ),
    ] {
        assert_eq!(of_two_levels(tables).unwrap_err(), expected);
    }
    let one_level = from_toml(&format!("{MACHINE}[memory]\nlocal_ns = 100\n[prefetch]\n"), "m.toml");
    assert_eq!(
        one_level.unwrap_err().to_string(),
        "m.toml:16: prefetch: found [prefetch] on one level of cache; allowed: only with a second level of cache for \
         data, which the prefetches go to"
    );
    let mut machine = machine;
    machine.caches[1].prefetch = Some(Prefetch::default());
    assert_eq!(
        machine.check().unwrap_err().to_string(),
        "machine `m`: cache[1].prefetch: found \"stream\"; allowed: \"none\" on a machine with [prefetch]"
    );
}

#[test]
fn upgrades_on_the_bus() {
    let with = |keys: &str| of_two_levels(keys);
    assert_eq!(with("").unwrap().memory.upgrade_ns, 0.0);
    let machine = with("bandwidth_gbps = 1.2\nupgrade_ns = 13.3").unwrap();
    assert_eq!(machine.memory.upgrade_ns, 13.3);
    assert_eq!(from_toml(&machine.to_toml(), "again").unwrap(), machine);
    assert_eq!(
        with("upgrade_ns = 1").unwrap_err(),
        "m.toml:24: memory.upgrade_ns: found 1; allowed: 0, or with bandwidth_gbps: without it nothing occupies the memory"
    );
}

#[test]
fn bounds_of_regions_are_all_there_or_none() {
    const SWITCH: &str = "[regions]\nswitch_ns = 6357\n";
    let bounds = "stay_least_ns = 7000\nstay_most_ns = 900000\none_cache = 1031\nall_caches = 1000\n";
    let measured = of_two_levels(&format!("{SWITCH}{bounds}")).unwrap();
    assert_eq!(from_toml(&measured.to_toml(), "again").unwrap(), measured);
    let regions = measured.regions.unwrap();
    assert_eq!(regions.gains.unwrap().one_cache, 1031);
    let plain = of_two_levels(SWITCH).unwrap().regions.unwrap();
    assert_eq!((plain.switch_ns, plain.gains), (6357.0, None));
    let some = of_two_levels(&format!("{SWITCH}one_cache = 1031\n"))
        .unwrap_err()
        .to_string();
    assert!(
        some.contains("all of stay_least_ns, stay_most_ns, one_cache and all_caches, or none"),
        "{some}"
    );
    let negative = of_two_levels("[regions]\nswitch_ns = -1\n").unwrap_err().to_string();
    assert!(
        negative.contains("regions.switch_ns: found -1; allowed: 0 to 1e9"),
        "{negative}"
    );
}

#[test]
fn a_core_that_overlaps() {
    const CORE: &str = "[core]\ninstructions_per_clock = 3\nwindow = 224\noutstanding = 10\nstore_buffer = 48\n";
    let plain = of_two_levels("").unwrap();
    assert_eq!(plain.core, None);
    assert!(!plain.to_toml().contains("core"));
    let machine = of_two_levels(CORE).unwrap();
    let core = Core {
        instructions_per_clock: 3.0,
        window: 224,
        outstanding: 10,
        outstanding_of_bank: 0,
        line_ns: 0.0,
        memory_line_ns: 0.0,
        huge_memory_line_ns: 0.0,
        store_buffer: 48,
        set_refill_ns: 0.0,
        bank_refill_ns: 0.0,
        set_rewrite_ns: 0.0,
        misprediction_ns: 0.0,
    };
    assert_eq!(machine.core, Some(core));
    assert_eq!(from_toml(&machine.to_toml(), "again").unwrap(), machine);
    for (from, to, expected) in [
        (
            "= 3",
            "= 0",
            "m.toml:25: core.instructions_per_clock: found 0; allowed: 0.01 to 64",
        ),
        ("= 224", "= 0", "m.toml:26: core.window: found 0; allowed: 1 to 65536"),
        (
            "= 10",
            "= 257",
            "m.toml:27: core.outstanding: found 257; allowed: 1 to 256",
        ),
        (
            "= 48",
            "= 0",
            "m.toml:28: core.store_buffer: found 0; allowed: 1 to 4096",
        ),
        (
            "[core]",
            "[prefetch]\n[core]",
            "m.toml:25: core: found [core] beside [prefetch]; allowed: one of the two",
        ),
    ] {
        assert_eq!(of_two_levels(&CORE.replace(from, to)).unwrap_err(), expected);
    }
    let missing = of_two_levels(&CORE.replace("window = 224\n", "")).unwrap_err();
    assert!(missing.contains("core.window"), "{missing}");
}
