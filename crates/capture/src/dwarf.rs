//! Variables in debug information: where they were declared, and the fields of their types.

use std::collections::HashMap;

use gimli::{AttributeValue, DebuggingInformationEntry, EndianSlice, LittleEndian, Operation, Unit, UnitOffset};
use object::{Object, ObjectSection};

type Bytes<'a> = EndianSlice<'a, LittleEndian>;
type Dwarf<'a> = gimli::Dwarf<Bytes<'a>>;

/// The most fields described of one variable, and the deepest nesting.
const MOST_FIELDS: usize = 128;
const DEPTH: usize = 6;
/// Variables taken from one file.
const MOST_VARIABLES: usize = 1 << 17;
/// The most debug information that is walked (line numbers of code are still found).
const MOST_INFO: u64 = 1 << 30;

/// A variable at a fixed address of its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variable {
    pub addr: u64,
    pub file: Option<String>,
    pub line: Option<u32>,
    /// Offset, bytes, path from the variable (`.hits[3].count`).
    pub fields: Vec<(u64, u64, String)>,
}

/// A type as far as its fields matter.
#[derive(Clone, Debug)]
enum Shape {
    /// Bytes.
    Plain(u64),
    /// Elements, and what they are.
    Array(u64, UnitOffset),
    /// Bytes, and members: name, offset, type.
    Struct(u64, Vec<(String, u64, UnitOffset)>),
    /// Another name for a type.
    Alias(UnitOffset),
}

/// The variables in an executable's (or its debug file's) debug information. Entries that cannot be
/// understood are left out.
pub fn variables(bytes: &[u8]) -> Vec<Variable> {
    let mut out = Vec::new();
    let Ok(file) = object::File::parse(bytes) else {
        return out;
    };
    let large = file
        .section_by_name(".debug_info")
        .is_some_and(|s| s.size() > MOST_INFO);
    if large || !file.is_little_endian() {
        return out;
    }
    let sections = gimli::DwarfSections::load(|id| -> Result<std::borrow::Cow<'_, [u8]>, gimli::Error> {
        let section = file.section_by_name(id.name());
        Ok(section.and_then(|s| s.uncompressed_data().ok()).unwrap_or_default())
    });
    let Ok(sections) = sections else { return out };
    let dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        if let Ok(unit) = dwarf.unit(header) {
            let _ = Walk {
                dwarf: &dwarf,
                unit: &unit,
                shapes: HashMap::new(),
            }
            .variables(&mut out);
        }
        if out.len() >= MOST_VARIABLES {
            break;
        }
    }
    out
}

/// A compilation unit being walked.
struct Walk<'w, 'a> {
    dwarf: &'w Dwarf<'a>,
    unit: &'w Unit<Bytes<'a>>,
    shapes: HashMap<UnitOffset, Option<Shape>>,
}

type Entry<'a> = DebuggingInformationEntry<Bytes<'a>>;

impl<'a> Walk<'_, 'a> {
    fn variables(&mut self, out: &mut Vec<Variable>) -> Result<(), gimli::Error> {
        let unit = self.unit;
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            if entry.tag() != gimli::DW_TAG_variable {
                continue;
            }
            if let Some(addr) = self.fixed_address(entry) {
                let variable = self.variable(addr, entry);
                out.push(variable);
                if out.len() >= MOST_VARIABLES {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The address of a variable whose location is a constant address.
    fn fixed_address(&self, entry: &Entry<'a>) -> Option<u64> {
        let AttributeValue::Exprloc(expression) = entry.attr_value(gimli::DW_AT_location)? else {
            return None;
        };
        let mut operations = expression.operations(self.unit.encoding());
        let addr = match operations.next().ok()?? {
            Operation::Address { address } => address,
            Operation::AddressIndex { index } => self.dwarf.address(self.unit, index).ok()?,
            _ => return None,
        };
        operations.next().ok()?.is_none().then_some(addr)
    }

    fn variable(&mut self, addr: u64, entry: &Entry<'a>) -> Variable {
        // A separate definition contains little; the declaration has the rest.
        let declaration = [gimli::DW_AT_specification, gimli::DW_AT_abstract_origin]
            .into_iter()
            .find_map(|at| self.offset(entry, at))
            .and_then(|offset| self.unit.entry(offset).ok());
        let find = |at| {
            entry
                .attr_value(at)
                .or_else(|| declaration.as_ref().and_then(|d| d.attr_value(at)))
        };
        let file = find(gimli::DW_AT_decl_file).and_then(|value| self.file(value));
        let line = find(gimli::DW_AT_decl_line)
            .and_then(|v| v.udata_value())
            .and_then(|l| u32::try_from(l).ok());
        let kind = self
            .offset(entry, gimli::DW_AT_type)
            .or_else(|| declaration.as_ref().and_then(|d| self.offset(d, gimli::DW_AT_type)));
        let mut fields = Vec::new();
        if let Some(kind) = kind {
            self.fields(kind, 0, String::new(), DEPTH, &mut fields);
        }
        // One unnamed field is the variable itself.
        fields.retain(|(_, _, path)| !path.is_empty());
        Variable {
            addr,
            file,
            line,
            fields,
        }
    }

    fn offset(&self, entry: &Entry<'a>, at: gimli::DwAt) -> Option<UnitOffset> {
        match entry.attr_value(at)? {
            AttributeValue::UnitRef(offset) => Some(offset),
            AttributeValue::DebugInfoRef(offset) => offset.to_unit_offset(&self.unit.header),
            _ => None,
        }
    }

    fn file(&self, value: AttributeValue<Bytes<'a>>) -> Option<String> {
        let index = match value {
            AttributeValue::FileIndex(index) => index,
            other => other.udata_value()?,
        };
        let program = self.unit.line_program.as_ref()?;
        let entry = program.header().file(index)?;
        let text = |v| {
            self.dwarf
                .attr_string(self.unit, v)
                .ok()
                .map(|s| s.to_string_lossy().into_owned())
        };
        let name = text(entry.path_name())?;
        if name.starts_with('/') {
            return Some(name);
        }
        let folder = entry
            .directory(program.header())
            .and_then(text)
            .filter(|f| !f.is_empty());
        let base = self.unit.comp_dir.map(|d| d.to_string_lossy().into_owned());
        let folder = match (folder, base) {
            (Some(folder), _) if folder.starts_with('/') => folder,
            (Some(folder), Some(base)) if folder != "." => format!("{base}/{folder}"),
            (Some(folder), None) => folder,
            (_, Some(base)) => base,
            (None, None) => return Some(name),
        };
        Some(format!("{folder}/{name}"))
    }

    /// Appends the leaves of the type at `kind`, which lies at `at` under the name `path`. Returns
    /// its size in bytes.
    fn fields(
        &mut self,
        kind: UnitOffset,
        at: u64,
        path: String,
        depth: usize,
        out: &mut Vec<(u64, u64, String)>,
    ) -> u64 {
        let size = self.size(kind, DEPTH);
        if out.len() >= MOST_FIELDS {
            return size;
        }
        match self.shape(kind) {
            Some(Shape::Alias(of)) if depth > 0 => {
                self.fields(of, at, path, depth - 1, out);
            }
            Some(Shape::Struct(_, members)) if depth > 0 => {
                for (name, offset, of) in members {
                    let inner = if name.is_empty() {
                        path.clone()
                    } else {
                        format!("{path}.{name}")
                    };
                    self.fields(of, at.saturating_add(offset), inner, depth - 1, out);
                }
            }
            Some(Shape::Array(count, of)) if depth > 0 && self.has_fields(of, DEPTH) => {
                let step = self.size(of, DEPTH);
                for index in 0..count {
                    if out.len() >= MOST_FIELDS {
                        break;
                    }
                    let here = at.saturating_add(index.saturating_mul(step));
                    self.fields(of, here, format!("{path}[{index}]"), depth - 1, out);
                }
            }
            _ => out.push((at, size, path)),
        }
        size
    }

    /// True if a type is a struct under its other names.
    fn has_fields(&mut self, kind: UnitOffset, depth: usize) -> bool {
        match self.shape(kind) {
            Some(Shape::Struct(..)) => true,
            Some(Shape::Alias(of) | Shape::Array(_, of)) if depth > 0 => self.has_fields(of, depth - 1),
            _ => false,
        }
    }

    fn size(&mut self, kind: UnitOffset, depth: usize) -> u64 {
        match self.shape(kind) {
            Some(Shape::Plain(bytes) | Shape::Struct(bytes, _)) => bytes,
            Some(Shape::Alias(of)) if depth > 0 => self.size(of, depth - 1),
            Some(Shape::Array(count, of)) if depth > 0 => count.saturating_mul(self.size(of, depth - 1)),
            _ => 0,
        }
    }

    fn shape(&mut self, kind: UnitOffset) -> Option<Shape> {
        if let Some(known) = self.shapes.get(&kind) {
            return known.clone();
        }
        let shape = self.read_shape(kind);
        self.shapes.insert(kind, shape.clone());
        shape
    }

    fn read_shape(&self, kind: UnitOffset) -> Option<Shape> {
        let mut tree = self.unit.entries_tree(Some(kind)).ok()?;
        let node = tree.root().ok()?;
        let entry = node.entry();
        let bytes = entry
            .attr_value(gimli::DW_AT_byte_size)
            .and_then(|v| v.udata_value())
            .unwrap_or(0);
        match entry.tag() {
            gimli::DW_TAG_base_type | gimli::DW_TAG_enumeration_type => Some(Shape::Plain(bytes)),
            gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type => {
                Some(Shape::Plain(if bytes > 0 { bytes } else { 8 }))
            }
            gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_atomic_type
            | gimli::DW_TAG_restrict_type => Some(Shape::Alias(self.offset(entry, gimli::DW_AT_type)?)),
            gimli::DW_TAG_union_type => Some(Shape::Plain(bytes)),
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => {
                let mut members = Vec::new();
                let mut children = node.children();
                while let Ok(Some(child)) = children.next() {
                    let entry = child.entry();
                    if !matches!(entry.tag(), gimli::DW_TAG_member | gimli::DW_TAG_inheritance) {
                        continue;
                    }
                    // Static members have no place in the struct.
                    let place = entry.attr_value(gimli::DW_AT_data_member_location);
                    let Some(offset) = place.and_then(|v| v.udata_value()) else {
                        continue;
                    };
                    let Some(of) = self.offset(entry, gimli::DW_AT_type) else {
                        continue;
                    };
                    let name = entry.attr_value(gimli::DW_AT_name);
                    let name = name.and_then(|v| self.dwarf.attr_string(self.unit, v).ok());
                    let name = name.map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
                    members.push((name, offset, of));
                    if members.len() >= MOST_FIELDS {
                        break;
                    }
                }
                Some(Shape::Struct(bytes, members))
            }
            gimli::DW_TAG_array_type => {
                let of = self.offset(entry, gimli::DW_AT_type)?;
                let mut count = 1u64;
                let mut children = node.children();
                while let Ok(Some(child)) = children.next() {
                    let value = |at| {
                        child
                            .entry()
                            .attr_value(at)
                            .and_then(|v: AttributeValue<_>| v.udata_value())
                    };
                    let length = value(gimli::DW_AT_count)
                        .or_else(|| value(gimli::DW_AT_upper_bound).map(|upper| upper.saturating_add(1)));
                    count = count.saturating_mul(length.unwrap_or(0));
                }
                Some(Shape::Array(count, of))
            }
            _ => Some(Shape::Plain(bytes)),
        }
    }
}
