//! The data sets as the library of slots has them: each run of pages is one there, in its entry's slot.
//!
//! The data sets of a slot use the same colors, so that blocks may come and go one by one.

use std::collections::BTreeMap;

use live::slots::{Application, DataSet, Others, Slot, Start, ThreadGroup};
use live::{Colors, PAGE_BYTES, Pages};
use policy::slots::{ColorSet, Plan, What};
use sys::frames::Pagemap;
use sys::memory::Span;

use crate::blocks::Painter;

/// Reasons told of one data set.
const MOST_NOTES: usize = 4;
/// Entries of the page map read at once.
const AT_ONCE: usize = 1 << 14;

pub struct Canvas {
    application: Application,
    entries: Vec<Entry>,
    /// Placed runs by start, and the entry of each.
    sets: BTreeMap<usize, (u32, DataSet)>,
    ours: bool,
}

/// An entry of the plan.
struct Entry {
    group: ThreadGroup,
    slot: Option<Slot>,
    slot_name: String,
    name: String,
    granted: ColorSet,
    /// Bytes on pages with other data.
    left_out: u64,
    notes: Vec<String>,
}

/// Which frames the pages of an entry have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    pub pages: u64,
    pub allowed: u64,
    pub unknown: u64,
}

impl Canvas {
    /// Defines the plan's slots.
    pub fn open(plan: &Plan) -> Result<Canvas, String> {
        let text = |error: live::slots::Error| error.to_string();
        let application = Application::start(Start::default()).map_err(text)?;
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
            notes: Vec::new(),
        });
        Ok(Canvas {
            entries: entries.collect(),
            application,
            sets: BTreeMap::new(),
            ours: true,
        })
    }

    pub fn colors(&self) -> &Colors {
        &self.application.means().colors
    }

    /// Who keeps the ledger, and what moves pages.
    pub fn means(&self) -> String {
        let means = self.application.means();
        format!("{}; ledger: {}", means.engine, means.ledger)
    }

    /// The name and the slot of each entry, the colors it has, the bytes left where they are, and what there is to say.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str, &ColorSet, u64, &[String])> {
        self.entries.iter().map(|entry| {
            let (name, slot) = (entry.name.as_str(), entry.slot_name.as_str());
            (name, slot, &entry.granted, entry.left_out, entry.notes.as_slice())
        })
    }

    /// Places ranges of static data: the pages that they cover whole.
    pub fn place_static(&mut self, entry: u32, ranges: &[(usize, usize)], others: Others) {
        let Some(start) = ranges.iter().map(|range| range.0).min() else {
            return;
        };
        let result = self.place(entry, ranges, others);
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

    fn place(&mut self, entry: u32, ranges: &[(usize, usize)], others: Others) -> Result<DataSet, String> {
        let own = self.entries.get_mut(entry as usize).ok_or("no such data set")?;
        let text = |error: live::slots::Error| error.to_string();
        let mut set = self.application.data_set(&own.group).map_err(text)?;
        for (start, bytes) in ranges {
            set.add(*start, *bytes).map_err(text)?;
        }
        let given = set.allocate(own.slot.as_ref(), others).map_err(text)?;
        own.granted = given.colors.clone();
        Ok(set)
    }

    pub fn note(&mut self, entry: u32, note: String) {
        if let Some(entry) = self.entries.get_mut(entry as usize) {
            entry.note(note);
        }
    }

    /// In a child of fork: what is placed is the parent's.
    pub fn leave_to_parent(&mut self) {
        self.ours = false;
    }

    /// Looks which frames the pages of an entry have. Pages without memory are not counted.
    pub fn count(&self, number: u32) -> Counted {
        let mut counted = Counted::default();
        let Some(entry) = self.entries.get(number as usize) else {
            return counted;
        };
        let Ok(map) = Pagemap::own() else { return counted };
        let colors = self.colors();
        let sets = self.sets.values().filter(|(owner, _)| *owner == number);
        let runs = sets.flat_map(|(_, set)| set.pages());
        for run in runs {
            for first in (0..run.count).step_by(AT_ONCE) {
                let count = AT_ONCE.min(run.count - first);
                let span = Span::new(run.start + first * PAGE_BYTES, count * PAGE_BYTES);
                let Ok(pages) = map.entries(span) else { continue };
                for page in pages.iter().filter(|page| page.present()) {
                    counted.pages += 1;
                    match page.frame() {
                        None => counted.unknown += 1,
                        Some(frame) => counted.allowed += u64::from(entry.granted.contains(colors.of(frame))),
                    }
                }
            }
        }
        counted
    }
}

impl Entry {
    fn note(&mut self, note: String) {
        if self.notes.len() < MOST_NOTES && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

impl Painter for Canvas {
    fn paint(&mut self, data_set: u32, pages: Pages) {
        if !self.ours {
            return;
        }
        // Nobody else knows the addresses of a block that is not given out yet.
        match self.place(data_set, &[(pages.start, pages.bytes())], Others::Absent) {
            Ok(set) => {
                self.sets.insert(pages.start, (data_set, set));
            }
            Err(error) => self.note(data_set, error),
        }
    }

    fn forget(&mut self, _: u32, pages: Pages) {
        // What was never placed is not there.
        self.sets.remove(&pages.start);
    }
}
