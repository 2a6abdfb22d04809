//! Numbers for things that come and go: a number is never that of two things.

use std::marker::PhantomData;

/// Things by number.
#[derive(Debug)]
pub(super) struct Table<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

/// The number of a `T`: its place in a table, and how many were there before it.
#[derive(Debug)]
pub struct Id<T>(u64, PhantomData<fn() -> T>);

impl<T> Id<T> {
    /// The number, to be sent elsewhere.
    pub fn number(self) -> u64 {
        self.0
    }

    /// Takes a number that [`Id::number`] gave. Any other number names nothing, and every request reports that.
    pub fn from_number(number: u64) -> Self {
        Id(number, PhantomData)
    }
}

// Derived, these would ask the same of T.
impl<T> Copy for Id<T> {}
impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> PartialEq for Id<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<T> Eq for Id<T> {}
impl<T> std::hash::Hash for Id<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Table<T> {
    pub(super) fn add(&mut self, value: T) -> Id<T> {
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                // Numbers begin at 1, so that none is 0.
                self.entries.push(Entry {
                    generation: 1,
                    value: None,
                });
                (self.entries.len() - 1) as u32
            }
        };
        let entry = &mut self.entries[at as usize];
        entry.value = Some(value);
        Id::from_number(u64::from(entry.generation) << 32 | u64::from(at))
    }

    pub(super) fn get(&self, id: Id<T>) -> Option<&T> {
        let entry = self.entries.get(id.0 as u32 as usize)?;
        (u64::from(entry.generation) == id.0 >> 32).then_some(())?;
        entry.value.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: Id<T>) -> Option<&mut T> {
        let entry = self.entries.get_mut(id.0 as u32 as usize)?;
        (u64::from(entry.generation) == id.0 >> 32).then_some(())?;
        entry.value.as_mut()
    }

    pub(super) fn remove(&mut self, id: Id<T>) -> Option<T> {
        let at = id.0 as u32;
        let entry = self.entries.get_mut(at as usize)?;
        (u64::from(entry.generation) == id.0 >> 32).then_some(())?;
        let value = entry.value.take()?;
        // A place whose generations are used up stays empty.
        if let Some(next) = entry.generation.checked_add(1) {
            entry.generation = next;
            self.free.push(at);
        }
        Some(value)
    }
}
