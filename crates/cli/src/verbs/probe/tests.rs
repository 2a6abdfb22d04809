//! The probe's output.

use ::measured::processor::{Chains, Faults, Pace, Pairs, Sets, Stream, Transfer, Walks};
use ::measured::{Bits, Point, Step, Times};

use super::*;

fn outcome(verdict: ColorVerdict, validated: Option<Validated>, reason: Option<&str>) -> Outcome {
    Outcome {
        levels: vec![LevelGot {
            cache: "L2".into(),
            level: 2,
            described_bytes: 1 << 20,
            got_bytes: 1 << 19,
            ns: 3.2,
        }],
        measured: Measured {
            cache_bytes: 1 << 19,
            cache_ns: 3.2,
            memory_ns: 99.0,
            tlb_reach_bytes: Some(1 << 20),
            refill_ns: Some(12.5),
            curve: vec![Point {
                bytes: 1 << 14,
                ns: 1.0,
            }],
            walkers: None,
            huge_refill_ns: None,
            far: Vec::new(),
            others: Some(Others {
                bytes: 24 << 20,
                gbps: 2.5,
                ns: 14.5,
                kept_once: 0.9,
            }),
            tlb_curve: vec![],
        },
        processor: Processor {
            window: Some(320),
            pace: Pace {
                clock_mhz: 3000.0,
                instructions_per_clock: Some(4.2),
                misprediction_ns: 4.64,
            },
            sets: Sets {
                refill_ns: 1.72,
                rewrite_ns: 9.0,
                bank_refill_ns: 0.9,
            },
            faults: Faults {
                fault_ns: 612.34,
                clear_ns: 88.06,
            },
            chains: [(1, 100.0), (8, 12.5)]
                .map(|(chains, ns)| Chains { chains, ns })
                .to_vec(),
            chains_of_all: Vec::new(),
            chains_of_bank: Vec::new(),
            pairs: Pairs::default(),
            walks: Walks::default(),
            stream: Stream {
                one_cpu_gbps: 12.0,
                all_cpus_gbps: 20.0,
                last_level_gbps: 0.0,
                memory_line_ns: 6.25,
                huge_memory_line_ns: 0.0,
            },
            strides: vec![Point { bytes: 64, ns: 6.0 }],
            transfers: vec![Transfer {
                cpus: [0, 2],
                shares: Some("L3".into()),
                ns: 55.0,
            }],
        },
        colors: ColorReport {
            frames: Some(FrameSource::HugePages),
            bytes: 128 << 20,
            huge: true,
            translation: None,
            guest: false,
            findings: vec![Finding {
                cache: "L2".into(),
                level: 2,
                shared: false,
                first_bit: 12,
                bits: 4,
                times: Some(Times {
                    inside_ns: 3.0,
                    outside_ns: 20.0,
                }),
                steps: vec![Step {
                    pages: 24,
                    same_ns: 19.5,
                    mixed_ns: 3.1,
                }],
                tests: vec![Bits {
                    bits: vec![12, 15],
                    same_ns: 19.5,
                    flipped_ns: 3.1,
                    effect: Effect::Separates { chance: 1e-6 },
                }],
                verdict,
            }],
            validated,
            reason: reason.map(str::to_string),
        },
    }
}

#[test]
fn what_overlaps_is_reported_in_words() {
    let verdict = ColorVerdict::Unclear { reason: "noise".into() };
    let printed = plain(&outcome(verdict, None, Some("noise")));
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "up to 8.0 lines on their way",
        "reads 12.0 GB/s in order, all of them together 20.0 GB/s",
        "4.2 instructions a clock",
        "A line that cpu 0 wrote is seen by cpu 2, which share L3, after 55 ns.",
    ] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
}

fn plain(outcome: &Outcome) -> String {
    anstream::adapter::strip_str(&text(outcome, 80, true)).to_string()
}

#[test]
fn colors_are_reported_with_their_bits_and_worth() {
    let verdict = ColorVerdict::Colors {
        first_bit: 12,
        bits: 4,
        pages: 16,
        confidence: 0.9999,
    };
    let validated = Validated {
        cache: "L2".into(),
        level: 2,
        shared: false,
        first_bit: 12,
        bits: 4,
        color_bytes: 65536,
        capacity_bytes: 1 << 20,
        confidence: 0.9999,
        frames: FrameSource::HugePages,
    };
    let printed = plain(&outcome(verdict, Some(validated), None));
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        printed.contains(
            "Conclusion: colors are real here: 16 of 64.0 KB each in L2 (private to a cpu), by bits 12 to 15"
        ),
        "{printed}"
    );
    assert!(
        printed.contains("12+15") && printed.contains("yes") && printed.contains("19.5 ns"),
        "{printed}"
    );
}

#[test]
fn no_colors_are_reported_with_the_reason_within_the_width() {
    let reason =
        "pages that agree in bits 12-15 stay in it as well as mixed ones, and this goes on for more than a line";
    let verdict = ColorVerdict::Nothing {
        reason: reason.into(),
        confidence: 0.999,
    };
    let printed = plain(&outcome(verdict, None, Some(reason)));
    let flat = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("Conclusion: pages that agree in bits 12-15"), "{printed}");
    assert!(printed.lines().all(|line| line.chars().count() <= 80), "{printed}");
    assert_eq!(wrapped("  a b", 4), "  a b\n");
}
