//! The mappings of a process: `/proc/PID/maps`, and the flags and huge pages that `/proc/PID/smaps`
//! reports. `/proc/PID/maps`, and the flags and huge pages that `/proc/PID/smaps` reports.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use crate::memory::Span;

/// The backing of a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Memory without a file.
    Anonymous,
    /// `[heap]`: anonymous too.
    Heap,
    /// `[stack]`, of the first thread: anonymous too.
    Stack,
    /// Pages of a file, or of shared memory.
    File(String),
    /// A mapping of the kernel's: `[vdso]`, `[vvar]`, `[vsyscall]` ... `[vdso]`, `[vvar]`,
    /// `[vsyscall]` ...
    Special(String),
}

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub span: Span,
    pub read: bool,
    pub write: bool,
    pub execute: bool,
    pub shared: bool,
    pub kind: Kind,
}

impl Mapping {
    /// A line of maps, or the first of an entry of smaps:
    /// `7f..-7f.. rw-p 00000000 00:00 0    /path or [name]`.
    fn parse(line: &str) -> Option<Mapping> {
        let mut rest = line;
        let mut word = || {
            rest = rest.trim_start_matches(' ');
            let (word, more) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
            rest = more;
            word
        };
        let (start, end) = word().split_once('-')?;
        let address = |text: &str| usize::from_str_radix(text, 16).ok();
        let (start, end) = (address(start)?, address(end)?);
        let &[read, write, execute, shared] = word().as_bytes() else {
            return None;
        };
        let _offset = word();
        let _device = word();
        let inode: u64 = word().parse().ok()?;
        let name = rest.trim_start_matches(' ');
        let kind = match name {
            "[heap]" => Kind::Heap,
            "[stack]" => Kind::Stack,
            "" if inode == 0 => Kind::Anonymous,
            // Names given by prctl(PR_SET_VMA_ANON_NAME).
            _ if name.starts_with("[anon:") => Kind::Anonymous,
            _ if inode != 0 || name.starts_with('/') || name.starts_with("[anon_shmem:") => {
                Kind::File(name.to_string())
            }
            _ => Kind::Special(name.to_string()),
        };
        Some(Mapping {
            span: Span::new(start, end.checked_sub(start)?),
            read: read == b'r',
            write: write == b'w',
            execute: execute == b'x',
            shared: shared == b's',
            kind,
        })
    }

    /// Returns whether its pages belong to this process alone and to no file.
    pub fn private_anonymous(&self) -> bool {
        !self.shared && matches!(self.kind, Kind::Anonymous | Kind::Heap | Kind::Stack)
    }
}

/// The mappings of this process that have addresses in `span`, ascending.
pub fn within(span: Span) -> io::Result<Vec<Mapping>> {
    let mut found = Vec::new();
    for line in lines(File::open("/proc/self/maps")?) {
        let mapping = parsed(&line?)?;
        if mapping.span.start >= span.end() {
            break;
        }
        if mapping.span.meets(span) {
            found.push(mapping);
        }
    }
    Ok(found)
}

/// All mappings of a process, ascending; its own for `None`.
pub fn all(process: Option<u32>) -> io::Result<Vec<Mapping>> {
    let file = match process {
        Some(process) => File::open(format!("/proc/{process}/maps"))?,
        None => File::open("/proc/self/maps")?,
    };
    lines(file).map(|line| parsed(&line?)).collect()
}

/// Returns whether a process has a mapping of a file at exactly these addresses; false if there is no such process.
///
/// It always sees a mapping that is exchanged for another meanwhile (mremap). `/proc/PID/maps` can miss such a mapping
/// since Linux 6.17, which reads it without the lock of the address space.
///
/// Errors: PermissionDenied where the process may not be looked into.
pub fn is_mapped(process: u32, span: Span) -> io::Result<bool> {
    let entry = format!("/proc/{process}/map_files/{:x}-{:x}", span.start, span.end());
    match std::fs::symlink_metadata(entry) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        // It has ended, and nobody has waited for it yet.
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The number of mappings of this process.
pub fn count() -> io::Result<usize> {
    let mut count = 0;
    for line in lines(File::open("/proc/self/maps")?) {
        line?;
        count += 1;
    }
    Ok(count)
}

/// The most mappings that a process may have (`vm.max_map_count`); the kernel's default of 65530 if
/// it cannot be read.
pub fn limit() -> usize {
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
    text.trim().parse().unwrap_or(65530)
}

/// A mapping as `smaps` reports it. The kernel walks the page tables of all memory that comes
/// before: milliseconds for gigabytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Details {
    pub mapping: Mapping,
    /// The kernel's names of two letters: `lo` locked, `hg` and `nh` huge pages wished or not,
    /// `um` and `uw` registered with a userfaultfd, `gd` a stack that grows down ...
    pub flags: Vec<String>,
    /// Bytes in transparent huge pages.
    pub huge_bytes: u64,
}

impl Details {
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|has| has == flag)
    }
}

/// The details of the mappings of this process that have addresses in `span`, ascending.
pub fn details(span: Span) -> io::Result<Vec<Details>> {
    let mut found: Vec<Details> = Vec::new();
    let mut wanted = false;
    for line in lines(File::open("/proc/self/smaps")?) {
        let line = line?;
        // A field's name begins with a capital letter, a mapping with lower-case hexadecimals.
        if !line.starts_with(|c: char| c.is_ascii_uppercase()) {
            let mapping = parsed(&line)?;
            if mapping.span.start >= span.end() {
                break;
            }
            wanted = mapping.span.meets(span);
            if wanted {
                found.push(Details {
                    mapping,
                    flags: Vec::new(),
                    huge_bytes: 0,
                });
            }
            continue;
        }
        let Some(last) = found.last_mut().filter(|_| wanted) else {
            continue;
        };
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            last.flags = flags.split_whitespace().map(ToString::to_string).collect();
        } else if let Some(rest) = line.strip_prefix("AnonHugePages:") {
            let kib: Option<u64> = rest.split_whitespace().next().and_then(|kib| kib.parse().ok());
            last.huge_bytes = kib.unwrap_or(0) * 1024;
        }
    }
    Ok(found)
}

/// The mappings of this process that are empty in its children (`MADV_WIPEONFORK`), ascending. Allocates nothing, so
/// that it may be called while pages of the heap are away.
pub fn wiped_on_fork(mut found: impl FnMut(Span)) -> io::Result<()> {
    let mut file = File::open("/proc/self/smaps")?;
    let mut room = [0u8; 4096];
    let mut held = 0;
    let mut last = None;
    loop {
        let got = file.read(&mut room[held..])?;
        let filled = held + got;
        let mut rest = &room[..filled];
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let line = &rest[..end];
            rest = &rest[end + 1..];
            if let Some(flags) = line.strip_prefix(b"VmFlags:") {
                if let Some(span) = last.filter(|_| flags.split(|&byte| byte == b' ').any(|flag| flag == b"wf")) {
                    found(span);
                }
            } else if let Some(span) = addresses(line) {
                last = Some(span);
            }
        }
        held = rest.len();
        if got == 0 {
            return Ok(());
        }
        // The rest of a line longer than that is a path, of no interest.
        held = if held == room.len() { 0 } else { held };
        room.copy_within(filled - held..filled, 0);
    }
}

/// `start-end` in lower-case hexadecimals, with which a mapping's line begins.
fn addresses(line: &[u8]) -> Option<Span> {
    let number = |digits: &[u8]| {
        let digit = |value: usize, &digit: &u8| {
            let digit = (digit as char).to_digit(16).filter(|_| !digit.is_ascii_uppercase())?;
            value.checked_mul(16)?.checked_add(digit as usize)
        };
        digits.iter().try_fold(0, digit)
    };
    let word = line.split(|&byte| byte == b' ').next()?;
    let dash = word.iter().position(|&byte| byte == b'-').filter(|&dash| dash > 0)?;
    let (start, end) = (number(&word[..dash])?, number(&word[dash + 1..])?);
    Some(Span::new(start, end.checked_sub(start)?))
}

/// Lines as text; paths that are not UTF-8 lose the invalid bytes.
fn lines(file: File) -> impl Iterator<Item = io::Result<String>> {
    let mut reader = BufReader::with_capacity(1 << 16, file);
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        match reader.read_until(b'\n', &mut line) {
            Ok(0) => None,
            Ok(_) => Some(Ok(String::from_utf8_lossy(line.trim_ascii_end()).into_owned())),
            Err(error) => Some(Err(error)),
        }
    })
}

fn parsed(line: &str) -> io::Result<Mapping> {
    Mapping::parse(line).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("not a mapping: {line:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Area, PAGE, Size, lock};

    #[test]
    fn lines_of_every_kind() {
        let kind = |line: &str| Mapping::parse(line).unwrap().kind;
        let file = Mapping::parse("55d0c000-55d0d000 r-xp 00001000 fe:00 1234     /usr/bin/my prog (deleted)").unwrap();
        assert_eq!(file.kind, Kind::File("/usr/bin/my prog (deleted)".into()));
        assert_eq!(file.span, Span::new(0x55d0_c000, 0x1000));
        assert!(file.read && !file.write && file.execute && !file.shared && !file.private_anonymous());
        assert_eq!(kind("7f00-7f01 rw-p 00000000 00:00 0 "), Kind::Anonymous);
        assert_eq!(kind("7f00-7f01 rw-p 00000000 00:00 0    [anon:arena]"), Kind::Anonymous);
        assert_eq!(kind("7f00-7f01 rw-p 00000000 00:00 0    [heap]"), Kind::Heap);
        assert_eq!(
            kind("7f00-7f01 r--p 00000000 00:00 0    [vvar]"),
            Kind::Special("[vvar]".into())
        );
        let memory = Mapping::parse("7f00-7f01 rw-s 00000000 00:01 77   /memfd:x (deleted)").unwrap();
        assert!(memory.shared && matches!(memory.kind, Kind::File(_)));
        for bad in [
            "",
            "7f00 rw-p 0 0:0 0",
            "zz-7f rw-p 0 0:0 0",
            "7f-7e rw-p 0 0:0 0",
            "7e-7f rw 0 0:0 0",
        ] {
            assert!(Mapping::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn what_is_wiped_on_fork_is_found() {
        // Areas are.
        let area = Area::map(3 * PAGE, Size::Small).unwrap();
        let mut found = Vec::new();
        wiped_on_fork(|span| found.push(span)).unwrap();
        assert!(
            found
                .iter()
                .any(|span| span.start <= area.start() && area.span().end() <= span.end())
        );
        let wiped: Vec<Span> = details(Span::new(0, usize::MAX))
            .unwrap()
            .iter()
            .filter(|details| details.has("wf"))
            .map(|details| details.mapping.span)
            .collect();
        // Other tests map and unmap meanwhile.
        assert!(found.iter().filter(|span| wiped.contains(span)).count() * 2 > found.len());
        assert_eq!(
            addresses(b"7f00-7f01 rw-p 00000000 00:00 0 "),
            Some(Span::new(0x7f00, 1))
        );
        for line in [
            &b"Rss:  4 kB"[..],
            b"",
            b"-",
            b"7F-80 r",
            b"80-7f r",
            b"AnonHugePages: 0 kB",
        ] {
            assert_eq!(addresses(line), None);
        }
    }

    #[test]
    fn an_area_is_found_with_its_flags() {
        let area = Area::map(3 * PAGE, Size::Small).unwrap();
        lock(area.part(1, 1)).unwrap();
        let found = details(area.span()).unwrap();
        let locked: Vec<bool> = found.iter().map(|details| details.has("lo")).collect();
        assert!(locked.contains(&true), "{found:?}");
        let one = found.iter().find(|details| details.has("lo")).unwrap();
        assert_eq!(one.mapping.span, area.part(1, 1));
        assert!(one.mapping.private_anonymous() && one.mapping.write && one.has("nh"));
        assert_eq!(within(area.part(1, 1)).unwrap(), std::slice::from_ref(&one.mapping));
        assert!(all(None).unwrap().contains(&one.mapping));
        assert!(count().unwrap() > 3 && limit() > 1000);
    }
}
