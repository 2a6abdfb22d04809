//! Code that waits for nothing, to measure its throughput per clock; chains of dependent instructions, to measure the
//! latency of one; and loops whose time depends on the address of their code.

/// Carries out straight code as compilers make it of unrolled loops: loads, and additions in registers, which wait for one another no longer than
/// processors of twelve instructions a clock would take, and a branch behind fifty of them. All words are in the nearest cache. Returns how many instructions that were.
///
/// Pre: `rounds` is at least 1 (0 counts as 1).
#[cfg(target_arch = "x86_64")]
pub fn straight_code(rounds: u64) -> u64 {
    const GROUPS: u64 = 4;
    /// In a group, and around the groups.
    const EACH: u64 = 12;
    const AROUND: u64 = 2;
    let words = [3u64; 2];
    // SAFETY: it reads two words that outlive it. Registers that are written are named.
    unsafe {
        std::arch::asm!(
            // The place in a line of code and the registers are fixed: Golden Cove carries out 4.5 to 6 a clock by the bytes that they take.
            ".p2align 6",
            "2:",
            ".rept {groups}",
            // A load is not followed by an addition to its register: processors such as Redwood Cove make one operation of them.
            "mov r8, [rsi]",
            "mov r9, [rsi + 8]",
            // The additions take registers: additions of constants are folded into one another by processors such
            // as Golden Cove.
            "add r10, rdi",
            "lea r11, [r11 + rdi]",
            "add r9, r8",
            "xor r8d, r8d",
            "mov r9, [rsi]",
            "mov r8, [rsi + 8]",
            "add r12, rdi",
            "lea r13, [r13 + rdi]",
            "add r8, r9",
            "xor r9d, r9d",
            ".endr",
            "sub {rounds}, 1",
            "jnz 2b",
            groups = const GROUPS,
            in("rsi") words.as_ptr(),
            in("rdi") 3u64,
            rounds = inout(reg) rounds.max(1) => _,
            out("r8") _,
            out("r9") _,
            inout("r10") 0u64 => _,
            inout("r11") 0u64 => _,
            inout("r12") 0u64 => _,
            inout("r13") 0u64 => _,
            options(nostack, readonly)
        );
    }
    rounds.max(1) * (GROUPS * EACH + AROUND)
}

/// Instructions in a group of [`between_loads`].
#[cfg(target_arch = "x86_64")]
pub const IN_A_GROUP: u32 = 4;

/// Carries out `GROUPS` groups of additions and comparisons in registers, half of which write one; passes `loaded` on
/// once they have been issued. A load that needs the result comes after them.
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
    /// Additions to a word of memory: each loads what the one before stored.
    InPlace,
    /// Copies from word to word of memory: each loads what the one before stored, at another address.
    AlongMemory,
    /// Additions to a word of memory that nobody else can come between.
    Locked,
}

/// Instructions in one round of [`chain`].
#[cfg(target_arch = "x86_64")]
pub const IN_A_CHAIN: u64 = 8;

/// Makes a circle of words, each with the address of the next, which is not beside it. The words are few, so that
/// making the circle takes little time beside the chain.
#[cfg(target_arch = "x86_64")]
fn close(ring: &mut [u64; WORDS_IN_RING]) {
    /// The step has no factor in common with the number of words.
    const STEP: usize = 7;
    let first = ring.as_ptr();
    for (at, word) in ring.iter_mut().enumerate() {
        *word = first.wrapping_add((at + STEP) % WORDS_IN_RING) as u64;
    }
}

#[cfg(target_arch = "x86_64")]
const WORDS_IN_RING: usize = 16;

/// A power of two, of 8 bytes each.
#[cfg(target_arch = "x86_64")]
const WORDS_IN_ROW: usize = 64;

/// Carries out so many rounds of a chain.
///
/// Pre: `rounds` is at least 1 (0 counts as 1). Post: `rounds * IN_A_CHAIN` steps of that class were carried out.
#[cfg(target_arch = "x86_64")]
pub fn chain(kind: Chain, rounds: u64) {
    macro_rules! rounds {
        ($instruction:literal, $($operands:tt)*) => {
            // SAFETY: it reads and writes registers that are named, and words that outlive it and are its own.
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
        // The addition takes a register: processors such as Golden Cove carry out additions of small constants during
        // register renaming, in no time.
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
        Chain::InPlace => rounds!("add qword ptr [{at}], {other}", at = in(reg) own, other = in(reg) 3u64,),
        Chain::AlongMemory => {
            let mut words = [word; WORDS_IN_ROW];
            rounds!(
                "mov {value}, [{at} + {index}]
                 add {index}, 8
                 and {index}, {mask}
                 mov [{at} + {index}], {value}",
                value = out(reg) _,
                index = inout(reg) 0u64 => _,
                at = in(reg) words.as_mut_ptr(),
                mask = const (WORDS_IN_ROW - 1) * 8,
            );
            std::hint::black_box(&words);
        }
        Chain::Locked => rounds!("lock add qword ptr [{at}], 1", at = in(reg) own,),
    }
    std::hint::black_box(word);
}

/// The addresses of a loop's code.
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
            Chain::InPlace,
            Chain::AlongMemory,
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
        assert_eq!(straight_code(0), straight_code(1));
        assert_eq!(straight_code(3), 150);
        for placed in [Placed::Whole, Placed::Across32, Placed::Across64] {
            placed_loop(placed, 0);
        }
    }
}
