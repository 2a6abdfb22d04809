//! Program text and read-only data of its files, from a copy on the process's node: one copy on each node for all
//! processes of a run.
//!
//! `domicile run` makes the store, one memfd. Each process that begins maps, in place of its own text, the copy of its
//! node: one that an earlier process made there, or one that it makes. Nothing is assumed about files: processes share
//! bytes, which are found by their hash and compared before they replace anything. So a file that was changed, and text
//! that was written to while the program was loaded, get their own copies.
//!
//! It is no more transparent than the other modes: the process's node is the one on which it begins, text of libraries
//! that it loads later stays in place, and a reader of `/proc/PID/maps` finds the store instead of the file's name.

use std::hash::Hasher;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytemuck::Pod;
use sys::headroom::Headroom;
use sys::in_place;
use sys::memory::{PAGE, Span};
use sys::nodes::NodeReading;
use sys::shared_pages::{PagesLock, SharedPages};
use sys::this_cpu::ThisCpu;
use sys::{Root, nodes};

use crate::Error;
use crate::state::Way;
use crate::told::{self, Taken};
use records::{Entry, Head, Process, WHY};

mod records;

/// Addresses in the store: only written pages take memory.
const STORE: usize = 64 << 30;
/// After the page of words of [`crate::told`] come a table of copies, a table of processes, and then the copies.
const HEAD: usize = PAGE;
const TABLE: usize = 2 << 20;
const COPIES: usize = (TABLE / 2 - HEAD) / size_of::<Entry>() - 1;
const PROCESSES: usize = TABLE / 2 / size_of::<Process>() - 1;
const PROCESSES_AT: usize = TABLE / 2;
/// How long a starting process waits for others that are making copies.
const PATIENCE: Duration = Duration::from_secs(5);
const MAGIC: u64 = 0x646d_7478_7431;

/// A part of the program that is never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Whole pages.
    pub span: Span,
    pub execute: bool,
}

/// The outcome for the text of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextOf {
    pub process: u32,
    /// The node on which it began.
    pub node: u32,
    /// Bytes that come from the node's copies.
    pub near: u64,
    /// Bytes that stay in place, and why the last of them do.
    pub left: u64,
    pub why: Option<String>,
}

/// The copies of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextState {
    /// Bytes of memory of the copies on each node; ascending by node.
    pub copies: Vec<(u32, u64)>,
    pub processes: Vec<TextOf>,
    /// Processes without further details: there was no room.
    pub more: u64,
}

/// The copies of a run.
#[derive(Debug)]
pub struct TextCopies {
    pages: SharedPages,
}

impl TextCopies {
    /// A store without copies, for processes of this user, for the lifetime of this object.
    pub fn create() -> Result<TextCopies, Error> {
        let pages = SharedPages::executable("domicile-text", STORE).map_err(failed("memfd_create"))?;
        let made = TextCopies { pages };
        made.write_head(&Head {
            magic: MAGIC,
            copies: 0,
            next: TABLE as u64,
            processes: 0,
        })?;
        Ok(made)
    }

    /// The path that processes pass to [`TextCopies::open`].
    pub fn path(&self) -> PathBuf {
        self.pages.path()
    }

    /// Errors: [`Error::Foreign`]; [`Error::Shared`] where it cannot be opened: another user's, another PID namespace's.
    pub fn open(path: &Path) -> Result<TextCopies, Error> {
        let pages = SharedPages::at(path).map_err(failed("opening the store of copies"))?;
        let found = TextCopies { pages };
        match found.head() {
            Ok(head) if head.magic == MAGIC => Ok(found),
            _ => Err(Error::Foreign("it is no store of copies of this version")),
        }
    }

    /// Maps, in place of these segments, the copies of the calling thread's node. A segment without a copy there gets
    /// one, if the node has memory.
    ///
    /// Errors: the store cannot be used; nothing, or a part, was put in place.
    ///
    /// # Safety
    /// The segments are mapped, private pages of files with these rights, and nobody writes to them, unmaps them or changes
    /// their rights meanwhile.
    pub unsafe fn take(&self, segments: &[Segment]) -> Result<TextOf, Error> {
        let node = here();
        let _lock = self.lock()?;
        let mut head = self.head()?;
        let mut copies = self.copies(&head)?;
        let mut became = TextOf {
            process: std::process::id(),
            node,
            ..TextOf::default()
        };
        for segment in segments {
            // SAFETY: the caller's promise.
            let done = unsafe { self.one(segment, node, &mut head, &mut copies) };
            match done {
                Ok(()) => became.near += segment.span.bytes as u64,
                Err(why) => {
                    became.left += segment.span.bytes as u64;
                    became.why = Some(why);
                }
            }
        }
        self.remember(&mut head, &became)?;
        self.write_head(&head)?;
        Ok(became)
    }

    /// # Safety
    /// As of [`TextCopies::take`].
    unsafe fn one(&self, segment: &Segment, node: u32, head: &mut Head, copies: &mut Vec<Entry>) -> Result<(), String> {
        let span = segment.span;
        // SAFETY: mapped, readable and not written to, as the caller promises.
        let bytes = unsafe { std::slice::from_raw_parts(span.start as *const u8, span.bytes) };
        let number = number(bytes);
        let same = |copy: &Entry| (copy.node, copy.number, copy.bytes) == (node.into(), number, span.bytes as u64);
        let at = match copies.iter().copied().find(same) {
            Some(copy) => copy.at as usize,
            None => {
                let copy = self.make(bytes, number, node, head)?;
                copies.push(copy);
                copy.at as usize
            }
        };
        // SAFETY: as above; a copy in the table is never written again.
        match unsafe { in_place::show(&self.pages, at, span, segment.execute) } {
            Ok(true) => Ok(()),
            Ok(false) => Err("a copy with the same number has other bytes".to_owned()),
            Err(error) => Err(format!("it cannot be mapped in its place: {error}")),
        }
    }

    /// Makes a copy on the node, and adds it to the table.
    fn make(&self, bytes: &[u8], number: u64, node: u32, head: &mut Head) -> Result<Entry, String> {
        let (at, place) = (head.next as usize, head.copies as usize);
        if place >= COPIES || at + bytes.len() > STORE {
            return Err("the store of copies is full".to_owned());
        }
        // The kernel ends a process that takes more than its control groups allow.
        if Headroom::read(&Root::default()).to_fill() < bytes.len() as u64 {
            return Err("this process may have no more memory (control group), or the machine has none".to_owned());
        }
        let free = |why: String| {
            let _ = self.pages.free(at, bytes.len());
            why
        };
        let there = self.pages.populate(at, bytes.len(), Some(node));
        let there = there.map_err(|error| free(format!("no memory could be put on node {node}: {error}")))?;
        if there.iter().any(|page| *page != Ok(node)) {
            return Err(free(format!("node {node} had no memory for it")));
        }
        let copy = Entry {
            node: node.into(),
            number,
            bytes: bytes.len() as u64,
            at: at as u64,
        };
        let written = self.pages.put(at, bytes).and_then(|()| {
            let entry = HEAD + size_of::<Head>() + place * size_of::<Entry>();
            self.pages.put(entry, bytemuck::bytes_of(&copy))
        });
        written.map_err(|error| free(format!("a copy cannot be written: {error}")))?;
        head.copies += 1;
        head.next += bytes.len() as u64;
        // If the process dies now, the next one finds its copy.
        self.write_head(head).map_err(|error| error.to_string())?;
        Ok(copy)
    }

    /// The present state.
    pub fn state(&self) -> Result<TextState, Error> {
        let head = self.head()?;
        let mut state = TextState::default();
        for copy in self.copies(&head)? {
            let node = copy.node as u32;
            match state.copies.binary_search_by_key(&node, |(node, _)| *node) {
                Ok(at) => state.copies[at].1 += copy.bytes,
                Err(at) => state.copies.insert(at, (node, copy.bytes)),
            }
        }
        let known = (head.processes as usize).min(PROCESSES);
        state.more = head.processes - known as u64;
        for process in self.records::<Process>(PROCESSES_AT, known)? {
            let end = process.why.iter().position(|&byte| byte == 0).unwrap_or(WHY);
            let why = String::from_utf8_lossy(&process.why[..end]).into_owned();
            state.processes.push(TextOf {
                process: process.number as u32,
                node: process.node as u32,
                near: process.near,
                left: process.left,
                why: Some(why).filter(|why| !why.is_empty()),
            });
        }
        Ok(state)
    }

    /// The memory of the handles or mappings of all processes, as far as they know of the store ([`crate::TOLD`]).
    pub fn taken(&self, way: Way) -> Result<Taken, Error> {
        told::taken(&self.pages, way).map_err(failed("mmap"))
    }

    /// Records that all segments of this process stay in place.
    pub fn leave(&self, segments: &[Segment], why: &str) -> Result<(), Error> {
        let _lock = self.lock()?;
        let mut head = self.head()?;
        let became = TextOf {
            process: std::process::id(),
            node: here(),
            near: 0,
            left: segments.iter().map(|segment| segment.span.bytes as u64).sum(),
            why: Some(why.to_owned()),
        };
        self.remember(&mut head, &became)?;
        self.write_head(&head)
    }

    fn lock(&self) -> Result<PagesLock<'_>, Error> {
        let lock = self.pages.lock(PATIENCE);
        lock.map_err(failed("waiting for other processes that make copies"))
    }

    fn remember(&self, head: &mut Head, became: &TextOf) -> Result<(), Error> {
        let mut process = Process {
            number: became.process.into(),
            node: became.node.into(),
            near: became.near,
            left: became.left,
            why: [0; WHY],
        };
        let why = became.why.as_deref().unwrap_or_default();
        let end = (0..=why.len().min(WHY))
            .rev()
            .find(|&end| why.is_char_boundary(end))
            .unwrap_or(0);
        process.why[..end].copy_from_slice(&why.as_bytes()[..end]);
        let place = head.processes as usize;
        head.processes += 1;
        if place < PROCESSES {
            let at = PROCESSES_AT + place * size_of::<Process>();
            let written = self.pages.put(at, bytemuck::bytes_of(&process));
            written.map_err(failed("writing the table of copies"))?;
        }
        Ok(())
    }

    fn head(&self) -> Result<Head, Error> {
        Ok(self.records::<Head>(HEAD, 1)?[0])
    }

    fn write_head(&self, head: &Head) -> Result<(), Error> {
        let written = self.pages.put(HEAD, bytemuck::bytes_of(head));
        written.map_err(failed("writing the table of copies"))
    }

    fn copies(&self, head: &Head) -> Result<Vec<Entry>, Error> {
        let copies = self.records::<Entry>(HEAD + size_of::<Head>(), (head.copies as usize).min(COPIES))?;
        let fits = |copy: &Entry| copy.at.checked_add(copy.bytes).is_some_and(|end| end <= STORE as u64);
        Ok(copies.into_iter().filter(fits).collect())
    }

    fn records<T: Pod>(&self, at: usize, count: usize) -> Result<Vec<T>, Error> {
        let mut records = vec![T::zeroed(); count];
        let read = self.pages.read(at, bytemuck::cast_slice_mut(&mut records));
        read.map_err(failed("reading the table of copies"))?;
        Ok(records)
    }
}

/// The node that the calling thread is on.
fn here() -> u32 {
    let found = nodes::nodes(&Root::default()).unwrap_or_default();
    node_of(&found, ThisCpu::find().number())
}

/// The node of a cpu; the first if the kernel does not report it.
fn node_of(found: &[NodeReading], cpu: usize) -> u32 {
    let has = |node: &&NodeReading| node.cpus.iter().any(|&one| one as usize == cpu);
    found.iter().find(has).or(found.first()).map_or(0, |node| node.number)
}

fn number(bytes: &[u8]) -> u64 {
    #[expect(
        deprecated,
        reason = "its numbers are the same in every process, which is what is wanted"
    )]
    let mut hasher = std::hash::SipHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

fn failed(doing: &'static str) -> impl Fn(io::Error) -> Error {
    move |source| Error::Shared { doing, source }
}

const _: () =
    assert!(TABLE.is_multiple_of(PAGE) && HEAD + size_of::<Head>() + COPIES * size_of::<Entry>() <= PROCESSES_AT);

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    /// Pages of a file, each filled with a byte, mapped to be read.
    fn mapped(bytes: &[u8]) -> Segment {
        let file = tempfile::tempfile().unwrap();
        let contents: Vec<u8> = bytes.iter().flat_map(|&byte| [byte; PAGE]).collect();
        std::os::unix::fs::FileExt::write_all_at(&file, &contents, 0).unwrap();
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                contents.len(),
                libc::PROT_READ,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            )
        };
        assert_ne!(start, libc::MAP_FAILED);
        Segment {
            span: Span::new(start as usize, contents.len()),
            execute: false,
        }
    }

    #[test]
    fn the_same_bytes_are_copied_once_and_others_by_themselves() {
        let store = TextCopies::create().unwrap();
        let (one, same, other) = (mapped(&[1, 2]), mapped(&[1, 2]), mapped(&[1, 3]));
        // SAFETY: mappings that were made for this.
        let first = unsafe { store.take(&[one]) }.unwrap();
        if let Some(why) = first.why {
            return harness::not_here(why);
        }
        // Another process opens it by its path.
        let again = TextCopies::open(&store.path()).unwrap();
        // SAFETY: as above.
        let second = unsafe { again.take(&[same, other]) }.unwrap();
        let bytes = 2 * PAGE as u64;
        assert_eq!((first.near, second.near, second.left), (bytes, 2 * bytes, 0));
        let state = store.state().unwrap();
        assert_eq!(state.copies, [(first.node, 2 * bytes)]);
        assert_eq!(state.processes, [first, second]);
        for (segment, last) in [(one, 2), (same, 2), (other, 3)] {
            // SAFETY: mapped, and nobody writes.
            assert_eq!(unsafe { *((segment.span.end() - 1) as *const u8) }, last);
        }
    }

    #[test]
    fn what_is_no_store_is_refused() {
        let other = SharedPages::create("domicile-test", STORE).unwrap();
        assert!(matches!(TextCopies::open(&other.path()), Err(Error::Foreign(_))));
        let none = TextCopies::open(Path::new("/proc/self/fd/9999"));
        assert!(matches!(none, Err(Error::Shared { .. })));
    }
}
