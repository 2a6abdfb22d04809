//! One executable file: where its parts lie, what it calls them, and where its debug information is.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use object::{Architecture, Object, ObjectSection, ObjectSegment, ObjectSymbol, SectionKind, SymbolKind};

/// Larger files are left alone.
const MOST_BYTES: u64 = 4 << 30;
/// Named pieces of data taken from one file.
const MOST_DATA: usize = 1 << 18;

/// The processor that this was built for.
const HERE: Architecture = if cfg!(target_arch = "aarch64") {
    Architecture::Aarch64
} else {
    Architecture::X86_64
};

/// A piece of data or a function, in the file's own addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub addr: u64,
    pub bytes: u64,
    pub name: String,
}

/// What an executable file says without its debug information.
#[derive(Clone, Debug, Default)]
pub struct Elf {
    /// Loaded parts: offset in the file, bytes there, address.
    segments: Vec<(u64, u64, u64)>,
    /// Where data lies that the program may change.
    writable: Vec<(u64, u64)>,
    pub build_id: String,
    pub data: Vec<Named>,
    /// Whether it, or the file with its debug information, has a table of all symbols.
    pub has_symbols: bool,
    pub functions: Vec<Named>,
    /// The dynamic linker that a program asks for.
    pub linker: Option<PathBuf>,
    /// What `_start` hands to the C library as `main`: stripped programs have no symbol for it.
    main: Option<u64>,
    /// Whether it is for another kind of processor than this one.
    foreign: bool,
    /// The file with the debug information: itself, or one beside it.
    pub debug: Option<PathBuf>,
}

/// All bytes of a regular file, if it is not absurdly large.
pub fn read(path: &Path) -> Option<Vec<u8>> {
    let file = File::open(path).ok()?;
    let about = file.metadata().ok()?;
    if !about.is_file() || about.len() > MOST_BYTES {
        return None;
    }
    let mut bytes = Vec::with_capacity(about.len() as usize);
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Whether it begins as ELF files do.
pub fn is_elf(path: &Path) -> bool {
    let mut head = [0; 4];
    File::open(path).and_then(|mut f| f.read_exact(&mut head)).is_ok() && head == *b"\x7fELF"
}

impl Elf {
    /// What `path` says; `None` if it is not such a file.
    pub fn open(path: &Path) -> Option<Elf> {
        if !is_elf(path) {
            return None;
        }
        let bytes = read(path)?;
        let file = object::File::parse(&*bytes).ok()?;
        let mut elf = Elf {
            segments: file
                .segments()
                .map(|s| {
                    let (offset, bytes) = s.file_range();
                    (offset, bytes, s.address())
                })
                .collect(),
            writable: file
                .segments()
                .filter(|s| s.permissions().writable())
                .map(|s| (s.address(), s.address().saturating_add(s.size())))
                .collect(),
            build_id: file
                .build_id()
                .ok()
                .flatten()
                .unwrap_or(&[])
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect(),
            linker: file
                .section_by_name(".interp")
                .and_then(|section| section.data().ok())
                .and_then(|name| std::ffi::CStr::from_bytes_until_nul(name).ok())
                .map(|name| PathBuf::from(name.to_string_lossy().into_owned())),
            main: main_of_start(&file),
            foreign: file.architecture() != HERE,
            ..Elf::default()
        };
        elf.debug = if file.section_by_name(".debug_info").is_some() {
            Some(path.to_path_buf())
        } else {
            beside(
                path,
                &elf.build_id,
                file.gnu_debuglink().ok().flatten().map(|(name, _)| name),
            )
        };
        elf.add_symbols(&file);
        // A stripped file's table of symbols is where its debug information is.
        if let Some(debug) = elf.debug.clone().filter(|d| d != path)
            && let Some(bytes) = read(&debug)
            && let Ok(file) = object::File::parse(&*bytes)
        {
            elf.add_symbols(&file);
        }
        elf.settle();
        Some(elf)
    }

    fn add_symbols(&mut self, file: &object::File<'_>) {
        self.has_symbols |= file.symbol_table().is_some();
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            if symbol.is_undefined() || symbol.address() == 0 {
                continue;
            }
            let list = match symbol.kind() {
                SymbolKind::Data if symbol.size() > 0 => &mut self.data,
                SymbolKind::Text => &mut self.functions,
                _ => continue,
            };
            let Ok(name) = symbol.name() else { continue };
            let name = name.split('@').next().unwrap_or(name);
            if list.len() < MOST_DATA && !name.is_empty() {
                list.push(Named {
                    addr: symbol.address(),
                    bytes: symbol.size(),
                    name: name.to_string(),
                });
            }
        }
    }

    /// One name for each place: of several, the one that people would use.
    fn settle(&mut self) {
        for list in [&mut self.data, &mut self.functions] {
            let mut best: BTreeMap<u64, Named> = BTreeMap::new();
            for named in list.drain(..) {
                let rank = |n: &Named| {
                    let hidden = n.name.len() - n.name.trim_start_matches('_').len();
                    (std::cmp::Reverse(n.bytes), hidden, n.name.len(), n.name.clone())
                };
                match best.get(&named.addr) {
                    Some(known) if rank(known) <= rank(&named) => {}
                    _ => {
                        best.insert(named.addr, named);
                    }
                }
            }
            list.extend(best.into_values().map(|n| Named {
                name: demangled(&n.name),
                ..n
            }));
        }
    }

    /// What to subtract from an address to get the file's own, where the file is mapped at `start`
    /// from `offset` on.
    ///
    /// A page of the file that holds the end of one part and the beginning of the next is mapped
    /// twice; `likely` says which bias was found before.
    pub fn bias(&self, start: u64, offset: u64, likely: impl Fn(u64) -> bool) -> u64 {
        let page = |n: u64| n & !0xfff;
        let mut possible = self
            .segments
            .iter()
            .filter(|(at, bytes, _)| offset >= page(*at) && offset < at.saturating_add(*bytes))
            .map(|(at, _, address)| start.wrapping_sub(address.wrapping_add(offset).wrapping_sub(*at)));
        let first = possible.clone().next().unwrap_or_else(|| start.wrapping_sub(offset));
        possible.find(|bias| likely(*bias)).unwrap_or(first)
    }

    /// Where its data that the file does not hold (`.bss`) ends, in the file's own addresses.
    pub fn end(&self) -> u64 {
        self.writable.iter().map(|(_, to)| *to).max().unwrap_or(0)
    }

    /// Whether the file's own address `addr` can be written by the program.
    pub fn is_writable(&self, addr: u64) -> bool {
        self.writable.iter().any(|(from, to)| addr >= *from && addr < *to)
    }

    /// Whether this processor can run it.
    pub fn is_of_this_machine(&self) -> bool {
        !self.foreign
    }

    /// Where the functions of a name begin, in the file's own addresses. Where none has just this name, `f` is also `f(int)`,
    /// `space::f`, and what compilers make of it (`f.cold` is no entrance, `f.constprop.0` is). `main` is Go's `main.main`
    /// too.
    pub fn entrances(&self, name: &str) -> Vec<u64> {
        let of = |is: &dyn Fn(&str) -> bool| -> Vec<u64> {
            let all = self.functions.iter().filter(|f| is(&f.name));
            all.map(|f| f.addr).collect()
        };
        let exactly = of(&|full| full == name);
        if !exactly.is_empty() {
            return exactly;
        }
        if name == "main" {
            let go = of(&|full| full == "main.main");
            return if go.is_empty() {
                self.main.into_iter().collect()
            } else {
                go
            };
        }
        of(&|full| is_called(full, name))
    }

    /// The function that holds the file's own address `addr`.
    pub fn function(&self, addr: u64) -> Option<&str> {
        let after = self.functions.partition_point(|f| f.addr <= addr);
        let function = self.functions.get(after.checked_sub(1)?)?;
        let inside = if function.bytes > 0 {
            addr - function.addr < function.bytes
        } else {
            true
        };
        inside.then_some(function.name.as_str())
    }
}

/// Whether a function of this full name is meant by `short`.
fn is_called(full: &str, short: &str) -> bool {
    let name = full.split('(').next().unwrap_or(full);
    let mut parts = name.split('.');
    let name = match (parts.next(), parts.next()) {
        (Some(name), Some("constprop" | "isra" | "part" | "lto_priv")) => name,
        _ => name,
    };
    // As older compilers of Rust end names.
    let name = match name.rsplit_once("::h") {
        Some((before, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => before,
        _ => name,
    };
    name == short || name.strip_suffix(short).is_some_and(|before| before.ends_with("::"))
}

/// The first argument that the code at the entry, as the C library has it, passes on: `lea main(%rip),%rdi` or
/// `mov $main,%rdi`.
fn main_of_start(file: &object::File<'_>) -> Option<u64> {
    const LEA: [u8; 3] = [0x48, 0x8d, 0x3d];
    const MOV: [u8; 3] = [0x48, 0xc7, 0xc7];
    const MOST: u64 = 64;
    let text = |at: u64| {
        let holds = |s: &object::Section<'_, '_>| at >= s.address() && at - s.address() < s.size();
        file.sections().find(|s| s.kind() == SectionKind::Text && holds(s))
    };
    let entry = file.entry();
    let section = text(entry)?;
    let left = section.size() - (entry - section.address());
    let code = section.data_range(entry, left.min(MOST)).ok().flatten()?;
    let mut at = 0;
    while let Some(bytes) = code.get(at..at + 7) {
        let number = i32::from_le_bytes(bytes[3..].try_into().ok()?);
        if bytes.starts_with(&LEA) {
            let main = entry.wrapping_add(at as u64 + 7).wrapping_add_signed(number.into());
            return text(main).map(|_| main);
        }
        if bytes.starts_with(&MOV) {
            let main = u64::try_from(number).ok()?;
            return text(main).map(|_| main);
        }
        at += 1;
    }
    None
}

/// A name as the programmer wrote it.
pub fn demangled(name: &str) -> String {
    // Short names of C could be taken for types.
    if !["_Z", "__Z", "_R"].iter().any(|prefix| name.starts_with(prefix)) {
        return name.to_string();
    }
    addr2line::demangle_auto(name.into(), None).into_owned()
}

/// Where distributions put the debug information of stripped files.
fn beside(path: &Path, build_id: &str, link: Option<&[u8]>) -> Option<PathBuf> {
    let mut places = Vec::new();
    if let Some((first, rest)) = build_id.split_at_checked(2)
        && !rest.is_empty()
    {
        places.push(PathBuf::from(format!("/usr/lib/debug/.build-id/{first}/{rest}.debug")));
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    if let Some(link) = link
        .and_then(|l| std::str::from_utf8(l).ok())
        .filter(|l| !l.contains('/'))
    {
        places.push(folder.join(link));
        places.push(folder.join(".debug").join(link));
        let inside = folder.strip_prefix("/").unwrap_or(folder);
        places.push(Path::new("/usr/lib/debug").join(inside).join(link));
    }
    places.into_iter().find(|p| p != path && is_elf(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_offsets_of_a_shared_library() {
        // .text at file offset 0x1000 is at 0x1000, .data at 0x2e00 is at 0x3e00.
        let elf = Elf {
            segments: vec![(0, 0x2800, 0), (0x2e00, 0x300, 0x3e00)],
            ..Elf::default()
        };
        let base = 0x7f00_0000_0000;
        assert_eq!(elf.bias(base, 0, |_| false), base);
        assert_eq!(elf.bias(base + 0x1000, 0x1000, |_| false), base);
        // The page at 0x2000 is in both parts.
        assert_eq!(elf.bias(base + 0x3000, 0x2000, |bias| bias == base), base);
        assert_eq!(elf.bias(base + 0x2000, 0x2000, |bias| bias == base), base);
    }

    #[test]
    fn the_name_that_people_use_wins() {
        let named = |addr, bytes, name: &str| Named {
            addr,
            bytes,
            name: name.into(),
        };
        let mut elf = Elf {
            data: vec![
                named(16, 8, "_IO_stdout"),
                named(16, 8, "stdout"),
                named(32, 4, "_ZN3abc1xE"),
            ],
            functions: vec![named(100, 10, "f"), named(200, 0, "g")],
            ..Elf::default()
        };
        elf.settle();
        let names: Vec<_> = elf.data.iter().map(|n| n.name.as_str()).collect();
        assert_eq!(names, ["stdout", "abc::x"]);
        assert_eq!(elf.function(105), Some("f"));
        assert_eq!(elf.function(110), None);
        assert_eq!(elf.function(250), Some("g"));
        assert_eq!(elf.function(50), None);
    }

    #[test]
    fn functions_are_meant_by_short_names() {
        for full in [
            "f",
            "f(int)",
            "a::f",
            "a::b::f(char const*)",
            "f.constprop.0",
            "a::f::h0123456789abcdef",
        ] {
            assert!(is_called(full, "f"), "{full}");
        }
        for full in ["ff", "f.cold", "a::ff", "f::g", "a::ff(f)", "f2(int)"] {
            assert!(!is_called(full, "f"), "{full}");
        }
        assert!(is_called("a::f(int)", "a::f") && !is_called("b::f(int)", "a::f"));
    }

    /// Where distributions strip their programs, and this one is none of theirs.
    #[test]
    fn main_is_what_the_entry_hands_on() {
        let me = Elf::open(&std::env::current_exe().unwrap()).unwrap();
        assert_eq!(me.entrances("main"), [me.main.unwrap()]);
    }

    #[test]
    fn what_is_not_elf_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, b"\x7fELF and then nothing of sense").unwrap();
        assert!(Elf::open(&path).is_none());
        assert!(Elf::open(Path::new("/nonexistent")).is_none());
        assert!(Elf::open(Path::new("/dev/null")).is_none());
        let me = Elf::open(&std::env::current_exe().unwrap()).unwrap();
        assert!(!me.functions.is_empty() && me.debug.is_some());
    }

    #[test]
    fn a_damaged_executable_never_panics() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let good = read(Path::new("/bin/true")).unwrap();
        for step in 0..64 {
            let mut bad = good.clone();
            let length = bad.len();
            for k in 0..40 {
                bad[(step * 7919 + k * 104_729) % length] ^= (1 + step + k) as u8;
                bad[4 + (step * 31 + k * 17) % 400] ^= (step * k) as u8;
            }
            bad[..4].copy_from_slice(b"\x7fELF");
            bad.truncate(length - (step * 997) % (length / 2));
            std::fs::write(&path, &bad).unwrap();
            if let Some(elf) = Elf::open(&path) {
                elf.bias(0x1000, 0x1000, |_| true);
                elf.function(0x1234);
            }
            let _ = crate::dwarf::variables(&bad);
        }
    }
}
