//! Instructions that wait for nothing, to see how many a processor carries out in a clock.

/// Instructions in one round of [`independent`].
#[cfg(target_arch = "x86_64")]
pub const IN_A_ROUND: u64 = 16;

/// Carries out so many rounds of loads from one line, additions in registers of their own, and a
/// branch that is always foreseen: what compiled loops are made of, without anything to wait for.
///
/// Pre: `rounds` is at least 1 (0 counts as 1). Post: `rounds * IN_A_ROUND` instructions were carried out.
#[cfg(target_arch = "x86_64")]
pub fn independent(rounds: u64) {
    let words = [1u64; 8];
    // SAFETY: it reads within `words`, which outlives it, and writes to registers alone, all of which are named.
    unsafe {
        std::arch::asm!(
            "2:",
            "mov {a}, [{words}]",
            "add {b}, 3",
            "mov {c}, [{words} + 8]",
            "add {d}, 5",
            "add {e}, 7",
            "mov {f}, [{words} + 16]",
            "lea {g}, [{words} + 24]",
            "add {b}, 9",
            "mov {a}, [{words} + 32]",
            "add {d}, 11",
            "mov {c}, [{words} + 40]",
            "add {e}, 13",
            "lea {g}, [{words} + 48]",
            "mov {f}, [{words} + 56]",
            "sub {rounds}, 1",
            "jnz 2b",
            words = in(reg) words.as_ptr(),
            rounds = inout(reg) rounds.max(1) => _,
            a = out(reg) _,
            b = inout(reg) 0u64 => _,
            c = out(reg) _,
            d = inout(reg) 0u64 => _,
            e = inout(reg) 0u64 => _,
            f = out(reg) _,
            g = out(reg) _,
            options(nostack, readonly)
        );
    }
}
