//! Files that were mapped into an address space.

use std::collections::BTreeMap;

/// A mapping of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub process: u32,
    pub path: String,
    pub start: u64,
    pub bytes: u64,
    /// The offset in the file at which it begins.
    pub offset: u64,
    pub executable: bool,
}

/// All mappings of files, past and present, in all address spaces.
#[derive(Default)]
pub struct Mappings {
    /// By process and address, so that a mapping that is seen twice is known once.
    all: BTreeMap<(u32, u64, String), Mapping>,
}

impl Mappings {
    pub fn add(&mut self, mapping: Mapping) {
        let key = (mapping.process, mapping.start, mapping.path.clone());
        let known = self.all.entry(key).or_insert_with(|| mapping.clone());
        known.bytes = known.bytes.max(mapping.bytes);
        known.executable |= mapping.executable;
    }

    /// A forked child inherits its parent's mappings.
    pub fn inherit(&mut self, parent: u32, child: u32) {
        let inherited: Vec<Mapping> = self
            .all
            .range((parent, 0, String::new())..)
            .take_while(|((process, ..), _)| *process == parent)
            .map(|(_, m)| Mapping {
                process: child,
                ..m.clone()
            })
            .collect();
        inherited.into_iter().for_each(|m| self.add(m));
    }

    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.all.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_inherits_once() {
        let mut mappings = Mappings::default();
        let m = Mapping {
            process: 0,
            path: "/bin/a".into(),
            start: 0x1000,
            bytes: 4096,
            offset: 0,
            executable: false,
        };
        mappings.add(m.clone());
        mappings.add(Mapping {
            executable: true,
            ..m.clone()
        });
        mappings.inherit(0, 1);
        mappings.inherit(0, 1);
        let all: Vec<_> = mappings.iter().cloned().collect();
        assert_eq!(all.len(), 2);
        assert!(all[0].executable && all[1].process == 1 && all[1].executable);
    }
}
