//! Changed data, byte by byte: for each block a table of where every byte goes.

use std::collections::HashMap;

use machine::Machine;
use results::ProgramChange;
use trace::{Array, Event};

/// The name of blocks in programs that do not say who allocated them.
pub const BLOCKS: &str = "heap: allocation site unknown";

const HUGE: u64 = 1 << 21;

/// Bytes of a reference that lie side by side: where, how many, and whether on huge pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    pub from: u64,
    pub bytes: u64,
    pub huge: bool,
}

/// The place of each byte of a block.
type Room = Vec<u64>;

/// The structures that a change puts together.
fn members(change: &ProgramChange) -> Vec<&str> {
    match change {
        ProgramChange::Interleave { data, with, .. } if !with.is_empty() => {
            std::iter::once(data).chain(with).map(String::as_str).collect()
        }
        _ => Vec::new(),
    }
}

/// The part and offset of each byte, and the sizes of the parts.
type Image = (Vec<(usize, u64)>, Vec<u64>);

pub struct Changes {
    changes: Vec<ProgramChange>,
    arrays: Vec<Array>,
    blocks: Vec<(u64, u64)>,
    line: u64,
    page: u64,
    next: u64,
    rooms: HashMap<(String, u64, u64), Room>,
    /// By part: the place of the next small block, and the end of its stretch.
    stretches: HashMap<usize, (u64, u64)>,
    large: HashMap<String, u64>,
    /// By change and number: the starts of rooms that several blocks share.
    shared: HashMap<(usize, usize), u64>,
}

impl Changes {
    pub fn new(machine: &Machine, arrays: &[Array], changes: &[ProgramChange]) -> Changes {
        let lines = machine.caches.iter().map(|cache| u64::from(cache.line_bytes));
        Changes {
            changes: changes.to_vec(),
            arrays: arrays.to_vec(),
            blocks: Vec::new(),
            line: lines.max().unwrap_or(64),
            page: machine.page_bytes,
            next: 1 << 60,
            rooms: HashMap::new(),
            stretches: HashMap::new(),
            large: HashMap::new(),
            shared: HashMap::new(),
        }
    }

    pub fn event(&mut self, space: u32, event: &Event) {
        match *event {
            // Other processes are not named.
            _ if space > 0 => {}
            Event::Alloc { addr, bytes, .. } => {
                // Older blocks lose the parts that it covers.
                let (start, end) = (addr, addr + bytes);
                let left = self.blocks.drain(..).flat_map(|(addr, bytes)| {
                    let before = (addr, start.clamp(addr, addr + bytes) - addr);
                    let behind = end.clamp(addr, addr + bytes);
                    match start < addr + bytes && addr < end {
                        true => vec![before, (behind, addr + bytes - behind)],
                        false => vec![(addr, bytes)],
                    }
                });
                self.blocks = left.filter(|(_, bytes)| *bytes > 0).collect();
                self.blocks.push((addr, bytes));
            }
            Event::Free { addr } => self.blocks.retain(|(start, _)| *start != addr),
            _ => {}
        }
    }

    pub fn parts(&mut self, space: u32, addr: u64, bytes: u64) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for at in (0..bytes.max(1)).map_while(|offset| addr.checked_add(offset)) {
            let (now, huge) = self.byte(space, at);
            match parts.last_mut() {
                Some(part) if part.from + part.bytes == now && part.huge == huge => part.bytes += 1,
                _ => parts.push(Part {
                    from: now,
                    bytes: 1,
                    huge,
                }),
            }
        }
        parts
    }

    /// The huge page of an address, told from all other pages.
    pub fn huge_page(&self, address: u64) -> u64 {
        address / HUGE.max(self.page)
    }

    fn byte(&mut self, space: u32, address: u64) -> (u64, bool) {
        let all = self.changes.contains(&ProgramChange::HugePages { data: None });
        let Some((name, start, bytes)) = self.owner(space, address) else {
            return (address, all);
        };
        let own: Vec<ProgramChange> = self
            .changes
            .iter()
            .filter(|change| change.data() == Some(&name) || members(change).contains(&name.as_str()))
            .cloned()
            .collect();
        let is_huge = |change: &ProgramChange| matches!(change, ProgramChange::HugePages { .. });
        let huge = all || own.iter().any(is_huge);
        let stays = |change: &ProgramChange| {
            let of_loads = matches!(change, ProgramChange::Chains { .. } | ProgramChange::Prefetch { .. });
            of_loads || is_huge(change)
        };
        if own.iter().all(stays) {
            return (address, huge);
        }
        let key = (name.clone(), start, bytes);
        if !self.rooms.contains_key(&key) {
            let room = self.room(&name, start, bytes, &own);
            self.rooms.insert(key.clone(), room);
        }
        (self.rooms[&key][(address - start) as usize], huge)
    }

    /// Name, start and size of the block that a byte is in.
    fn owner(&self, space: u32, address: u64) -> Option<(String, u64, u64)> {
        if space > 0 {
            return None;
        }
        let within = |start: u64, bytes: u64| start <= address && address - start < bytes;
        let array = self.arrays.iter().rev().find(|array| within(array.addr, array.bytes));
        let block = || self.blocks.iter().rev().find(|(start, bytes)| within(*start, *bytes));
        match array {
            Some(array) => Some((array.name.clone(), array.addr, array.bytes)),
            None => block().map(|(start, bytes)| (BLOCKS.to_string(), *start, *bytes)),
        }
    }

    fn room(&mut self, name: &str, start: u64, bytes: u64, changes: &[ProgramChange]) -> Room {
        if let Some(room) = self.between(name, start, bytes) {
            return room;
        }
        let (image, parts) = self.image(bytes, changes);
        let separate = changes
            .iter()
            .any(|change| matches!(change, ProgramChange::Separate { .. }));
        let mut bases = Vec::new();
        if name == BLOCKS && bytes < self.page {
            let align = match (separate, parts.len()) {
                (true, _) => self.line,
                (_, 1) => 16,
                _ => 8,
            };
            for (part, size) in parts.iter().enumerate() {
                let (next, end) = self.stretches.get(&part).copied().unwrap_or((0, 0));
                let mut base = next.next_multiple_of(align);
                let mut end = end;
                if base + size > end {
                    base = self.next;
                    end = base + size.max(&1).next_multiple_of(HUGE);
                    self.next = end;
                }
                self.stretches.insert(part, (base + size, end));
                bases.push(base);
            }
        } else {
            let number = self.large.entry(name.to_string()).or_insert(0);
            *number += 1;
            let shift: u64 = changes
                .iter()
                .map(|change| match change {
                    ProgramChange::Shift { bytes, .. } => *bytes,
                    _ => 0,
                })
                .sum();
            let mut base = self.next + start % HUGE;
            if separate {
                base = base.next_multiple_of(self.line);
            }
            base += shift * *number;
            let starts = self.starts(&parts);
            self.next = (base + starts[parts.len() - 1] + parts[parts.len() - 1]).next_multiple_of(HUGE);
            bases = starts.iter().map(|start| base + start).collect();
        }
        image.into_iter().map(|(part, offset)| bases[part] + offset).collect()
    }

    /// The room of a block whose elements lie between those of others.
    fn between(&mut self, name: &str, start: u64, bytes: u64) -> Option<Room> {
        let mut all = self.changes.iter().enumerate();
        let (number, change) = all.find(|(_, change)| members(change).contains(&name))?;
        let ProgramChange::Interleave { element_bytes, .. } = change else {
            return None;
        };
        let members = members(change);
        let places: Vec<usize> = (0..members.len()).filter(|&place| members[place] == name).collect();
        let before = self.large.entry(name.to_string()).or_insert(0);
        let (shared, place) = (*before as usize / places.len(), places[*before as usize % places.len()]);
        *before += 1;
        let base = match self.shared.get(&(number, shared)) {
            Some(base) => *base,
            None => {
                let base = self.next + start % HUGE;
                self.shared.insert((number, shared), base);
                self.next += 1 << 40;
                base
            }
        };
        let element = |offset: u64| offset / element_bytes * members.len() as u64 + place as u64;
        let byte = |offset: u64| base + element(offset) * element_bytes + offset % element_bytes;
        Some((0..bytes).map(byte).collect())
    }

    /// The start of each part in one piece.
    fn starts(&self, parts: &[u64]) -> Vec<u64> {
        let mut end: u64 = 0;
        let mut starts = Vec::new();
        for part in parts {
            starts.push(end.next_multiple_of(self.line));
            end = end.next_multiple_of(self.line) + part;
        }
        starts
    }

    /// The image of `bytes` bytes under all changes.
    fn image(&self, bytes: u64, changes: &[ProgramChange]) -> Image {
        let mut image: Vec<(usize, u64)> = (0..bytes).map(|offset| (0, offset)).collect();
        let mut parts = vec![bytes];
        for change in changes {
            let starts = self.starts(&parts);
            let whole = starts[parts.len() - 1] + parts[parts.len() - 1];
            let Some((table, sizes)) = self.table(change, whole) else {
                continue;
            };
            for place in &mut image {
                *place = table[(starts[place.0] + place.1) as usize];
            }
            parts = sizes;
        }
        (image, parts)
    }

    /// The effect of one change on `bytes` bytes.
    fn table(&self, change: &ProgramChange, bytes: u64) -> Option<Image> {
        let mut table = vec![(0, 0); bytes as usize];
        match change {
            ProgramChange::Pad {
                row_bytes, pad_bytes, ..
            } => {
                let mut at = 0;
                for offset in 0..bytes {
                    if offset > 0 && offset % row_bytes == 0 {
                        at += pad_bytes;
                    }
                    table[offset as usize] = (0, at);
                    at += 1;
                }
                Some((table, vec![bytes + bytes / row_bytes * pad_bytes]))
            }
            ProgramChange::Transpose {
                element_bytes, columns, ..
            } => {
                let rows = bytes / (element_bytes * columns);
                let mut at = 0;
                for c in 0..*columns {
                    for r in 0..rows {
                        for byte in 0..*element_bytes {
                            table[((r * columns + c) * element_bytes + byte) as usize] = (0, at);
                            at += 1;
                        }
                    }
                }
                for rest in at..bytes {
                    table[rest as usize] = (0, rest);
                }
                Some((table, vec![bytes]))
            }
            ProgramChange::Separate { element_bytes, .. } => {
                let stride = element_bytes.next_multiple_of(self.line);
                let elements = bytes / element_bytes;
                for offset in 0..bytes {
                    let place = match offset / element_bytes {
                        element if element < elements => element * stride + offset % element_bytes,
                        _ => elements * stride + (offset - elements * element_bytes),
                    };
                    table[offset as usize] = (0, place);
                }
                Some((table, vec![elements * stride + bytes % element_bytes]))
            }
            ProgramChange::Fields {
                element_bytes, groups, ..
            } => {
                let mut parts: Vec<Vec<u64>> = groups
                    .iter()
                    .map(|group| {
                        let bytes = group.iter().flat_map(|field| field.offset..field.offset + field.bytes);
                        bytes.collect()
                    })
                    .collect();
                let rest: Vec<u64> = (0..*element_bytes)
                    .filter(|byte| !parts.iter().flatten().any(|other| other == byte))
                    .collect();
                if !rest.is_empty() {
                    parts.push(rest);
                }
                let elements = bytes / element_bytes;
                let mut sizes = vec![0; parts.len()];
                for element in 0..elements {
                    for (part, of_part) in parts.iter().enumerate() {
                        for byte in of_part {
                            table[(element * element_bytes + byte) as usize] = (part, sizes[part]);
                            sizes[part] += 1;
                        }
                    }
                }
                let last = parts.len() - 1;
                for offset in elements * element_bytes..bytes {
                    table[offset as usize] = (last, sizes[last]);
                    sizes[last] += 1;
                }
                Some((table, sizes))
            }
            ProgramChange::Shift { .. }
            | ProgramChange::HugePages { .. }
            | ProgramChange::Tile { .. }
            | ProgramChange::Interchange { .. }
            // Changes of when loads begin: overlap.rs.
            | ProgramChange::Chains { .. }
            | ProgramChange::Prefetch { .. }
            // Tested as the case that it is an instance of.
            | ProgramChange::Interleave { .. } => None,
        }
    }
}
