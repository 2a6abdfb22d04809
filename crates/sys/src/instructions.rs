//! Instructions that wait for nothing, to see how many a processor carries out in a clock; and instructions that each wait
//! for the one before, to see how long one takes.

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

/// Instructions of one class, each of which waits for the one before.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// Additions of integers: one clock each.
    Add,
    /// Loads of which each has its address from the one before, and finds it in the nearest cache.
    Load,
    Multiply,
    FloatAdd,
    FloatMultiply,
    /// Additions to a word of memory that nobody else can come between.
    Locked,
}

/// Instructions in one round of [`chain`].
#[cfg(target_arch = "x86_64")]
pub const IN_A_CHAIN: u64 = 8;

/// Carries out so many rounds of a chain.
///
/// Pre: `rounds` is at least 1 (0 counts as 1). Post: `rounds * IN_A_CHAIN` instructions of that class were carried out.
#[cfg(target_arch = "x86_64")]
pub fn chain(kind: Chain, rounds: u64) {
    macro_rules! rounds {
        ($instruction:literal, $($operands:tt)*) => {
            // SAFETY: it reads and writes registers that are named, and a word that outlives it and is its own.
            unsafe {
                std::arch::asm!(
                    "2:",
                    $instruction, $instruction, $instruction, $instruction,
                    $instruction, $instruction, $instruction, $instruction,
                    "sub {rounds}, 1",
                    "jnz 2b",
                    rounds = inout(reg) rounds.max(1) => _,
                    $($operands)*
                    options(nostack)
                );
            }
        };
    }
    let mut word = 0u64;
    let own = &raw mut word;
    word = own as u64;
    match kind {
        Chain::Add => rounds!("add {value}, 3", value = inout(reg) word => word,),
        Chain::Load => rounds!("mov {value}, [{value}]", value = inout(reg) own => _,),
        Chain::Multiply => rounds!("imul {value}, {value}", value = inout(reg) word => word,),
        Chain::FloatAdd => {
            rounds!("addsd {value}, {other}", value = inout(xmm_reg) 1.0f64 => _, other = in(xmm_reg) 2.0f64,)
        }
        Chain::FloatMultiply => {
            rounds!("mulsd {value}, {other}", value = inout(xmm_reg) 1.5f64 => _, other = in(xmm_reg) 1.0f64,)
        }
        Chain::Locked => rounds!("lock add qword ptr [{at}], 1", at = in(reg) own,),
    }
    std::hint::black_box(word);
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn chains_end() {
        let all = [
            Chain::Add,
            Chain::Load,
            Chain::Multiply,
            Chain::FloatAdd,
            Chain::FloatMultiply,
            Chain::Locked,
        ];
        all.iter().for_each(|&kind| chain(kind, 3));
        chain(Chain::Add, 0);
        independent(0);
    }
}
