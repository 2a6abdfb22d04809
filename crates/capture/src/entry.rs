//! The place where a program begins, in its file's own addresses, to find `main` in a stripped file.
//!
//! A symbol is the best source (`elf`). Without one, the code at the entry passes `main` to the C library; Go keeps its
//! own table of functions; and every program has an entry, where the run-time of its language begins.

use object::elf;
use object::read::elf::{Dyn, ProgramHeader};
use object::{Object, ObjectKind, ObjectSection, ObjectSegment, RelocationTarget};

/// How many bytes of code are examined: the C library's entry code is shorter.
const MOST_CODE: u64 = 96;

/// A file's statements about where it begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Entry {
    /// True if it is a program, and no library or dynamic linker.
    pub is_program: bool,
    /// The address at which the kernel or the dynamic linker enters it.
    pub start: Option<u64>,
    /// The address that the entry code passes to the C library as `main`.
    pub main: Option<u64>,
}

impl Entry {
    pub fn of(file: &object::File<'_>) -> Entry {
        let is_program = is_program(file);
        let start = Some(file.entry()).filter(|start| is_program && is_code(file, *start));
        Entry {
            is_program,
            start,
            main: start.and_then(|start| main_of(file, start)),
        }
    }
}

/// A library may have an interpreter, too (the C library has); it comes after its program.
fn is_program(file: &object::File<'_>) -> bool {
    if file.kind() == ObjectKind::Executable {
        return true;
    }
    let object::File::Elf64(of) = file else { return false };
    let (endian, data) = (of.endian(), of.data());
    of.elf_program_headers().iter().any(|header| {
        let flags = |entries: &[elf::Dyn64<_>]| {
            entries
                .iter()
                .any(|entry| entry.d_tag(endian) == elf::DT_FLAGS_1 && entry.d_val(endian) & PIE != 0)
        };
        header.p_type(endian) == elf::PT_INTERP
            || matches!(header.dynamic(endian, data), Ok(Some(entries)) if flags(entries))
    })
}

/// `DF_1_PIE`: only this marks a static program that may lie anywhere.
const PIE: u64 = 0x0800_0000;

fn is_code(file: &object::File<'_>, at: u64) -> bool {
    let holds = |s: &object::Segment<'_, '_>| at >= s.address() && at - s.address() < s.size();
    file.segments().any(|s| s.permissions().executable() && holds(&s))
}

/// Bytes of the file from an address of its own on, at most `most` of them.
fn bytes<'a>(file: &object::File<'a>, at: u64, most: u64) -> Option<&'a [u8]> {
    file.segments().find_map(|segment| {
        let inside = at.checked_sub(segment.address())?;
        let left = segment.data().ok()?.get(usize::try_from(inside).ok()?..)?;
        Some(&left[..left.len().min(most as usize)]).filter(|left| !left.is_empty())
    })
}

/// The first argument of the call of `__libc_start_main`, which is in the entry code; in musl it is in a function that
/// this code calls.
fn main_of(file: &object::File<'_>, start: u64) -> Option<u64> {
    let code = bytes(file, start, MOST_CODE)?;
    first_argument(file, start, code).or_else(|| {
        let next = first_call(start, code).filter(|next| is_code(file, *next))?;
        first_argument(file, next, bytes(file, next, MOST_CODE)?)
    })
}

/// The code that is passed in RDI: `lea main(%rip),%rdi`, `mov $main,%rdi`, or `mov main@GOTPCREL(%rip),%rdi`.
fn first_argument(file: &object::File<'_>, begin: u64, code: &[u8]) -> Option<u64> {
    const LEA: [u8; 3] = [0x48, 0x8d, 0x3d];
    const MOV: [u8; 3] = [0x48, 0xc7, 0xc7];
    const LOAD: [u8; 3] = [0x48, 0x8b, 0x3d];
    let found = code.windows(7).enumerate().find_map(|(at, bytes)| {
        let number = i32::from_le_bytes(bytes[3..].try_into().ok()?);
        let beyond = begin.wrapping_add(at as u64 + 7).wrapping_add_signed(number.into());
        let main = if bytes.starts_with(&LEA) {
            beyond
        } else if bytes.starts_with(&MOV) {
            u64::try_from(number).ok()?
        } else if bytes.starts_with(&LOAD) {
            word_of(file, beyond)?
        } else {
            return None;
        };
        Some(main)
    });
    found.filter(|main| is_code(file, *main))
}

/// The target of the first `call` of this code.
fn first_call(begin: u64, code: &[u8]) -> Option<u64> {
    const CALL: u8 = 0xe8;
    let (at, bytes) = code.windows(5).enumerate().find(|(_, bytes)| bytes[0] == CALL)?;
    let number = i32::from_le_bytes(bytes[1..].try_into().ok()?);
    Some(begin.wrapping_add(at as u64 + 5).wrapping_add_signed(number.into()))
}

/// A word of the file as the dynamic linker leaves it, in the file's own addresses.
fn word_of(file: &object::File<'_>, at: u64) -> Option<u64> {
    let mut relocations = file.dynamic_relocations().into_iter().flatten();
    match relocations.find(|(place, _)| *place == at) {
        Some((_, to)) if to.target() == RelocationTarget::Absolute => u64::try_from(to.addend()).ok(),
        // Another file's, or one with a name.
        Some(_) => None,
        None => Some(u64::from_le_bytes(bytes(file, at, 8)?.try_into().ok()?)),
    }
}

/// The functions of a Go program, each with its address, from the table that its run-time needs (`.gopclntab`, of Go
/// 1.18 and later); none in other programs.
pub fn functions_of_go(file: &object::File<'_>) -> Vec<(u64, String)> {
    go_functions(file).unwrap_or_default()
}

fn go_functions(file: &object::File<'_>) -> Option<Vec<(u64, String)>> {
    const MAGIC: [u32; 2] = [0xffff_fff0, 0xffff_fff1];
    /// Longer names are invalid.
    const LONGEST: usize = 1 << 12;
    let names = [".gopclntab", ".data.rel.ro.gopclntab"];
    let section = names.iter().find_map(|name| file.section_by_name(name))?;
    let table = section.data().ok()?;
    let text = file.section_by_name(".text")?;
    let half = |at: usize| Some(u32::from_le_bytes(table.get(at..at.checked_add(4)?)?.try_into().ok()?));
    let word = |number: usize| {
        let bytes = table.get(8 + 8 * number..16 + 8 * number)?;
        usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok()
    };
    if !MAGIC.contains(&half(0)?) || table.get(7) != Some(&8) {
        return None;
    }
    let (count, all_names, functions) = (word(0)?, word(3)?, word(7)?);
    // Since Go 1.26 it is absent; before, the linker may have to fill it in.
    let begin = word(2).map(|begin| begin as u64);
    let begin = begin.filter(|begin| is_code(file, *begin)).unwrap_or(text.address());
    let entry = |number: usize| -> Option<(u64, String)> {
        let at = functions.checked_add(number.checked_mul(8)?)?;
        let about = functions.checked_add(half(at.checked_add(4)?)? as usize)?;
        let name = all_names.checked_add(half(about.checked_add(4)?)? as usize)?;
        let name = table.get(name..)?;
        let length = name.iter().take(LONGEST).position(|byte| *byte == 0)?;
        let name = String::from_utf8_lossy(&name[..length]).into_owned();
        Some((begin.checked_add(half(at)?.into())?, name))
    };
    let most = table.len() / 8;
    Some(
        (0..count.min(most))
            .map_while(entry)
            .filter(|(_, name)| !name.is_empty())
            .collect(),
    )
}
