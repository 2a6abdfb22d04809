//! ChampSim's two formats of records, which nothing in a file names.

use crate::import::{fails, gzip, import, items, xz};

use trace::import::Format;

/// A ChampSim record.
fn instruction(pc: u64, writes: [u64; 2], reads: [u64; 4]) -> Vec<u8> {
    let mut record = pc.to_le_bytes().to_vec();
    record.extend_from_slice(&[0; 8]);
    for addr in writes.into_iter().chain(reads) {
        record.extend_from_slice(&addr.to_le_bytes());
    }
    assert_eq!(record.len(), 64);
    record
}

#[test]
fn champsim_is_read_record_by_record() {
    let mut file = instruction(0x400, [0, 0], [0, 0, 0, 0]);
    file.extend(instruction(0x404, [0x20, 0], [0x10, 0, 0x18, 0]));
    for _ in 0..300 {
        file.extend(instruction(0x408, [0, 0], [0, 0, 0, 0]));
    }
    file.extend(instruction(0x40c, [0, 0], [0x30, 0, 0, 0]));
    file.extend(instruction(0x410, [0, 0], [0, 0, 0, 0]));
    let expected = [
        "0:r 10 1 404+2",
        "0:r 18 1 404+0",
        "0:w 20 1 404+0",
        "0:Work { instructions: 300 }",
        "0:r 30 1 40c+1",
        "0:Work { instructions: 1 }",
    ];
    let trace = import(Format::Champsim, &file).unwrap();
    assert_eq!(items(&trace), expected);
    assert_eq!(trace.instructions(), Some(304));
    assert!(!trace.header().has_fetches);

    for packed in [gzip(&file), xz(&file), zstd::encode_all(&file[..], 1).unwrap()] {
        assert_eq!(items(&import(Format::Champsim, &packed).unwrap()), expected);
        fails(Format::Champsim, &packed[..packed.len() / 2], &["champsim, byte "]);
    }
    fails(
        Format::Champsim,
        &file[..100],
        &["byte 64", "36 bytes into a record of 64"],
    );
    file[64 + 8] = 2;
    fails(Format::Champsim, &file, &["byte 64", "branch bytes"]);
}

/// A CloudSuite record.
fn long_instruction(pc: u64, writes: [u64; 4], reads: [u64; 4], space: u16) -> Vec<u8> {
    let mut record = pc.to_le_bytes().to_vec();
    // Not everybody clears the padding.
    record.extend_from_slice(&[0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9, 9, 9]);
    for addr in writes.into_iter().chain(reads) {
        record.extend_from_slice(&addr.to_le_bytes());
    }
    record.extend_from_slice(&space.to_le_bytes());
    record.extend_from_slice(&[9; 6]);
    assert_eq!(record.len(), 96);
    record
}

#[test]
fn long_records_are_told_from_short_ones() {
    let file = [
        long_instruction(0x400, [0; 4], [0; 4], 3),
        long_instruction(0x404, [0x20, 0x28, 0, 0x30], [0x10, 0, 0, 0x18], 3),
        long_instruction(0x408, [0; 4], [0; 4], 3),
        long_instruction(0x900, [0; 4], [0x10, 0, 0, 0], 5),
        long_instruction(0x40c, [0; 4], [0x40, 0, 0, 0], 3),
    ]
    .concat();
    let trace = import(Format::Champsim, &file).unwrap();
    assert_eq!(
        items(&trace),
        [
            "0:r 10 1 404+2",
            "0:r 18 1 404+0",
            "0:w 20 1 404+0",
            "0:w 28 1 404+0",
            "0:w 30 1 404+0",
            "0:Work { instructions: 1 }",
            "1:r 10 1 900+1",
            "0:r 40 1 40c+1"
        ]
    );
    assert_eq!(trace.instructions(), Some(5));
    // Each address space is a process.
    assert_eq!(trace.processes().iter().map(|p| p.pid).collect::<Vec<_>>(), [3, 5]);
    for records in [1, 2, 3] {
        let part = import(Format::Champsim, &file[..records * 96]).unwrap();
        assert_eq!(part.instructions(), Some(records as u64));
    }
    fails(
        Format::Champsim,
        &file[..5 * 96 - 10],
        &["byte 384", "86 bytes into a record of 96"],
    );
}

/// Programs of all kinds: with many references and few, and with code that is near and far.
#[test]
fn files_of_both_lengths_are_told_apart_whatever_the_program_does() {
    let far = |at: u64| 0x40_0000 + at.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 0x4000_0000_0000;
    let near = |at: u64| 0x40_0000 + 4 * at;
    let data = |at: u64, used: bool| if used { 0x7f00_0000_0000 + 64 * at } else { 0 };
    for (pc, is_near) in [(&far as &dyn Fn(u64) -> u64, false), (&near, true)] {
        for (reads, writes) in [(0, 0), (1, 0), (0, 1), (1, 1), (2, 1), (2, 2), (4, 2)] {
            // Two of both in each record look like records of either length: only code that stays near tells then.
            if (reads, writes) == (2, 2) && !is_near {
                continue;
            }
            for count in [6, 100, 3000] {
                let at = |n: u64, of: u64, upto: u64| data(10 * n + of, of < upto);
                let short = (0..count).flat_map(|n| {
                    instruction(
                        pc(n),
                        [0, 1].map(|of| at(n, of, writes)),
                        [0, 1, 2, 3].map(|of| at(n, of, reads)),
                    )
                });
                let long = (0..count).flat_map(|n| {
                    let writes = [0, 1, 2, 3].map(|of| at(n, of, writes));
                    long_instruction(pc(n), writes, [0, 1, 2, 3].map(|of| at(n, of, reads)), 1)
                });
                for file in [short.collect::<Vec<_>>(), long.collect()] {
                    let trace = import(Format::Champsim, &file).unwrap();
                    assert_eq!(
                        trace.instructions(),
                        Some(count),
                        "{reads} reads, {writes} writes, {} bytes",
                        file.len()
                    );
                    assert_eq!(trace.references(), count * (reads + writes));
                }
            }
        }
    }
}

#[test]
fn what_has_no_program_counters_is_refused() {
    let nothing = vec![0; 64 * 96];
    fails(
        Format::Champsim,
        &nothing,
        &[
            "96 of the first 96 records of 64 bytes",
            "64 of 64 of 96 bytes",
            "no instructions",
        ],
    );
}
