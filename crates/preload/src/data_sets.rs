//! The data sets in terms of the library of slots: each run of pages is a data set there, in its entry's slot.
//!
//! The data sets of a slot use the same colors, so blocks may come and go one by one.

use std::collections::BTreeMap;

use live::slots::{Application, ColorsFrom, DataSet, Slot, Start, ThreadGroup};
use live::{Census, Colors, Others, Pages};
use policy::slots::{ColorSet, Plan, What};
use sys::frames::Pagemap;
use sys::memory::Span;

use crate::blocks::Painter;

/// The most reasons that are kept of one data set.
const MOST_NOTES: usize = 4;

pub struct DataSets {
    application: Application,
    colors: Colors,
    entries: Vec<Entry>,
    /// Placed runs by start, and the entry of each.
    sets: BTreeMap<usize, (u32, DataSet<'static>)>,
    ours: bool,
    /// The first problem with the daemon, if any.
    trouble: Option<String>,
    /// The first shortage in its stock, if any.
    shortage: Option<String>,
}

/// An entry of the plan.
pub struct Entry {
    group: ThreadGroup,
    slot: Option<Slot>,
    /// The slot's name.
    pub slot_name: String,
    pub name: String,
    /// The colors that it has.
    pub granted: ColorSet,
    /// Bytes on pages with other data.
    pub left_out: u64,
    /// Pages that got a frame so far, and how many of these frames came from the daemon.
    pub placed: u64,
    pub supplied: u64,
    /// Why not everything is as the plan requires.
    pub notes: Vec<String>,
}

impl DataSets {
    /// Defines the plan's slots among these colors.
    pub fn open(plan: &Plan, colors: Colors) -> Result<DataSets, String> {
        let text = |error: live::slots::Error| error.to_string();
        let start = Start {
            colors: ColorsFrom::Given(colors.clone()),
            ..Start::default()
        };
        let application = Application::start(start).map_err(text)?;
        let mut slots = Vec::new();
        for slot in &plan.slots {
            let defined = application.slot(slot.bytes, slot.kind);
            slots.push(defined.map_err(|error| format!("slot {}: {error}", slot.name))?);
        }
        let entries = plan.data.iter().map(|data| Entry {
            group: match data.cpus.as_slice() {
                [] => ThreadGroup::all(),
                cpus => ThreadGroup::on_cpus(cpus),
            },
            slot: data.slot.and_then(|slot| slots.get(slot).cloned()),
            slot_name: data
                .slot
                .map_or("none".to_string(), |slot| plan.slots[slot].name.clone()),
            name: match &data.what {
                What::Symbol { symbol, .. } => symbol.to_string(),
                What::Site { site, .. } => site.to_string(),
            },
            granted: ColorSet::default(),
            left_out: 0,
            placed: 0,
            supplied: 0,
            notes: Vec::new(),
        });
        Ok(DataSets {
            entries: entries.collect(),
            application,
            colors,
            sets: BTreeMap::new(),
            ours: true,
            trouble: None,
            shortage: None,
        })
    }

    pub fn colors(&self) -> &Colors {
        &self.colors
    }

    /// The mechanism that moves pages, and the keeper of the ledger: a line each.
    pub fn means(&self) -> String {
        let means = self.application.means();
        let mut lines = means.engine.trim_end().to_string();
        // If there is a reason, the library states it.
        if !lines.contains("ledger: ") {
            lines += &format!("\nledger: {}", means.ledger);
        }
        if let Some(trouble) = self.trouble.as_ref().or(self.shortage.as_ref()) {
            lines += &format!("\ndaemon: {trouble}");
        }
        lines
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Places ranges of static data: the pages that they cover whole.
    ///
    /// # Safety
    /// The ranges are the program's static data, which stays mapped in place; `others` is true about other users
    /// meanwhile.
    pub unsafe fn place_static(&mut self, entry: u32, ranges: &[(usize, usize)], others: Others) {
        let Some(start) = ranges.iter().map(|range| range.0).min() else {
            return;
        };
        // SAFETY: the caller's promise.
        let result = unsafe { self.place(entry, ranges, others) };
        let Some(own) = self.entries.get_mut(entry as usize) else {
            return;
        };
        match result {
            Ok(set) => {
                own.left_out += set.left_out();
                self.sets.insert(start, (entry, set));
            }
            Err(error) => own.note(error),
        }
    }

    /// # Safety
    /// The ranges stay mapped in place until the data set is dropped; `others` is true about other users meanwhile.
    unsafe fn place(
        &mut self,
        entry: u32,
        ranges: &[(usize, usize)],
        others: Others,
    ) -> Result<DataSet<'static>, String> {
        let own = self.entries.get_mut(entry as usize).ok_or("no such data set")?;
        let text = |error: live::slots::Error| error.to_string();
        let mut set = self.application.data_set(&own.group).map_err(text)?;
        for (start, bytes) in ranges {
            // SAFETY: the caller's promise.
            unsafe { set.add_raw(*start, *bytes) }.map_err(text)?;
        }
        // SAFETY: the caller's promise.
        let given = unsafe { set.allocate_among(own.slot.as_ref(), others) };
        let allocated = given.map(|given| given.colors.clone());
        if self.trouble.is_none() {
            self.trouble = self.application.trouble();
        }
        if self.shortage.is_none() {
            self.shortage = self.application.shortage();
        }
        own.granted = allocated.map_err(text)?;
        if let Some(done) = set.done() {
            own.placed += (done.filled + done.exchanged + done.kept) as u64;
            own.supplied += done.supplied as u64;
            if let Some(left) = done.left.first() {
                own.note(format!("some pages stay where they are: {}", left.why));
            }
        }
        Ok(set)
    }

    pub fn note(&mut self, entry: u32, note: String) {
        if let Some(entry) = self.entries.get_mut(entry as usize) {
            entry.note(note);
        }
    }

    /// Releases the pages of a mapping to the program. Their contents stay.
    pub fn let_go(&mut self, pages: Pages) {
        self.sets.remove(&pages.start);
    }

    /// In a child of fork: the placed data belongs to the parent.
    pub fn leave_to_parent(&mut self) {
        self.ours = false;
    }

    /// Examines the frames of an entry's pages.
    pub fn count(&self, number: u32) -> Census {
        let mut sum = Census::default();
        let Some(entry) = self.entries.get(number as usize) else {
            return sum;
        };
        for (_, set) in self.sets.values().filter(|(owner, _)| *owner == number) {
            // The engine examines only pages that it could place; pages that are not writable any more are not among
            // them.
            let census = set.census().or_else(|_| self.look(set, &entry.granted));
            // Pages that cannot be examined still exist.
            let census = census.unwrap_or_else(|_| {
                let pages = set.pages().iter().map(|run| run.count).sum();
                Census {
                    pages,
                    unknown: pages,
                    ..Census::default()
                }
            });
            sum.pages += census.pages;
            sum.right += census.right;
            sum.absent += census.absent;
            sum.unknown += census.unknown;
        }
        sum
    }

    fn look(&self, set: &DataSet<'_>, granted: &ColorSet) -> std::io::Result<Census> {
        let mut census = Census::default();
        let map = Pagemap::own()?;
        for run in set.pages() {
            for page in map.entries(Span::new(run.start, run.bytes()))? {
                census.pages += 1;
                match page.frame() {
                    _ if !page.present() => census.absent += 1,
                    None => census.unknown += 1,
                    Some(frame) => census.right += usize::from(granted.contains(self.colors().of(frame))),
                }
            }
        }
        Ok(census)
    }
}

impl Entry {
    fn note(&mut self, note: String) {
        if self.notes.len() < MOST_NOTES && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

impl Painter for DataSets {
    fn paint(&mut self, data_set: u32, pages: Pages) {
        if !self.ours {
            return;
        }
        // SAFETY: the addresses of an unallocated block are unknown to others; it is mapped until `forget` or `let_go`.
        match unsafe { self.place(data_set, &[(pages.start, pages.bytes())], Others::Absent) } {
            Ok(set) => {
                self.sets.insert(pages.start, (data_set, set));
            }
            Err(error) => self.note(data_set, error),
        }
    }

    fn forget(&mut self, _: u32, pages: Pages) {
        // Data that was never placed is not there.
        if let Some((_, mut set)) = self.sets.remove(&pages.start) {
            // The kernel gets frames that cannot be given back, together with the pages.
            // SAFETY: the program does not own the block any more.
            let _ = unsafe { set.discard_raw() };
        }
    }
}
