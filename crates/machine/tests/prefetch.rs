//! Caches that prefetch: their keys, and what is refused.
#![allow(clippy::unwrap_used)]

use machine::{Machine, Prefetch, from_toml};

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
    assert_eq!(of("prefetch = \"stream\""), Some(Prefetch { streams: 16, lines: 4 }));
    assert_eq!(
        of("prefetch = \"stream\"\nprefetch_streams = 32\nprefetch_lines = 20"),
        Some(Prefetch { streams: 32, lines: 20 })
    );
    for (keys, expected) in [
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
        "machine `m`: cache[0].prefetch: found \"stream\" on a machine of 2 cpus; allowed: \"none\", or cpus = 1"
    );
    // What does not prefetch is written and told as ever.
    let plain = with("").unwrap();
    assert!(!plain.to_toml().contains("prefetch"));
}
