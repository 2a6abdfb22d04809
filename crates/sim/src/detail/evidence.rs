//! The measurements of why data misses, by line of the source and structure.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use results::Misses;

use super::code::{Code, Spot};
use super::lines::Lines;
use super::rows::{Row, Rows};
use crate::causes::{Addresses, Causes, Evidence, Place, StructureEvidence, Sum};
use crate::clock::{Units, whole_ns};
use crate::layout::Layout;
use crate::structures::{StructureId, Structures};

/// Lines of the source with a structure each that are reported, those that wait longest.
const MOST: usize = 64;
/// Instructions of which neither line nor function is known are one place if they are this close together, in bytes: a
/// loop that is unrolled has several.
pub(super) const STRETCH: u64 = 64;

/// Space, structure, location of the instruction, and its site.
type Nameless = (u32, StructureId, u64, u32);

/// A line of the source and a structure: the sums.
struct Group {
    spot: Spot,
    structure: StructureId,
    space: u32,
    sites: Vec<u32>,
    sum: Sum,
}

/// The site by which a place without names is called: that of its stretch of code which waits longest.
fn stretches(lines: &Lines, code: &Code) -> HashMap<(u32, StructureId, u32), u32> {
    let mut nameless: BTreeMap<Nameless, Units> = BTreeMap::new();
    for (row, (space, site, structure)) in lines.places() {
        if let Some(pc) = code.nameless(space, site) {
            let waits = lines.rows.row_of(row).map_or(0, |row| row.stall());
            *nameless.entry((space, structure, pc, site)).or_default() += waits;
        }
    }
    let near =
        |(a, _): &(Nameless, Units), (b, _): &(Nameless, Units)| (a.0, a.1) == (b.0, b.1) && b.2 - a.2 <= STRETCH;
    let mut named_by = HashMap::new();
    let all: Vec<(Nameless, Units)> = nameless.into_iter().collect();
    for stretch in all.chunk_by(near) {
        let worst = stretch
            .iter()
            .max_by_key(|((.., site), waits)| (*waits, Reverse(*site)));
        for ((space, structure, _, site), _) in stretch {
            let by = worst.map_or(*site, |((.., site), _)| *site);
            named_by.insert((*space, *structure, *site), by);
        }
    }
    named_by
}

pub fn evidence(
    causes: Causes,
    lines: &Lines,
    code: &Code,
    structures: &Structures,
    layout: &Layout,
    caches: impl Fn(Row) -> Vec<Misses>,
) -> Evidence {
    let measured = causes.ended();
    let mut numbers: HashMap<(Spot, StructureId), u32> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    let mut rows = Rows::new(lines.rows.kinds());
    let mut irregular: HashSet<(u32, u32)> = HashSet::new();
    let named_by = stretches(lines, code);
    for (row, (space, site, structure)) in lines.places() {
        let counted = lines.rows.row_of(row);
        if counted.is_none_or(Row::is_empty) && measured.tlb_misses(row) == 0 {
            continue;
        }
        let spot = code.spot(space, *named_by.get(&(space, structure, site)).unwrap_or(&site));
        let group = *numbers
            .entry((spot, structure))
            .or_insert_with_key(|(spot, structure)| {
                groups.push(Group {
                    spot: spot.clone(),
                    structure: *structure,
                    space,
                    sites: Vec::new(),
                    sum: Sum::default(),
                });
                groups.len() as u32 - 1
            });
        let of = &mut groups[group as usize];
        measured.add(row, counted.map_or(0, |row| row.stall()), &mut of.sum);
        if measured.is_irregular(row) {
            irregular.insert((space, site));
        }
        of.sites.push(site);
        if let Some(row) = counted {
            rows.add(group, row);
        }
    }
    let waits = |group: usize, rows: &mut Rows| rows.get(group as u32).stall() + groups[group].sum.translation();
    let mut worst: Vec<(Units, usize)> = (0..groups.len())
        .map(|group| (waits(group, &mut rows), group))
        .collect();
    worst.sort_by_key(|&(waits, group)| (Reverse(waits), group));
    worst.truncate(MOST);
    let mut ids: Vec<StructureId> = Vec::new();
    for &(_, group) in &worst {
        let structure = groups[group].structure;
        if !ids.contains(&structure) {
            ids.push(structure);
        }
    }
    let of_structure = |&id: &StructureId| {
        let sums = worst.iter().map(|&(_, group)| &groups[group]);
        let sums: Vec<&Sum> = sums.filter(|of| of.structure == id).map(|of| &of.sum).collect();
        measured.structure(id, structures.describe(id), &sums)
    };
    let of_structures: Vec<StructureEvidence> = ids.iter().map(of_structure).collect();
    let place = |&(_, group): &(Units, usize)| {
        let Group {
            spot,
            structure,
            space,
            sites,
            sum,
        } = &groups[group];
        let number = |structure: &StructureId| ids.iter().position(|of| of == structure);
        let structure = number(structure).unwrap_or_default();
        let addresses = code.addresses(sites);
        let loaded_at = match addresses {
            Addresses::Loaded(from) => Some(code.spot(*space, from).in_short()),
            _ => None,
        };
        let row = rows.get(group as u32);
        Place {
            structure,
            function: spot.function.clone(),
            file: spot.file.clone(),
            line: spot.line,
            stall_ns: whole_ns(row.stall()),
            caches: caches(row),
            addresses,
            loaded_at,
            loaded_in_order: match addresses {
                Addresses::Loaded(from) => !irregular.contains(&(*space, from)),
                _ => false,
            },
            fields: sum.fields(of_structures[structure].element),
            together: sum.together().iter().filter_map(number).collect(),
            ..sum.place()
        }
    };
    let places = worst.iter().map(place).collect();
    Evidence {
        line_bytes: 1 << layout.block_bits,
        page_bytes: 1 << layout.page_bits,
        sampled: measured.sampled,
        places,
        structures: of_structures,
    }
}
