//! Loops that wait for nothing, to see how many a processor carries out in a clock; and instructions that each wait
//! for the one before, to see how long one takes; and loops whose time depends on where their code lies.

/// Carries out loops as compilers make them of a sum of products, of a copy, and of a count of what is larger than a
/// bound: short, with a branch each that is always foreseen, over words that are in the nearest cache. Nothing in them
/// takes longer than a clock to wait for. Returns how many instructions that were.
///
/// Pre: `rounds` is at least 1 (0 counts as 1).
#[cfg(target_arch = "x86_64")]
pub fn short_loops(rounds: u64) -> u64 {
    const WORDS: usize = 256;
    const PRODUCT: u64 = 7;
    const COPY: u64 = 5;
    const COUNT: u64 = 6;
    let from = [3u64; WORDS];
    let mut to = [1u64; WORDS];
    for _ in 0..rounds.max(1) {
        // SAFETY: each loop begins at the arrays' first words and ends with their last ones; the arrays outlive it, and
        // nobody else has them. Registers that are written are named.
        unsafe {
            std::arch::asm!(
                "2:",
                "mov {word}, [{from}]",
                "imul {word}, [{to}]",
                "add {from}, 8",
                "add {to}, 8",
                "add {sum}, {word}",
                "cmp {from}, {end}",
                "jne 2b",
                from = inout(reg) from.as_ptr() => _,
                to = inout(reg) to.as_ptr() => _,
                end = in(reg) from.as_ptr().add(WORDS),
                word = out(reg) _,
                sum = inout(reg) 0u64 => _,
                options(nostack, readonly)
            );
            std::arch::asm!(
                "2:",
                "mov {word}, [{from} + 8 * {at}]",
                "mov [{to} + 8 * {at}], {word}",
                "add {at}, 1",
                "cmp {at}, {end}",
                "jne 2b",
                from = in(reg) from.as_ptr(),
                to = in(reg) to.as_mut_ptr(),
                at = inout(reg) 0usize => _,
                end = in(reg) WORDS,
                word = out(reg) _,
                options(nostack)
            );
            std::arch::asm!(
                "2:",
                "xor {word:e}, {word:e}",
                "cmp [{from} + 8 * {at}], {bound}",
                "seta {word:l}",
                "add {count}, {word}",
                "sub {at}, 1",
                "jns 2b",
                from = in(reg) from.as_ptr(),
                bound = in(reg) 2u64,
                at = inout(reg) WORDS - 1 => _,
                word = out(reg) _,
                count = inout(reg) 0u64 => _,
                options(nostack, readonly)
            );
        }
    }
    std::hint::black_box(&to);
    rounds.max(1) * WORDS as u64 * (PRODUCT + COPY + COUNT)
}

/// Instructions in a group of [`between_loads`].
#[cfg(target_arch = "x86_64")]
pub const IN_A_GROUP: u32 = 4;

/// Carries out `GROUPS` groups of additions and comparisons in registers, half of which write one; hands `loaded` on when
/// they have been asked for. A load that needs what this returns comes after them.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn between_loads<const GROUPS: usize>(loaded: u32) -> u32 {
    let mut through = loaded;
    // SAFETY: it reads and writes registers that are named, and nothing else.
    unsafe {
        std::arch::asm!(
            "# {through:e} is as it was",
            ".rept {groups}",
            "add {a}, 3",
            "test {b}, {b}",
            "lea {b}, [{a} + 5]",
            "cmp {a}, {b}",
            ".endr",
            groups = const GROUPS,
            through = inout(reg) through,
            a = inout(reg) 0u64 => _,
            b = inout(reg) 0u64 => _,
            options(nostack, nomem)
        );
    }
    through
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

/// Makes a circle of words, each with the address of the next, which is not beside it. Few, so that making it takes no time beside
/// the chain's.
#[cfg(target_arch = "x86_64")]
fn close(ring: &mut [u64; WORDS_IN_RING]) {
    /// Has no factor in common with the number of words.
    const STEP: usize = 7;
    let first = ring.as_ptr();
    for (at, word) in ring.iter_mut().enumerate() {
        *word = first.wrapping_add((at + STEP) % WORDS_IN_RING) as u64;
    }
}

#[cfg(target_arch = "x86_64")]
const WORDS_IN_RING: usize = 16;

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
    let mut word = 3u64;
    let own = &raw mut word;
    match kind {
        // Of a register: processors such as Golden Cove carry out additions of small constants while they rename registers, in no time.
        Chain::Add => rounds!("add {value}, {other}", value = inout(reg) word => word, other = in(reg) 3u64,),
        Chain::Load => {
            // Words that each have the address of another one: a load that always has the same address and value is foretold by
            // processors such as Golden Cove, and takes no time.
            let mut ring = [0; WORDS_IN_RING];
            close(&mut ring);
            let first = ring[0] as *const u64;
            rounds!("mov {value}, [{value}]", value = inout(reg) first => _,);
            std::hint::black_box(&ring);
        }
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

/// Where the code of a loop lies.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// In one aligned line of 32 bytes.
    Whole,
    /// In two lines of 32 bytes, and in one of 64.
    Across32,
    /// In two lines of 64 bytes.
    Across64,
}

/// Carries out so many rounds of a loop of three instructions, whose time depends on where its code lies alone.
///
/// Pre: `rounds` is at least 1 (0 counts as 1).
#[cfg(target_arch = "x86_64")]
pub fn placed_loop(placed: Placed, rounds: u64) {
    macro_rules! rounds {
        ($before:literal) => {
            // SAFETY: it writes registers that are named, and nothing else.
            unsafe {
                std::arch::asm!(
                    ".p2align 6",
                    // Single-byte no-operations, carried out once. The addition is of 4 bytes and ends a line.
                    concat!(".skip ", $before, ", 0x90"),
                    "2:",
                    "add {value}, 3",
                    "sub {rounds}, 1",
                    "jnz 2b",
                    value = inout(reg) 0u64 => _,
                    rounds = inout(reg) rounds.max(1) => _,
                    options(nostack, nomem)
                );
            }
        };
    }
    match placed {
        Placed::Whole => rounds!("0"),
        Placed::Across32 => rounds!("28"),
        Placed::Across64 => rounds!("60"),
    }
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
        // All words of the ring are on the way around it.
        let mut ring = [0; WORDS_IN_RING];
        close(&mut ring);
        let (mut at, mut steps) = (ring[0] as *const u64, 0);
        while steps == 0 || at != ring[0] as *const u64 {
            // SAFETY: the ring holds addresses of its own words, and is alive.
            at = unsafe { *at } as *const u64;
            steps += 1;
        }
        assert_eq!(steps, WORDS_IN_RING);
        chain(Chain::Add, 0);
        assert_eq!(short_loops(0), short_loops(1));
        for placed in [Placed::Whole, Placed::Across32, Placed::Across64] {
            placed_loop(placed, 0);
        }
    }
}
