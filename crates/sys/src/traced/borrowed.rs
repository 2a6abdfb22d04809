//! A few pages of ours in a traced process, with code that changes the protection of many ranges at once: a stop for each would
//! take longer than all of them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::Traced;
use super::calls::{Call, memory};
use crate::memory::{PAGE, Span};

/// For each entry of a table (address, bytes, protection, key, result): the system call of [`NUMBER`], `pkey_mprotect` or `mprotect`.
///
/// `rbx` is the table, `r12` the number of entries.
const CHANGE: &[u8] = &[
    0x4d, 0x85, 0xe4, // 1: test r12, r12
    0x74, 0x23, // jz 2f
    0xb8, 0x00, 0x00, 0x00, 0x00, // mov eax, NUMBER
    0x48, 0x8b, 0x3b, // mov rdi, [rbx]
    0x48, 0x8b, 0x73, 0x08, // mov rsi, [rbx + 8]
    0x48, 0x8b, 0x53, 0x10, // mov rdx, [rbx + 16]
    0x4c, 0x8b, 0x53, 0x18, // mov r10, [rbx + 24]
    0x0f, 0x05, // syscall
    0x48, 0x89, 0x43, 0x20, // mov [rbx + 32], rax
    0x48, 0x83, 0xc3, 0x28, // add rbx, 40
    0x49, 0xff, 0xcc, // dec r12
    0xeb, 0xd8, // jmp 1b
    0xcc, // 2: int3
];
/// The offset of the system call's number in that code.
const NUMBER: usize = 6;
/// Touches two pages in turn, `r12` times each; `rbx` is the first.
const TOUCH: &[u8] = &[
    0x8a, 0x03, // 1: mov al, [rbx]
    0x8a, 0x83, 0x00, 0x10, 0x00, 0x00, // mov al, [rbx + 4096]
    0x49, 0xff, 0xcc, // dec r12
    0x75, 0xf3, // jnz 1b
    0xcc, // int3
];
/// The result of an entry that the code has not reached.
const UNTOUCHED: usize = usize::MAX;
/// Bytes of an entry, and how many there is room for.
const ENTRY: usize = 40;
const ENTRIES: usize = 16 * PAGE / ENTRY;
/// The pages: code, the table, and the two that are touched.
const BYTES: usize = (1 + 16 + 2) * PAGE;

/// How pages are closed to a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Closing {
    /// Protection keys, to which a thread has rights of its own.
    #[default]
    Keys,
    /// The protection of the pages themselves, as all threads of the process have it.
    Protection,
}

/// A range whose pages get a protection, and a key where pages are closed by keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protected {
    pub span: Span,
    pub read: bool,
    pub write: bool,
    pub key: u32,
}

/// Pages of ours in the first process of a traced program.
pub struct Borrowed {
    start: usize,
    gate: usize,
    memory: File,
}

impl Borrowed {
    /// Pre: the task is one of the first process, and stopped otherwise than as it enters a call.
    pub fn begin(traced: &Traced, task: u32, closing: Closing) -> io::Result<Borrowed> {
        let gate = traced.gate()?;
        let memory = memory(task)?;
        let (read, write) = (libc::PROT_READ as usize, libc::PROT_WRITE as usize);
        let private = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
        let map = Call(libc::SYS_mmap, [0, BYTES, read | write, private, usize::MAX, 0]);
        let start = traced.call(task, gate, map)?;
        let number = match closing {
            Closing::Keys => libc::SYS_pkey_mprotect,
            Closing::Protection => libc::SYS_mprotect,
        };
        let mut change = CHANGE.to_vec();
        change[NUMBER..NUMBER + 4].copy_from_slice(&(number as u32).to_le_bytes());
        memory.write_all_at(&change, start as u64)?;
        memory.write_all_at(TOUCH, (start + PAGE / 2) as u64)?;
        let execute = libc::PROT_EXEC as usize;
        traced.call(
            task,
            gate,
            Call(libc::SYS_mprotect, [start, PAGE, read | execute, 0, 0, 0]),
        )?;
        Ok(Borrowed { start, gate, memory })
    }

    /// Takes a protection key for the process; a thread's rights to it are open.
    ///
    /// `None`: there is none left.
    pub fn take_key(&self, traced: &Traced, task: u32) -> io::Result<Option<u32>> {
        match traced.call(task, self.gate, Call(libc::SYS_pkey_alloc, [0; 6])) {
            Ok(key) => Ok(Some(key as u32)),
            Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn span(&self) -> Span {
        Span::new(self.start, BYTES)
    }

    /// A word of the program's memory.
    pub fn word(&self, address: usize) -> io::Result<u64> {
        let mut word = [0; size_of::<u64>()];
        self.memory.read_exact_at(&mut word, address as u64)?;
        Ok(u64::from_ne_bytes(word))
    }

    /// Has the kernel give a page of a private mapping a frame of its own, as a write of the program would. The content
    /// stays.
    ///
    /// Pre: the program is stopped, and no other process writes to the page: the mapping is private.
    /// Errors: the program could not write there either, as the mapping has no memory there (its file ends before, a guard page).
    pub fn give_frame(&self, address: usize) -> io::Result<()> {
        let mut byte = [0];
        self.memory.read_exact_at(&mut byte, address as u64)?;
        self.memory.write_all_at(&byte, address as u64)
    }

    /// Gives ranges their protection and key. Returns the number of ranges that could not get theirs, as they are
    /// no longer mapped.
    ///
    /// Pre: if pages are closed by keys, each has the given protection, and keeps it until then.
    pub fn change(&self, traced: &Traced, task: u32, ranges: &[Protected]) -> io::Result<usize> {
        let mut failed = 0;
        for some in ranges.chunks(ENTRIES) {
            let mut table: Vec<u8> = Vec::with_capacity(some.len() * ENTRY);
            for range in some {
                let read = if range.read { libc::PROT_READ } else { 0 };
                let protection = read | if range.write { libc::PROT_WRITE } else { 0 };
                let fields = [
                    range.span.start,
                    range.span.bytes,
                    protection as usize,
                    range.key as usize,
                    UNTOUCHED,
                ];
                table.extend(fields.iter().flat_map(|field| (*field as u64).to_ne_bytes()));
            }
            let at = self.start + PAGE;
            self.memory.write_all_at(&table, at as u64)?;
            traced.run(task, self.start, [at, some.len()], |address| {
                let said = format!(
                    "{address:#x} is closed to the code that changes protections at {:#x}",
                    self.start
                );
                Err(io::Error::new(io::ErrorKind::PermissionDenied, said))
            })?;
            self.memory.read_exact_at(&mut table, at as u64)?;
            let results = table.chunks_exact(ENTRY).map(|entry| &entry[ENTRY - 8..]);
            failed += results.filter(|result| result.iter().any(|byte| *byte != 0)).count();
        }
        Ok(failed)
    }

    /// The two pages that [`Borrowed::touch`] touches.
    pub fn touched(&self) -> [Span; 2] {
        let first = self.start + BYTES - 2 * PAGE;
        [Span::new(first, PAGE), Span::new(first + PAGE, PAGE)]
    }

    /// Has the thread touch the two pages in turn, so many times each. A closed touch goes to `closed`, and then
    /// completes.
    pub fn touch(
        &self,
        traced: &Traced,
        task: u32,
        times: usize,
        closed: impl FnMut(usize) -> io::Result<()>,
    ) -> io::Result<()> {
        let first = self.touched()[0].start;
        traced.run(task, self.start + PAGE / 2, [first, times], closed)
    }
}
