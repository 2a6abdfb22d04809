//! The program that the process runs at the moment: our pages in it, its mappings, and its page map.

use std::collections::HashSet;
use std::io;

use sys::Root;
use sys::frames::{Entry, Pagemap};
use sys::mappings::{self, Mapping};
use sys::memory::{PAGE, Span};
use sys::traced::{Borrowed, Closing, Traced};

use super::closed::Closed;
use super::layout::{Layout, around};

pub struct Image {
    pub borrowed: Borrowed,
    pub layout: Layout,
    /// The program may have changed its mappings since.
    pub stale: bool,
    pagemap: Pagemap,
    ours: Span,
    /// Mappings, by their first address, of which parts may get keys of their own ([`may_differ`]).
    rooted: HashSet<usize>,
    /// Into how many parts pages that are shut divide mappings, at most, and how many mappings there may be: to open a page takes
    /// mappings too, and the program needs some.
    parts: usize,
    most: usize,
}

const TOO_MANY: &str = "pages that are closed would divide its memory into more mappings than half of vm.max_map_count";

impl Image {
    /// Pre: the process is stopped at the first instruction of a program.
    pub fn begin(traced: &Traced, closing: Closing) -> io::Result<Image> {
        let borrowed = Borrowed::begin(traced, traced.process(), closing)?;
        Ok(Image {
            ours: borrowed.span(),
            borrowed,
            layout: Layout::default(),
            stale: true,
            pagemap: Pagemap::of(traced.process())?,
            rooted: HashSet::new(),
            parts: 0,
            most: most_mappings() / 2,
        })
    }

    /// Reads the mappings, of which nothing is spared until the next look.
    pub fn look_at_all(&mut self, traced: &Traced) -> io::Result<()> {
        self.layout = Layout::of(mappings::all(Some(traced.process()))?, &[]);
        self.stale = true;
        Ok(())
    }

    /// Reads the mappings, if they may have changed. Returns whether it did.
    ///
    /// Pre: no page is shut by its protection, which would be taken for the program's.
    pub fn look(&mut self, traced: &Traced) -> io::Result<bool> {
        if !std::mem::take(&mut self.stale) {
            return Ok(false);
        }
        let registers = traced.registers(traced.process())?;
        self.rooted.clear();
        let mut spared = vec![self.ours, around(registers.local_storage())];
        spared.extend(traced.restartable(traced.process())?);
        self.layout = Layout::of(mappings::all(Some(traced.process()))?, &spared);
        Ok(true)
    }

    /// The numbers of the data pages that have a frame.
    pub fn present(&self, traced: &Traced) -> io::Result<Vec<u64>> {
        let stack = traced.registers(traced.process())?.stack();
        let mut present = Vec::new();
        for span in self.layout.data(stack) {
            let entries = self.pagemap.entries(span)?;
            let numbers = (span.start / PAGE) as u64..;
            let there = numbers.zip(entries).filter(|(_, entry)| entry.present());
            present.extend(there.map(|(number, _)| number));
        }
        Ok(present)
    }

    /// Gives pages the keys, or the protection, that they should have.
    ///
    /// Errors: parts that are closed by their protection would be more mappings than Linux allows a process.
    pub fn change(&mut self, traced: &Traced, task: u32, closed: &mut Closed) -> io::Result<()> {
        let Image {
            borrowed,
            pagemap,
            rooted,
            ..
        } = self;
        let may_differ = |mapping: &Mapping, address| may_differ(mapping, address, rooted, pagemap, borrowed);
        let ranges = closed.changes(&self.layout, may_differ, || borrowed.take_key(traced, task))?;
        if ranges.is_empty() {
            return Ok(());
        }
        let changed = self.borrowed.change(traced, task, &ranges);
        if closed.means() == Closing::Keys {
            // Pages that were unmapped meanwhile have no key.
            return changed.map(|_| ());
        }
        if !matches!(changed, Ok(0)) {
            for range in &ranges {
                closed.doubt_all(range.span);
            }
            changed?;
            return Err(io::Error::other("the protection of a page could not be changed"));
        }
        // Each range that changes divides a mapping twice at most; they are counted only where that says too little.
        self.parts += 2 * ranges.len();
        if self.parts + self.layout.count() > self.most {
            self.parts = closed.parts();
        }
        // Opening pages takes no more mappings than the program itself has made.
        match closed.has_shut() && self.parts + self.layout.count() > self.most {
            true => Err(io::Error::other(TOO_MANY)),
            false => Ok(()),
        }
    }
}

/// The mappings that Linux allows a process; its own default where that is not known.
fn most_mappings() -> usize {
    let text = Root::default().text("proc/sys/vm/max_map_count");
    let number = text.ok().and_then(|text| text.trim().parse().ok());
    number.unwrap_or(65_530)
}

/// Returns whether a page may get another key than the rest of its mapping, from which the kernel then splits it.
///
/// Parts that have the same key again merge again only if they had a frame of their own when they were split: Linux
/// notes the sharers of a mapping at its first such frame (`anon_vma`), and merges no parts that differ in this. The
/// program would see it: its `mremap` of both parts fails. So a mapping without a frame gets one before it is split.
fn may_differ(
    mapping: &Mapping,
    address: usize,
    rooted: &mut HashSet<usize>,
    pagemap: &Pagemap,
    borrowed: &Borrowed,
) -> bool {
    if mapping.shared {
        return false;
    }
    if rooted.contains(&mapping.span.start) {
        return true;
    }
    let entries = pagemap.entries(Span::new(address, PAGE)).unwrap_or_default();
    let rooted_now = entries.first().copied().is_some_and(is_own) || borrowed.give_frame(address).is_ok();
    if rooted_now {
        rooted.insert(mapping.span.start);
    }
    rooted_now
}

/// Returns whether a page has a frame that is surely the mapping's own: neither a file's nor the shared frame of
/// zeros.
fn is_own(entry: Entry) -> bool {
    !entry.of_file() && (entry.swapped() || entry.present() && entry.exclusive())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_mapping_without_a_frame_of_its_own_gets_one_before_it_is_divided() {
        let traced = Traced::begin(Command::new("/bin/true")).unwrap();
        let mut image = Image::begin(&traced, Closing::Protection).unwrap();
        image.look(&traced).unwrap();
        let own = |address| is_own(image.pagemap.entries(Span::new(address, PAGE)).unwrap()[0]);
        let mappings = mappings::all(Some(traced.process())).unwrap();
        // Its program has not run yet, and has written to none of its data.
        let data = mappings.iter().find(|mapping| {
            let is_file = matches!(&mapping.kind, mappings::Kind::File(_));
            is_file && mapping.write && !mapping.shared && !own(mapping.span.start)
        });
        let data = data.expect("data of a program");
        let at = data.span.start;
        let before = image.borrowed.word(at).unwrap();
        let shared = Mapping {
            shared: true,
            ..data.clone()
        };
        let mut rooted = HashSet::new();
        assert!(!may_differ(&shared, at, &mut rooted, &image.pagemap, &image.borrowed));
        assert!(!own(at));
        assert!(may_differ(data, at, &mut rooted, &image.pagemap, &image.borrowed));
        assert!(own(at) && rooted.contains(&at));
        assert_eq!(image.borrowed.word(at).unwrap(), before);
        // A page that nobody can write is never closed.
        let nowhere = Mapping {
            span: Span::new(PAGE, PAGE),
            ..data.clone()
        };
        assert!(!may_differ(
            &nowhere,
            PAGE,
            &mut rooted,
            &image.pagemap,
            &image.borrowed
        ));
        traced.end().unwrap();
    }
}
