//! The data that changes, and how: the changes that were asked for, with names found and numbers checked.

use std::collections::{BTreeSet, HashMap, HashSet};

use policy::{Kind, Name};
use results::{Field, ProgramChange, StructureKind};

use super::shape::Shape;
use crate::config::Config;
use crate::error::SimError;
use crate::structures::{StructureId, Structures};
use results::site::base;

/// The change of one data structure.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    pub shapes: Vec<Shape>,
    /// The number of bytes by which its first block begins later.
    pub shift: u64,
    /// True if its blocks begin at a line.
    pub at_lines: bool,
    pub huge_pages: bool,
    /// True if it comes in blocks, large and small ones.
    pub blocks: bool,
    /// Set if it lies between the elements of others.
    pub joined: Option<Joined>,
}

/// Blocks that share one room, element by element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The number of the change that joins them.
    pub group: usize,
    /// The place of the first element of each of the structure's blocks that go into one room.
    pub at: Vec<u64>,
}

impl Layout {
    /// Returns whether its bytes go anywhere else.
    pub fn moves(&self) -> bool {
        !self.shapes.is_empty() || self.shift > 0 || self.at_lines
    }

    /// Returns whether only [`Layout::joined`] changes the place of its bytes, if anything joins it.
    fn agrees(&self) -> bool {
        self.joined.is_none() || self.shapes.len() == 1 && self.shift == 0 && !self.at_lines
    }
}

/// All changes.
#[derive(Debug, Default)]
pub struct Plan {
    pub layouts: HashMap<StructureId, Layout>,
    /// True if all data is on huge pages.
    pub huge_pages: bool,
}

/// A structure that can be changed.
struct Candidate {
    structure: StructureId,
    name: String,
    /// The name with its place, as tables show that of a variable.
    with_place: Option<String>,
    /// Of variables; blocks have the size of their allocation.
    bytes: Option<u64>,
}

impl Candidate {
    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.with_place.as_deref() == Some(name)
    }
}

/// The most bytes, or elements of a row, that a change can speak of: 2^30.
const MOST: u64 = 1 << 30;
/// The most arrays that are interleaved.
const MEMBERS: usize = 64;
/// Names that an error lists.
const NEAR: usize = 5;

impl Plan {
    /// `line`: bytes of the machine's largest line.
    pub fn new(config: &Config, structures: &Structures, line: u64) -> Result<Plan, SimError> {
        let mut plan = Plan::default();
        if config.changes.is_empty() {
            return Ok(plan);
        }
        // Huge pages leave data where it is.
        let moves = |change: &ProgramChange| !matches!(change, ProgramChange::HugePages { .. });
        if config.changes.iter().any(moves) {
            config.policies.iter().try_for_each(|spec| refuse_policy(&spec.name))?;
        }
        let candidates = candidates(structures);
        for (group, change) in config.changes.iter().enumerate() {
            let refused = |what: String| SimError::Change {
                change: change.to_string(),
                what,
            };
            check(change).map_err(refused)?;
            let Some(data) = change.data() else {
                plan.huge_pages = true;
                continue;
            };
            if let ProgramChange::Interleave {
                element_bytes, with, ..
            } = change
                && !with.is_empty()
            {
                let names: Vec<&str> = std::iter::once(data).chain(with.iter().map(String::as_str)).collect();
                let find = |name: &str| candidates.iter().find(|candidate| candidate.is_called(name));
                if let Some(name) = names.iter().find(|name| find(name).is_none()) {
                    return Err(refused(unknown(name, structures, &candidates)));
                }
                let members: Vec<&Candidate> = names.iter().filter_map(|name| find(name)).collect();
                plan.join(group, *element_bytes, &members).map_err(refused)?;
                continue;
            }
            // Libraries, too, have a `data` or a `buffer`: of several that are called so, those that the change fits.
            let (mut fits, mut why_not) = (false, None);
            for candidate in candidates.iter().filter(|candidate| candidate.is_called(data)) {
                let mut layout = plan.layouts.get(&candidate.structure).cloned().unwrap_or_default();
                layout.blocks = candidate.bytes.is_none();
                match add(&mut layout, change, candidate.bytes, line) {
                    Ok(()) => {
                        fits = true;
                        plan.layouts.insert(candidate.structure, layout);
                    }
                    Err(what) => why_not = why_not.or(Some(what)),
                }
            }
            if !fits {
                return Err(refused(
                    why_not.unwrap_or_else(|| unknown(data, structures, &candidates)),
                ));
            }
        }
        match plan.layouts.values().all(Layout::agrees) {
            true => Ok(plan),
            false => Err(SimError::Change {
                change: config
                    .changes
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("; "),
                what: "data that is interleaved with other data is changed in no other way".to_string(),
            }),
        }
    }

    /// Elements of these follow one another in turn; a structure listed several times joins as many blocks.
    fn join(&mut self, group: usize, element: u64, members: &[&Candidate]) -> Result<(), String> {
        let stride = element * members.len() as u64;
        for (place, member) in members.iter().enumerate() {
            if member.bytes.is_some_and(|bytes| bytes % element != 0) {
                return Err(format!(
                    "`{}` is no whole number of elements of {element} bytes",
                    member.name
                ));
            }
            let layout = self.layouts.entry(member.structure).or_default();
            layout.blocks = member.bytes.is_none();
            let at = place as u64 * element;
            match &mut layout.joined {
                Some(joined) if joined.group == group => joined.at.push(at),
                Some(_) => return Err(format!("`{}` is interleaved twice", member.name)),
                None => {
                    layout.joined = Some(Joined { group, at: vec![at] });
                    layout.shapes.push(Shape::Separate { element, stride });
                }
            }
        }
        Ok(())
    }
}

/// These policies place data by the addresses that the program names, which are not those of changed data.
fn refuse_policy(name: &Name) -> Result<(), SimError> {
    let mut parts = [Kind::Color, Kind::Home].into_iter().filter_map(|kind| name.of(kind));
    match parts.find(|part| part.traits.hints || part.traits.summaries || part.traits.slots) {
        Some(part) => Err(SimError::ChangesUnder { policy: part.name }),
        None => Ok(()),
    }
}

/// Another order of the work: by blocks of some bytes, or along the lines of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewOrder {
    Tiled { bytes: u64 },
    Interchanged { line: String },
}

/// The data that a change of the work's order speaks of, and the order; `None` without such a change.
pub fn new_order(
    config: &Config,
    structures: &Structures,
) -> Result<Option<(HashSet<StructureId>, NewOrder)>, SimError> {
    let mut found = None;
    for change in &config.changes {
        let (data, order) = match change {
            ProgramChange::Tile { data, bytes } => (data, NewOrder::Tiled { bytes: *bytes }),
            ProgramChange::Interchange { data, line } => (data, NewOrder::Interchanged { line: line.clone() }),
            _ => continue,
        };
        let refused = |what: String| SimError::Change {
            change: change.to_string(),
            what,
        };
        check(change).map_err(refused)?;
        if found.is_some() {
            return Err(refused("the work can be put in one order only".to_string()));
        }
        for spec in &config.policies {
            if let Some(order) = spec.name.of(Kind::Order) {
                return Err(SimError::ChangesUnder { policy: order.name });
            }
        }
        let candidates = candidates(structures);
        let meant = candidates.iter().filter(|candidate| candidate.is_called(data));
        let meant: HashSet<StructureId> = meant.map(|candidate| candidate.structure).collect();
        if meant.is_empty() {
            return Err(refused(unknown(data, structures, &candidates)));
        }
        found = Some((meant, order));
    }
    Ok(found)
}

/// The structures that can be changed; several may have one name.
fn candidates(structures: &Structures) -> Vec<Candidate> {
    let candidate = |structure| {
        let description = structures.describe(structure);
        let bytes = match description.kind {
            StructureKind::Symbol | StructureKind::Array => Some(description.bytes),
            StructureKind::Heap => None,
            _ => return None,
        };
        let place = description.file.as_deref().zip(description.line);
        let with_place = place.map(|(file, line)| format!("{} ({}:{line})", description.name, base(file)));
        Some(Candidate {
            structure,
            with_place,
            name: description.name,
            bytes,
        })
    };
    (0..structures.count()).filter_map(candidate).collect()
}

/// Why a name is of nothing that can be changed.
fn unknown(data: &str, structures: &Structures, candidates: &[Candidate]) -> String {
    let other = (0..structures.count()).any(|structure| structures.describe(structure).name == data);
    if other {
        return format!(
            "`{data}` is neither a variable nor a declared array nor an allocation site: nothing else can be changed"
        );
    }
    let lower = data.to_lowercase();
    let rank = |name: &&String| {
        let name = name.to_lowercase();
        let holds = !lower.is_empty() && (name.contains(&lower) || name.len() > 2 && lower.contains(&name));
        let alike = strsim::normalized_damerau_levenshtein(&name, &lower);
        (holds || alike > 0.5).then_some((alike * 1e6) as u64 + if holds { 1 << 32 } else { 0 })
    };
    let names: BTreeSet<&String> = candidates.iter().map(|candidate| &candidate.name).collect();
    let mut near: Vec<(u64, &String)> = names
        .into_iter()
        .filter_map(|name| Some((rank(&name)?, name)))
        .collect();
    near.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let near: Vec<String> = near.iter().take(NEAR).map(|(_, name)| format!("`{name}`")).collect();
    match near.is_empty() {
        true => format!("the trace names no data `{data}`; `domicile simulate --by structure` lists what it names"),
        false => format!("the trace names no data `{data}`; near it are {}", near.join(", ")),
    }
}

/// Finds errors in a change that do not depend on the trace.
fn check(change: &ProgramChange) -> Result<(), String> {
    let in_range = |what: &str, number: u64| match number {
        1..=MOST => Ok(()),
        _ => Err(format!("{what} is {number}; write a number from 1 to {MOST}")),
    };
    match change {
        ProgramChange::Pad {
            row_bytes, pad_bytes, ..
        } => in_range("row_bytes", *row_bytes).and_then(|()| in_range("pad_bytes", *pad_bytes)),
        ProgramChange::Transpose {
            element_bytes, columns, ..
        } => in_range("element_bytes", *element_bytes).and_then(|()| in_range("columns", *columns)),
        ProgramChange::Interleave {
            element_bytes,
            part_bytes,
            with,
            ..
        } => {
            in_range("element_bytes", *element_bytes)?;
            match (part_bytes, with.is_empty()) {
                (Some(part_bytes), true) => {
                    in_range("part_bytes", *part_bytes)?;
                    match part_bytes % element_bytes {
                        0 => Ok(()),
                        _ => Err("part_bytes is no multiple of element_bytes".to_string()),
                    }
                }
                (None, false) if with.len() >= MEMBERS => Err(format!("more than {MEMBERS} arrays are interleaved")),
                (None, false) => Ok(()),
                _ => Err(
                    "either part_bytes says how long the arrays in the data are, or several names are joined by ` + `"
                        .to_string(),
                ),
            }
        }
        ProgramChange::Fields {
            element_bytes, groups, ..
        } => {
            in_range("element_bytes", *element_bytes)?;
            check_fields(*element_bytes, groups)
        }
        ProgramChange::Shift { bytes, .. } => in_range("bytes", *bytes),
        ProgramChange::Separate { element_bytes, .. } => in_range("element_bytes", *element_bytes),
        ProgramChange::Tile { bytes, .. } => in_range("bytes", *bytes),
        ProgramChange::Chains { chains, .. } => in_range("chains", *chains),
        ProgramChange::Prefetch { ahead, .. } => in_range("ahead", *ahead),
        ProgramChange::HugePages { .. } | ProgramChange::Interchange { .. } => Ok(()),
    }
}

fn check_fields(element: u64, groups: &[Vec<Field>]) -> Result<(), String> {
    if groups.is_empty() || groups.iter().any(Vec::is_empty) {
        return Err("a group has no fields".to_string());
    }
    let mut fields: Vec<Field> = groups.iter().flatten().copied().collect();
    fields.sort_by_key(|field| field.offset);
    let mut before: Option<Field> = None;
    for field in fields {
        if field.bytes == 0 {
            return Err(format!("field {field} has no bytes"));
        }
        if field.offset.checked_add(field.bytes).is_none_or(|end| end > element) {
            return Err(format!("field {field} lies outside an element of {element} bytes"));
        }
        if let Some(before) = before.filter(|before| before.offset + before.bytes > field.offset) {
            return Err(format!("fields {before} and {field} overlap"));
        }
        before = Some(field);
    }
    Ok(())
}

/// Adds a change to those of a structure. `bytes`: its size, if it has one.
fn add(layout: &mut Layout, change: &ProgramChange, bytes: Option<u64>, line: u64) -> Result<(), String> {
    // The result of earlier changes.
    let before = bytes.map(|bytes| super::shape::Image::new(&layout.shapes, bytes, line));
    let before = match before {
        None => None,
        Some(image) => Some(image.and_then(|image| image.bytes(line)).ok_or_else(too_large)?),
    };
    let whole = |what: &str, unit: u64| match before {
        Some(bytes) if bytes == 0 || bytes % unit != 0 => Err(format!(
            "it has {bytes} bytes, which is no whole number of {what} of {unit} bytes"
        )),
        _ => Ok(()),
    };
    match change {
        ProgramChange::Pad {
            row_bytes, pad_bytes, ..
        } => {
            whole("rows", *row_bytes)?;
            layout.shapes.push(Shape::Pad {
                row: *row_bytes,
                pad: *pad_bytes,
            });
        }
        ProgramChange::Transpose {
            element_bytes, columns, ..
        } => {
            whole("rows", element_bytes * columns)?;
            layout.shapes.push(Shape::Transpose {
                element: *element_bytes,
                columns: *columns,
            });
        }
        ProgramChange::Interleave {
            element_bytes,
            part_bytes: Some(part_bytes),
            ..
        } => {
            // Rows of one array each, stored column by column.
            whole("arrays", *part_bytes)?;
            layout.shapes.push(Shape::Transpose {
                element: *element_bytes,
                columns: part_bytes / element_bytes,
            });
        }
        ProgramChange::Fields {
            element_bytes, groups, ..
        } => {
            whole("elements", *element_bytes)?;
            layout.shapes.push(Shape::fields(*element_bytes, groups));
        }
        ProgramChange::Separate { element_bytes, .. } => {
            whole("elements", *element_bytes)?;
            layout.at_lines = true;
            layout.shapes.push(Shape::Separate {
                element: *element_bytes,
                stride: element_bytes.next_multiple_of(line),
            });
        }
        ProgramChange::Shift { bytes, .. } => layout.shift += bytes,
        ProgramChange::HugePages { .. } => layout.huge_pages = true,
        // Several structures, joined by `Plan::join`; another order of the same references, or of the times at which loads begin.
        ProgramChange::Interleave { .. }
        | ProgramChange::Tile { .. }
        | ProgramChange::Interchange { .. }
        | ProgramChange::Chains { .. }
        | ProgramChange::Prefetch { .. } => {}
    }
    match bytes.map(|bytes| super::shape::Image::new(&layout.shapes, bytes, line)) {
        Some(None) => Err(too_large()),
        _ => Ok(()),
    }
}

/// The message when a block would grow beyond all bounds.
pub fn too_large() -> String {
    "the data would become larger than 16 TiB".to_string()
}
