//! Instructions that Valgrind does not know, by the extension of the instruction set that they belong to.

/// The extension of an instruction, by its usual name, and a way to do without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension {
    pub name: &'static str,
    /// The end of a sentence that begins with what to do.
    pub remedy: &'static str,
}

/// Valgrind runs everything that compilers use for it.
const LEVEL: &str = "compile for `-march=x86-64-v3` in place of `-march=native`; libraries that choose their code by cpuid \
                     do so by themselves, because Valgrind's processor has none of it";
const AMD: &str = "compile for `-march=x86-64-v3`: processors since AMD's Zen have none of it either";
const UNKNOWN: &str = "compile for `-march=x86-64-v3`, and see whether `valgrind --tool=none` runs the program";

const fn of(name: &'static str) -> Extension {
    Extension { name, remedy: LEVEL }
}

/// The extension of an instruction, from its bytes, prefixes first.
pub fn extension(bytes: &[u8]) -> Extension {
    let after = bytes
        .iter()
        .position(|byte| !matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3));
    let (prefixes, rest) = bytes.split_at(after.unwrap_or(bytes.len()));
    match rest {
        [0x62, ..] => of("AVX-512"),
        [0xd5, ..] => of("APX"),
        // Map 8 and above: else it is `pop`.
        [0x8f, map, ..] if map & 0x1f >= 8 => Extension {
            name: "XOP",
            remedy: AMD,
        },
        [0xc4, map, how, code, ..] => vex(map & 0x1f, how & 4 != 0, *code),
        [0xc5, how, code, ..] => vex(1, how & 4 != 0, *code),
        [0x40..=0x4f, rest @ ..] => legacy(prefixes, rest),
        rest => legacy(prefixes, rest),
    }
}

/// With VEX's prefix: the table of operation codes, whether vectors have 256 bits, and the code.
fn vex(map: u8, wide: bool, code: u8) -> Extension {
    match (map, code) {
        // Masks: kmov, kor and their kin.
        (1, 0x41..=0x4b | 0x90..=0x93 | 0x98 | 0x99) | (3, 0x30..=0x33) => of("AVX-512"),
        (2, 0x49 | 0x4b | 0x5c | 0x5e | 0x6c) => of("AMX"),
        (2, 0x50..=0x53 | 0xd2 | 0xd3) => of("AVX-VNNI"),
        (2, 0xb4 | 0xb5) => of("AVX-IFMA"),
        (2, 0x72 | 0xb0 | 0xb1) => of("AVX-NE-CONVERT"),
        (2, 0xcb..=0xcd) => of("SHA-512"),
        (2, 0xcf) | (3, 0xce | 0xcf) => of("GFNI"),
        (2, 0xdc..=0xdf) if wide => of("VAES"),
        (3, 0x44) if wide => of("VPCLMULQDQ"),
        (3, 0x5c..=0x5f | 0x68..=0x6f | 0x78..=0x7f) => Extension {
            name: "FMA4",
            remedy: AMD,
        },
        _ => of("AVX"),
    }
}

fn legacy(prefixes: &[u8], rest: &[u8]) -> Extension {
    let repeated = prefixes.contains(&0xf3);
    match rest {
        [0x0f, 0x38, 0xc8..=0xcd, ..] | [0x0f, 0x3a, 0xcc, ..] => of("SHA"),
        [0x0f, 0x38, 0xcf, ..] | [0x0f, 0x3a, 0xce | 0xcf, ..] => of("GFNI"),
        [0x0f, 0x38, 0xd8 | 0xdc..=0xdf, ..] if repeated => of("Key Locker"),
        [0x0f, 0x38, 0xf8 | 0xf9, ..] => of("MOVDIR"),
        [0x0f, 0x0f, ..] => Extension {
            name: "3DNow!",
            remedy: AMD,
        },
        [0x0f, 0x01, 0xd5 | 0xd6, ..] | [0xc6 | 0xc7, 0xf8, ..] => of("TSX"),
        [0x0f, 0xae, second, ..] if repeated && second >> 6 == 3 && second & 0x20 == 0 => of("FSGSBASE"),
        [0x0f, 0xae, second, ..] if second >> 6 == 3 && second >> 3 & 7 == 6 => of("WAITPKG"),
        _ => Extension {
            name: "",
            remedy: UNKNOWN,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes as gcc and LLVM assemble them.
    #[test]
    fn instructions_are_of_their_extensions() {
        for (bytes, name) in [
            // vxorps %zmm0,%zmm0,%zmm0; vpermb %zmm0,%zmm0,%zmm0; kmovw %eax,%k1
            (&[0x62, 0xf1, 0x7c, 0x48, 0x57, 0xc0][..], "AVX-512"),
            (&[0xc5, 0xf8, 0x92, 0xc8], "AVX-512"),
            (&[0x62, 0xf2, 0x7d, 0x48, 0x8d, 0xc0], "AVX-512"),
            (&[0xd5, 0x10, 0x01, 0xc0], "APX"),
            // vpdpbusd %xmm1,%xmm0,%xmm0
            (&[0xc4, 0xe2, 0x79, 0x50, 0xc1], "AVX-VNNI"),
            // vaesenc %ymm1,%ymm0,%ymm0
            (&[0xc4, 0xe2, 0x7d, 0xdc, 0xc1], "VAES"),
            // ldtilecfg (%rax)
            (&[0xc4, 0xe2, 0x78, 0x49, 0x00], "AMX"),
            // sha1nexte %xmm1,%xmm0; with a register beyond the first eight
            (&[0x0f, 0x38, 0xc8, 0xc1], "SHA"),
            (&[0x44, 0x0f, 0x38, 0xc8, 0xc1], "SHA"),
            // gf2p8mulb %xmm1,%xmm0
            (&[0x66, 0x0f, 0x38, 0xcf, 0xc1], "GFNI"),
            // rdfsbase %rax; tpause %ecx; xbegin
            (&[0xf3, 0x48, 0x0f, 0xae, 0xc0], "FSGSBASE"),
            (&[0x66, 0x0f, 0xae, 0xf1], "WAITPKG"),
            (&[0xc7, 0xf8, 0, 0, 0, 0], "TSX"),
            // vprotb (AMD), vfmaddps with four operands (AMD)
            (&[0x8f, 0xe9, 0x78, 0x90, 0xc1], "XOP"),
            (&[0xc4, 0xe3, 0x79, 0x68, 0xc1, 0x20], "FMA4"),
            (&[0xff, 0xff], ""),
            (&[], ""),
        ] {
            assert_eq!(extension(bytes).name, name, "{bytes:x?}");
        }
    }
}
