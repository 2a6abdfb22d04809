//! The addresses of the program's files in memory.

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use live::protocol::Area;
use replicas::Segment;
use sys::memory::{PAGE, Span};

/// A loaded file.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// As the dynamic linker reports it; empty for the program itself.
    path: PathBuf,
    /// To add to the file's own addresses.
    bias: usize,
    /// Its code, in memory.
    pub code: Vec<(usize, usize)>,
    /// Parts that are not written, and whether they are code.
    unwritten: Vec<(usize, usize, bool)>,
    /// From the first byte to the byte after the last.
    span: (usize, usize),
    build_id: String,
}

/// The address of each module of the instructions; `None` for one that is not loaded, or is not the same file any more.
pub struct Modules(Vec<Option<Loaded>>);

impl Modules {
    pub fn find(wanted: &[live::protocol::Module], notes: &mut Vec<String>) -> Modules {
        let loaded = loaded();
        let found = wanted.iter().enumerate().map(|(number, module)| {
            let here = loaded.iter().find(|l| {
                if number == 0 {
                    l.path.as_os_str().is_empty()
                } else {
                    same(&l.path, &module.path)
                }
            })?;
            if !module.build_id.is_empty() && !here.build_id.is_empty() && here.build_id != module.build_id {
                notes.push(format!(
                    "{} is not the file whose names were looked up (its build id differs)",
                    module.path.display()
                ));
                return None;
            }
            Some(here.clone())
        });
        Modules(found.collect())
    }

    pub fn get(&self, module: u32) -> Option<&Loaded> {
        self.0.get(module as usize)?.as_ref()
    }

    /// An area in memory: `start..end`, cut to the module.
    pub fn place(&self, area: &Area) -> Option<(usize, usize)> {
        let loaded = self.get(area.module)?;
        let start = loaded.bias.checked_add(usize::try_from(area.start).ok()?)?;
        let end = loaded.bias.saturating_add(usize::try_from(area.end).ok()?);
        let (start, end) = (start.max(loaded.span.0), end.min(loaded.span.1));
        (start < end).then_some((start, end))
    }
}

fn loaded() -> Vec<Loaded> {
    let mut loaded: Vec<Loaded> = Vec::new();
    // SAFETY: the callback gets the vector that it expects, alive until this returns.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut loaded).cast()) };
    loaded
}

/// The parts of all loaded files that are not written, in whole pages.
pub fn unwritten() -> Vec<Segment> {
    let whole = |(start, end, execute): (usize, usize, bool)| {
        let (start, end) = (start / PAGE * PAGE, end.next_multiple_of(PAGE));
        Segment {
            span: Span::new(start, end - start),
            execute,
        }
    };
    let parts = loaded().into_iter().flat_map(|file| file.unwritten);
    parts.filter(|(start, end, _)| start < end).map(whole).collect()
}

fn same(a: &Path, b: &Path) -> bool {
    a == b || (a.file_name() == b.file_name() && a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b)))
}

unsafe extern "C" fn each(info: *mut libc::dl_phdr_info, _: usize, state: *mut c_void) -> c_int {
    // SAFETY: `find` gave this vector and uses it in no other way meanwhile.
    let all = unsafe { &mut *state.cast::<Vec<Loaded>>() };
    // SAFETY: the dynamic linker's description is whole during the call.
    let info = unsafe { &*info };
    let path = if info.dlpi_name.is_null() {
        PathBuf::new()
    } else {
        // SAFETY: a name that is not null is a string that ends in a zero.
        let name = unsafe { CStr::from_ptr(info.dlpi_name) };
        PathBuf::from(OsStr::from_bytes(name.to_bytes()))
    };
    // On some systems the vdso has no name; the program comes first.
    if path.as_os_str().is_empty() && !all.is_empty() {
        return 0;
    }
    // SAFETY: the description has that many headers.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let bias = info.dlpi_addr as usize;
    let place = |header: &libc::Elf64_Phdr| {
        let start = bias.wrapping_add(header.p_vaddr as usize);
        (start, start.wrapping_add(header.p_memsz as usize))
    };
    let loads = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let code = loads
        .clone()
        .filter(|header| header.p_flags & libc::PF_X != 0)
        .map(place)
        .collect();
    // Others search the beginning of the file for its name (for the symbols of a backtrace), so it stays.
    let names = |header: &libc::Elf64_Phdr| header.p_offset == 0 && header.p_flags & libc::PF_X == 0;
    let unwritten = loads
        .clone()
        .filter(|header| header.p_flags & (libc::PF_W | libc::PF_R) == libc::PF_R && !names(header))
        .map(|header| {
            let (start, end) = place(header);
            (start, end, header.p_flags & libc::PF_X != 0)
        })
        .collect();
    let span = loads.map(place).fold((usize::MAX, 0), |(from, to), (start, end)| {
        (from.min(start), to.max(end))
    });
    let mut build_id = String::new();
    for header in headers.iter().filter(|header| header.p_type == libc::PT_NOTE) {
        let (start, end) = place(header);
        if start < span.0 || end > span.1 {
            continue;
        }
        let notes = std::ptr::with_exposed_provenance::<u8>(start);
        // SAFETY: these notes lie in a loaded part of the file that nobody writes.
        let notes = unsafe { std::slice::from_raw_parts(notes, end - start) };
        if let Some(found) = build_id_in(notes, header.p_align as usize) {
            build_id = found;
        }
    }
    all.push(Loaded {
        path,
        bias,
        code,
        unwritten,
        span,
        build_id,
    });
    0
}

/// The GNU build id among the notes of a file, hexadecimal.
fn build_id_in(mut notes: &[u8], alignment: usize) -> Option<String> {
    const BUILD_ID: u32 = 3;
    let alignment = if alignment == 8 { 8 } else { 4 };
    while notes.len() >= 12 {
        let word = |at: usize| notes[at..at + 4].try_into().map_or(0, u32::from_ne_bytes);
        let (name_bytes, bytes, kind) = (word(0) as usize, word(4) as usize, word(8));
        let body = (12 + name_bytes).next_multiple_of(alignment);
        let name = notes.get(12..12 + name_bytes)?;
        let description = notes.get(body..body.checked_add(bytes)?)?;
        if kind == BUILD_ID && name == b"GNU\0" {
            return Some(description.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        notes = notes.get((body + bytes).next_multiple_of(alignment)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        let note = |kind: u32, name: &[u8], body: &[u8]| {
            let mut bytes = Vec::new();
            for word in [name.len() as u32, body.len() as u32, kind] {
                bytes.extend(word.to_ne_bytes());
            }
            for part in [name, body] {
                bytes.extend(part);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            bytes
        };
        let mut notes = note(1, b"GNU\0", &[0; 16]);
        notes.extend(note(3, b"Go\0", &[7; 5]));
        assert_eq!(build_id_in(&notes, 4), None);
        notes.extend(note(3, b"GNU\0", &[0xab, 0x01, 0xff]));
        assert_eq!(build_id_in(&notes, 4).as_deref(), Some("ab01ff"));
        for length in 0..notes.len() - 4 {
            assert_eq!(build_id_in(&notes[..length], 4), None);
        }
        assert_eq!(build_id_in(&[0xff; 64], 4), None);
    }

    #[test]
    fn this_program_is_where_it_is() {
        let wanted = [live::protocol::Module {
            path: std::env::current_exe().unwrap(),
            build_id: String::new(),
            passed: false,
        }];
        let mut notes = Vec::new();
        let modules = Modules::find(&wanted, &mut notes);
        let loaded = modules.get(0).unwrap();
        let here = this_program_is_where_it_is as fn() as usize;
        assert!(loaded.code.iter().any(|(start, end)| (*start..*end).contains(&here)));
        let area = |start, end| Area { module: 0, start, end };
        let own = (here - loaded.bias) as u64;
        assert_eq!(modules.place(&area(own, own + 8)), Some((here, here + 8)));
        assert_eq!(modules.place(&area(u64::MAX - 8, u64::MAX)), None);
        let other = [live::protocol::Module {
            build_id: "00".to_string(),
            ..wanted[0].clone()
        }];
        let changed = Modules::find(&other, &mut notes);
        assert_eq!(
            (changed.get(0).is_none(), notes.len()),
            (!loaded.build_id.is_empty(), usize::from(!loaded.build_id.is_empty()))
        );
    }
}
