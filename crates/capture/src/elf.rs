//! One executable file: its parts, its names, and the place of its debug information.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use object::{Architecture, Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};

use crate::entry::{self, Entry};

/// Larger files are ignored.
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

/// A loaded part of a file.
#[derive(Clone, Copy, Debug)]
struct Part {
    offset: u64,
    /// In the file.
    bytes: u64,
    address: u64,
    executable: bool,
}

/// The content of an executable file without its debug information.
#[derive(Clone, Debug, Default)]
pub struct Elf {
    segments: Vec<Part>,
    /// Data that the program may change.
    writable: Vec<(u64, u64)>,
    pub build_id: String,
    pub data: Vec<Named>,
    /// True if it, or the file with its debug information, has a table of all symbols.
    pub has_symbols: bool,
    pub functions: Vec<Named>,
    /// Other names of functions, in the file's own addresses.
    aliases: Vec<(u64, String)>,
    /// The dynamic linker that a program asks for.
    pub linker: Option<PathBuf>,
    /// The place where it begins, as far as the file tells it without symbols.
    pub entry: Entry,
    /// True if it is for a different kind of processor.
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

/// True if it begins with an ELF header.
pub fn is_elf(path: &Path) -> bool {
    let mut head = [0; 4];
    File::open(path).and_then(|mut f| f.read_exact(&mut head)).is_ok() && head == *b"\x7fELF"
}

impl Elf {
    /// Reads `path`; `None` if it is not such a file.
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
                    Part {
                        offset,
                        bytes,
                        address: s.address(),
                        executable: s.permissions().executable(),
                    }
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
            entry: Entry::of(&file),
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
        // A stripped file's symbol table is in its debug file.
        if let Some(debug) = elf.debug.clone().filter(|d| d != path)
            && let Some(bytes) = read(&debug)
            && let Ok(file) = object::File::parse(&*bytes)
        {
            elf.add_symbols(&file);
        }
        if !elf.has_symbols {
            let named = |(addr, name)| Named { addr, bytes: 0, name };
            elf.functions
                .extend(entry::functions_of_go(&file).into_iter().map(named));
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

    /// Keeps one name for each place: the most familiar of several.
    fn settle(&mut self) {
        settle(&mut self.data);
        let others = settle(&mut self.functions);
        self.aliases = others.into_iter().map(|n| (n.addr, n.name)).collect();
    }

    /// The difference between an address and the file's own address, if the file is mapped at `start`
    /// from `offset` on.
    ///
    /// A page of the file that holds the end of one part and the beginning of the next is mapped twice; `likely`
    /// accepts a bias that was found before.
    pub fn bias(&self, start: u64, offset: u64, likely: impl Fn(u64) -> bool) -> u64 {
        let mut possible = self.biases(start, offset, |_| true);
        let first = possible.next().unwrap_or_else(|| start.wrapping_sub(offset));
        let mut possible = self.biases(start, offset, |_| true);
        possible.find(|bias| likely(*bias)).unwrap_or(first)
    }

    /// The same for an executable mapping, which belongs to the part with code. LLVM's linker begins each part in the
    /// page in which the previous one ends.
    pub fn bias_of_code(&self, start: u64, offset: u64) -> u64 {
        let code = self.biases(start, offset, |part| part.executable).next();
        code.unwrap_or_else(|| self.bias(start, offset, |_| false))
    }

    fn biases(&self, start: u64, offset: u64, which: impl Fn(&Part) -> bool) -> impl Iterator<Item = u64> {
        let page = |n: u64| n & !0xfff;
        let of = self.segments.iter().filter(move |part| {
            which(part) && offset >= page(part.offset) && offset < part.offset.saturating_add(part.bytes)
        });
        of.map(move |part| start.wrapping_sub(part.address.wrapping_add(offset).wrapping_sub(part.offset)))
    }

    /// The end of its data, including data that is not in the file (`.bss`), in the file's own addresses.
    pub fn end(&self) -> u64 {
        self.writable.iter().map(|(_, to)| *to).max().unwrap_or(0)
    }

    /// True if the file's own address `addr` can be written by the program.
    pub fn is_writable(&self, addr: u64) -> bool {
        self.writable.iter().any(|(from, to)| addr >= *from && addr < *to)
    }

    /// True if this processor can run it.
    pub fn is_of_this_machine(&self) -> bool {
        !self.foreign
    }

    /// The addresses at which the functions of a name begin, in the file's own addresses. If none has exactly this
    /// name, `f` also matches `f(int)`, `space::f`, and the names that compilers derive from it (`f.cold` is not an
    /// entrance, `f.constprop.0` is). `main` is the programmer's function of that name in each language; without
    /// symbols it is the one that the entry code passes on.
    pub fn entrances(&self, name: &str) -> Vec<u64> {
        // Go's comes first: if C is in such a program, `main` starts the run-time. In Fortran programs the C one is
        // also first.
        const MAINS: [&str; 4] = ["main.main", "main", "MAIN__", "_QQmain"];
        if name == "main" {
            let named = MAINS.iter().map(|main| self.called(|full| full == *main));
            let found = named.into_iter().find(|found| !found.is_empty());
            return found.unwrap_or_else(|| self.entry.main.into_iter().collect());
        }
        let exactly = self.called(|full| full == name);
        if !exactly.is_empty() {
            return exactly;
        }
        self.called(|full| is_called(full, name))
    }

    /// The addresses of functions for one of whose names `is` holds.
    fn called(&self, is: impl Fn(&str) -> bool) -> Vec<u64> {
        let all = self.functions.iter().map(|f| (f.addr, &f.name));
        let all = all.chain(self.aliases.iter().map(|(addr, name)| (*addr, name)));
        let mut found: Vec<u64> = all.filter(|(_, name)| is(name)).map(|(addr, _)| addr).collect();
        found.sort_unstable();
        found.dedup();
        found
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

/// Leaves one name for each place, the most familiar one, as the programmer wrote it. Returns the other names.
fn settle(list: &mut Vec<Named>) -> Vec<Named> {
    let rank = |n: &Named| {
        let hidden = n.name.len() - n.name.trim_start_matches('_').len();
        (std::cmp::Reverse(n.bytes), hidden, n.name.len(), n.name.clone())
    };
    let mut best: BTreeMap<u64, Named> = BTreeMap::new();
    let mut others = Vec::new();
    for named in list.drain(..) {
        match best.get_mut(&named.addr) {
            None => {
                best.insert(named.addr, named);
            }
            Some(known) if rank(known) <= rank(&named) => others.extend((known.name != named.name).then_some(named)),
            Some(known) => others.push(std::mem::replace(known, named)),
        }
    }
    let plainly = |n: Named| Named {
        name: demangled(&n.name),
        ..n
    };
    list.extend(best.into_values().map(plainly));
    others.into_iter().map(plainly).collect()
}

/// True if `short` means a function of this full name.
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

/// A name as the programmer wrote it.
pub fn demangled(name: &str) -> String {
    // Short names of C could be taken for types.
    if !["_Z", "__Z", "_R"].iter().any(|prefix| name.starts_with(prefix)) {
        return name.to_string();
    }
    addr2line::demangle_auto(name.into(), None).into_owned()
}

/// The files in which distributions store the debug information of stripped files.
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

    fn part(offset: u64, bytes: u64, address: u64, executable: bool) -> Part {
        Part {
            offset,
            bytes,
            address,
            executable,
        }
    }

    /// LLVM's linker leaves no gap in the file: the page at 0x1000 ends what is read and begins the code, mapped a page higher.
    #[test]
    fn code_that_shares_a_page_of_the_file_with_data_has_its_own_bias() {
        let elf = Elf {
            segments: vec![part(0, 0x1e9c, 0, false), part(0x1ec0, 0x800, 0x2ec0, true)],
            ..Elf::default()
        };
        let base = 0x40_0000;
        assert_eq!(elf.bias_of_code(base + 0x2000, 0x1000), base);
        // A mapping for reading is the other part.
        assert_eq!(elf.bias(base + 0x1000, 0x1000, |_| false), base);
    }

    #[test]
    fn addresses_and_offsets_of_a_shared_library() {
        // .text at file offset 0x1000 is at 0x1000, .data at 0x2e00 is at 0x3e00.
        let elf = Elf {
            segments: vec![part(0, 0x2800, 0, true), part(0x2e00, 0x300, 0x3e00, false)],
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

    /// As if a distribution had stripped this program.
    #[test]
    fn main_is_what_the_entry_hands_on() {
        let me = Elf::open(&std::env::current_exe().unwrap()).unwrap();
        assert_eq!(me.entrances("main"), [me.entry.main.unwrap()]);
        assert!(me.entry.is_program && me.entry.start.is_some());
        let stripped = Elf {
            functions: Vec::new(),
            aliases: Vec::new(),
            ..me.clone()
        };
        assert_eq!(stripped.entrances("main"), me.entrances("main"));
    }

    #[test]
    fn main_is_found_under_the_names_of_languages_and_beside_others() {
        let named = |addr, name: &str| Named {
            addr,
            bytes: 10,
            name: name.into(),
        };
        let of = |functions: &[(u64, &str)]| {
            let mut elf = Elf {
                functions: functions.iter().map(|(addr, name)| named(*addr, name)).collect(),
                ..Elf::default()
            };
            elf.settle();
            elf.entrances("main")
        };
        assert_eq!(of(&[(16, "main"), (32, "main.main")]), [32]);
        assert_eq!(of(&[(16, "MAIN__"), (32, "work")]), [16]);
        assert_eq!(of(&[(16, "MAIN__"), (32, "main")]), [32]);
        // Two functions of the same code may be one.
        assert_eq!(of(&[(16, "f"), (16, "main")]), [16]);
        assert!(of(&[(16, "domain"), (32, "a::main")]).is_empty());
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
