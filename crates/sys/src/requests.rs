//! The messages of a program to the recorder while it runs under `domicile record`: Valgrind's client
//! requests, numbered as in `capture/valgrind/domicile-trace.h`.
//!
//! Each is a few instructions that do nothing on the bare processor. Slots and data sets have numbers of the
//! caller's choice, below 2^48, each kind its own; a number can be used again after it was freed.

/// The number of a request: 'D', 'M', and which one.
#[cfg_attr(any(not(target_arch = "x86_64"), miri), allow(dead_code))]
const REQUESTS: u64 = 0x444d_0000;
const PHASE: u64 = 0;
const RECORD: u64 = 4;
const SLOT: u64 = 5;
const SLOT_FREE: u64 = 6;
const DATA_RANGE: u64 = 7;
const DATA_THREAD: u64 = 8;
const ALLOCATE: u64 = 9;
const DATA_FREE: u64 = 10;
const RECORDING: u64 = 11;
const SUMMARY: u64 = 12;
const LINE: u64 = 13;
const AT_LINES: u64 = 14;
const ASIDE: u64 = 15;
/// The most lines that [`at_lines`] tells.
pub const LINES_MAX: usize = 8;
/// Stands for a slot: the data set is not worth caching.
const NO_SLOT: u64 = u64::MAX;

/// Returns whether `domicile record` listens.
pub fn recording() -> bool {
    ask(RECORDING, [0; 3]) == 1
}

/// From now on references are recorded, or are not.
pub fn record(on: bool) {
    ask(RECORD, [u64::from(on), 0, 0]);
}

/// A program that is interpreted has this line, called `number` from now on. `name`: the function, a newline, the file.
pub fn line(number: u64, line: u32, name: &std::ffi::CStr) {
    ask(
        LINE,
        [number, u64::from(line), name.as_ptr().expose_provenance() as u64],
    );
}

/// The interpreter is at the first of these lines in this thread, called from the second and so on; the first [`LINES_MAX`]
/// count. None: at no line.
pub fn at_lines(numbers: &[u64]) {
    let at = numbers.as_ptr().expose_provenance() as u64;
    ask(AT_LINES, [numbers.len() as u64, at, 0]);
}

/// Excludes the thread's references from the program's from now on, or includes them again.
pub fn aside(aside: bool) {
    ask(ASIDE, [u64::from(aside), 0, 0]);
}

/// The program enters the phase of this name.
pub fn phase(name: &std::ffi::CStr) {
    ask(PHASE, [name.as_ptr().expose_provenance() as u64, 0, 0]);
}

/// Sends a compiler's summary of a parallel loop, as text.
pub fn summary(text: &str) {
    ask(
        SUMMARY,
        [text.as_ptr().expose_provenance() as u64, text.len() as u64, 0],
    );
}

/// A slot of so many bytes in each shared cache, of which the data sets given to it have the use for themselves
/// (`private`) or together with all that has weak locality.
pub fn slot(slot: u64, bytes: u64, private: bool) {
    ask(SLOT, [slot, bytes, u64::from(private)]);
}

/// Frees the slot.
pub fn slot_free(slot: u64) {
    ask(SLOT_FREE, [slot, 0, 0]);
}

/// These addresses belong to a data set, which learns of it at its next allocation.
pub fn data_range(set: u64, address: usize, bytes: usize) {
    ask(DATA_RANGE, [set, address as u64, bytes as u64]);
}

/// A thread, by the kernel's number, uses a data set; without such a message all threads use a data set.
pub fn data_thread(set: u64, tid: u32) {
    ask(DATA_THREAD, [set, u64::from(tid), 0]);
}

/// The kernel's number of the calling thread.
pub fn thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Gives the data set the slot; `None` means that it is not worth caching.
pub fn allocate(set: u64, slot: Option<u64>) {
    ask(ALLOCATE, [set, slot.unwrap_or(NO_SLOT), 0]);
}

/// Frees the data set; its memory stays.
pub fn data_free(set: u64) {
    ask(DATA_FREE, [set, 0, 0]);
}

/// Asks Valgrind's tool; 0 if the program does not run under Valgrind, or under a tool that does not know the
/// request.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn ask(request: u64, arguments: [u64; 3]) -> u64 {
    let [first, second, third] = arguments;
    let block = [REQUESTS + request, first, second, third, 0, 0];
    let answer: u64;
    // SAFETY: the rotations of rdi add up to 128 bits and the exchange is of a register with itself, so on the bare
    // processor only the flags change, which the compiler expects. Valgrind reads the six words of `block`, which
    // outlive the sequence, writes rdx, and touches no stack.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") block.as_ptr(),
            inlateout("rdx") 0_u64 => answer,
            options(nostack),
        );
    }
    answer
}

/// There is no recorder for this machine.
#[cfg(any(not(target_arch = "x86_64"), miri))]
fn ask(_request: u64, _arguments: [u64; 3]) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "reads a file")]
    fn the_numbers_are_those_of_the_header() {
        let header = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../capture/valgrind/domicile-trace.h");
        let header = std::fs::read_to_string(header).unwrap();
        for (name, number) in [
            ("PHASE", PHASE),
            ("RECORD", RECORD),
            ("SLOT", SLOT),
            ("SLOT_FREE", SLOT_FREE),
            ("DATA_RANGE", DATA_RANGE),
            ("DATA_THREAD", DATA_THREAD),
            ("ALLOCATE", ALLOCATE),
            ("DATA_FREE", DATA_FREE),
            ("RECORDING", RECORDING),
            ("SUMMARY", SUMMARY),
            ("LINE", LINE),
            ("AT_LINES", AT_LINES),
            ("ASIDE", ASIDE),
        ] {
            let line = format!("DOMICILE_REQUEST_{name} = {number}");
            let found = header.lines().any(|at| at.trim().trim_end_matches(',') == line);
            assert!(found, "{line}");
        }
        assert!(header.contains("DOMICILE_REQUEST_(n) (0x444d0000ull + (n))"));
        assert!(header.contains("DOMICILE_NO_SLOT (~0ull)"));
        assert!(header.contains(&format!("DOMICILE_LINES_MAX {LINES_MAX}\n")));
    }

    #[test]
    fn the_bare_processor_has_nothing_to_say() {
        assert!(!recording());
        record(true);
        phase(c"steady");
        line(1, 12, c"sum\naxis.py");
        at_lines(&[1, 1]);
        at_lines(&[]);
        aside(false);
        summary("{}");
        slot(1, 4096, true);
        data_range(1, 4096, 4096);
        data_thread(1, 0);
        allocate(1, Some(1));
        allocate(1, None);
        data_free(1);
        slot_free(1);
        assert!(!recording());
    }

    /// The bytes by which Valgrind knows the sequence (`coregrind`'s decoder for amd64), searched for in the
    /// compiled code.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[test]
    fn the_sequence_is_valgrinds() {
        let bytes = [
            0x48, 0xc1, 0xc7, 0x03, 0x48, 0xc1, 0xc7, 0x0d, 0x48, 0xc1, 0xc7, 0x3d, 0x48, 0xc1, 0xc7, 0x33, 0x48, 0x87,
        ];
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let sequences = program
            .windows(bytes.len() + 1)
            .filter(|at| at[..bytes.len()] == bytes && at[bytes.len()] == 0xdb)
            .count();
        assert!(sequences > 0);
    }
}
