//! A source line and the structure that it waits for, as the rules see them.

use machine::{Cache, Index, Kind, Machine};
use results::{AddressSource, CLASSES, CauseEvidence, FieldUse, StructureKind};
use sim::structures::Description;
use sim::{Addresses, Evidence, Place, Step, StructureEvidence};

/// A step with at least this part of all steps is the walk's: in a loop over rows of three or more elements it is.
pub const DOMINANT: f64 = 0.6;
/// How many steps must have been seen for a statement about them.
const SEEN: u64 = 32;

pub struct View<'a> {
    evidence: &'a Evidence,
    pub place: &'a Place,
    pub structure: &'a StructureEvidence,
    pub machine: &'a Machine,
    pub line_bytes: u64,
    /// The cache whose misses cost most.
    pub cache: Option<&'a Cache>,
    /// Its misses by class, as parts of all, in the order of [`CLASSES`].
    pub classes: [f64; 5],
    /// True if it is the outermost one.
    pub outermost: bool,
}

impl<'a> View<'a> {
    pub fn new(evidence: &'a Evidence, place: &'a Place, machine: &'a Machine) -> View<'a> {
        let mut view = View {
            evidence,
            place,
            structure: &evidence.structures[place.structure],
            machine,
            line_bytes: evidence.line_bytes,
            cache: None,
            classes: [0.0; 5],
            outermost: false,
        };
        let data: Vec<&Cache> = machine
            .caches
            .iter()
            .filter(|cache| cache.kind != Kind::Instruction)
            .collect();
        let misses = |at: usize| {
            let of = place.caches.iter().find(|of| of.name == data[at].name);
            of.map(|of| (of.misses, of.totals().classes))
        };
        // Misses of a level that the next one served, at the next one's cost.
        let cost = |at: usize| {
            let (missed, _) = misses(at).unwrap_or_default();
            let beyond = if at + 1 < data.len() {
                misses(at + 1).unwrap_or_default().0
            } else {
                0
            };
            let price = data.get(at + 1).map_or(machine.memory.local_ns, |next| next.hit_ns);
            missed.saturating_sub(beyond) as f64 * price
        };
        let costliest = (0..data.len()).max_by(|&a, &b| cost(a).total_cmp(&cost(b)));
        if let Some(at) = costliest
            && let Some((all, classes)) = misses(at).filter(|(all, _)| *all > 0)
        {
            view.cache = Some(data[at]);
            view.outermost = at + 1 == data.len();
            view.classes = classes.map(|class| class.unwrap_or(0) as f64 / all as f64);
        }
        view
    }

    /// `file:line`, without folders.
    pub fn source(&self) -> Option<String> {
        source(self.place)
    }

    /// The walk's step, if it has one.
    pub fn step(&self) -> Option<Step> {
        self.place.steps.first().copied().filter(|step| step.share >= DOMINANT)
    }

    /// True if enough of its steps were seen to trust a [`View::step`] of `None`.
    pub fn seen(&self) -> bool {
        self.place.steps_seen >= SEEN
    }

    /// Bytes of a line that are used from one fetch to the next, if that matters.
    pub fn used(&self) -> Option<f64> {
        match self.outermost {
            true => self.place.used_far.or(self.place.used_near),
            false => self.place.used_near,
        }
    }

    /// True if the program's author can lay it out: not a stack, a file, or memory without a name.
    pub fn can_change(&self) -> bool {
        can_change(&self.structure.what)
    }

    /// Other data at a constant distance from what it accesses that the program's author can lay out.
    pub fn together(&self) -> Vec<&Description> {
        let others = self
            .place
            .together
            .iter()
            .map(|&other| &self.evidence.structures[other].what);
        others.filter(|what| can_change(what)).collect()
    }

    /// True if a cache's sets are those of virtual addresses: by its index, or because they lie within a page.
    pub fn is_virtual(&self, cache: &Cache) -> bool {
        let way = cache.bytes / u64::from(cache.ways);
        cache.index == Index::Virtual || (cache.hash.is_none() && way <= self.machine.page_bytes)
    }

    fn addresses(&self) -> Option<AddressSource> {
        match self.place.addresses {
            Addresses::Unknown => None,
            Addresses::Computed => Some(AddressSource::Computed),
            Addresses::Loaded(_) => Some(AddressSource::Loaded),
            Addresses::Chased => Some(AddressSource::Chased),
        }
    }

    /// The evidence that all rules give.
    pub fn evidence(&self) -> CauseEvidence {
        let largest = (0..CLASSES.len()).max_by(|&a, &b| self.classes[a].total_cmp(&self.classes[b]));
        let largest = largest.filter(|&class| self.classes[class] > 0.0);
        let step = self.place.steps.first().filter(|_| self.seen());
        CauseEvidence {
            step_bytes: step.map(|step| step.bytes),
            step_share: step.map(|step| step.share),
            line_bytes: Some(self.line_bytes),
            used_bytes: self.used(),
            cache: self.cache.map(|cache| cache.name.clone()),
            class: largest.map(|class| CLASSES[class].to_string()),
            class_share: largest.map(|class| self.classes[class]),
            addresses: self.addresses(),
            loaded_at: self.place.loaded_at.clone(),
            ..CauseEvidence::default()
        }
    }

    /// The same with the known properties of elements.
    pub fn evidence_of_elements(&self) -> CauseEvidence {
        let fields = self.place.fields.iter().map(|field| FieldUse {
            offset: field.offset,
            bytes: field.bytes.into(),
            share: field.share,
        });
        CauseEvidence {
            used_by_it_bytes: self.place.used_own,
            used_ever_bytes: self.structure.used_ever,
            element_bytes: self.structure.element,
            fields: fields.collect(),
            ..self.evidence()
        }
    }
}

fn can_change(what: &Description) -> bool {
    use StructureKind::{Array, Heap, Symbol};
    matches!(what.kind, Array | Heap | Symbol)
}

/// Bytes in words, with one decimal if they are not whole.
pub fn in_bytes(bytes: f64) -> String {
    match bytes {
        bytes if (bytes - bytes.round()).abs() < 0.05 => format!("{bytes:.0}"),
        bytes => format!("{bytes:.1}"),
    }
}

/// A place's `file:line`, without folders.
pub fn source(place: &Place) -> Option<String> {
    let file = place.file.as_ref()?;
    Some(format!("{}:{}", file.rsplit('/').next().unwrap_or(file), place.line?))
}
