//! The copies of contents: made on their nodes, filled, and sealed before anybody reads them.

use std::io::ErrorKind;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use bytemuck::Pod;
use sys::near::{NearMemory, Sealed};
use sys::this_cpu::ThisCpu;
use sys::{Root, nodes};

use crate::Error;
use crate::places::Places;
use crate::state::{CopyOn, Mode, State, Way, Without};
use crate::told;

/// The machine's nodes, or why there must be one copy.
pub(crate) enum Nodes {
    Several(Places),
    One(String),
}

impl Nodes {
    pub fn of_this_machine() -> Nodes {
        let found = match nodes::nodes(&Root::default()) {
            Ok(found) => found,
            Err(error) => return Nodes::One(format!("the kernel shows no nodes: {error}")),
        };
        match Places::new(&found) {
            None => Nodes::One("no node has cpus, as far as the kernel shows".to_owned()),
            Some(places) if places.nodes().len() == 1 => {
                Nodes::One("one node of this machine has cpus, and no other could be nearer".to_owned())
            }
            Some(places) => Nodes::Several(places),
        }
    }
}

/// How many copies are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    EachNode,
    One,
}

/// A copy. Its memory lives as long as any clone of this.
#[derive(Clone)]
pub(crate) struct Made {
    node: Option<u32>,
    memory: Arc<Counted>,
}

/// A copy's memory, which is reported if requested.
struct Counted(Sealed);

impl Counted {
    fn new(memory: Sealed) -> Counted {
        told::took(Way::Handles, memory.bytes());
        Counted(memory)
    }
}

impl Deref for Counted {
    type Target = Sealed;

    fn deref(&self) -> &Sealed {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        told::gave(Way::Handles, self.0.bytes());
    }
}

/// Copies of the same contents, and the copy that the threads on each cpu read.
pub(crate) struct Copies<T> {
    length: usize,
    writes: u64,
    spread: Spread,
    /// Not empty.
    made: Vec<Made>,
    /// Nodes that got none, and why.
    without: Vec<(u32, String)>,
    /// The first element, for each cpu; not empty. All of `length` elements, in `made`.
    by_cpu: Box<[NonNull<T>]>,
    cpu: ThisCpu,
}

// SAFETY: the pointers are to memory of `made`, which is only read.
unsafe impl<T: Send + Sync> Send for Copies<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Copies<T> {}

impl<T: Pod> Copies<T> {
    /// The first contents, with a copy on each node.
    pub fn first(contents: &[T], nodes: &Nodes) -> Result<Copies<T>, Error> {
        if size_of_val(contents) == 0 {
            return Err(Error::Empty);
        }
        Copies::write(Spread::EachNode, nodes, contents, 0, |_| {})
    }

    /// New contents, made from these by `change`, in separate copies.
    pub fn changed(&self, nodes: &Nodes, change: impl FnOnce(&mut [T])) -> Result<Copies<T>, Error> {
        Copies::write(self.spread, nodes, self.contents(), self.writes + 1, change)
    }

    /// The same contents in one copy for all: that of the calling thread's node (Verghese96, figure 8.1, step 4: one of
    /// the existing copies is designated).
    pub fn collapsed(&self, nodes: &Nodes) -> Copies<T> {
        let own = self.pointer();
        let kept = self.made.iter().find(|made| made.memory.start().cast() == own);
        let made = kept.or(self.made.first()).cloned().into_iter().collect();
        Copies::table(Spread::One, nodes, self.length, self.writes, made, Vec::new())
    }

    /// The same contents with a copy on each node: the existing ones, and new ones.
    pub fn replicated(&self, nodes: &Nodes) -> Result<Copies<T>, Error> {
        let Nodes::Several(places) = nodes else {
            return Ok(self.collapsed(nodes));
        };
        let bytes: &[u8] = bytemuck::cast_slice(self.contents());
        let (mut made, mut without) = (Vec::new(), Vec::new());
        for node in places.nodes() {
            if let Some(there) = self.made.iter().find(|made| made.node == Some(node)) {
                made.push(there.clone());
                continue;
            }
            match on_node(bytes.len(), node) {
                Ok(memory) => made.push(filled(Some(node), memory, bytes)?),
                Err(why) => without.push((node, why)),
            }
        }
        if made.is_empty() {
            made.clone_from(&self.made);
        }
        let (length, writes) = (self.length, self.writes);
        Ok(Copies::table(Spread::EachNode, nodes, length, writes, made, without))
    }

    /// The copy for the cpu that the calling thread is on, and its first element.
    pub fn own(&self) -> (Made, NonNull<T>) {
        let own = self.pointer();
        match self.made.iter().find(|made| made.memory.start().cast() == own) {
            Some(made) => (made.clone(), own),
            // This does not happen: each pointer of the table points into one of them.
            None => (self.made[0].clone(), self.made[0].memory.start().cast()),
        }
    }

    /// All elements, in the copy for the cpu that the calling thread is on.
    pub fn contents(&self) -> &[T] {
        // SAFETY: the pointer is to `length` elements in memory that lives as long as `self` and is never written.
        unsafe { std::slice::from_raw_parts(self.pointer().as_ptr(), self.length) }
    }

    /// The first element in that copy.
    #[inline]
    pub fn pointer(&self) -> NonNull<T> {
        // A cpu that came later reads the first cpu's copy.
        *self.by_cpu.get(self.cpu.number()).unwrap_or(&self.by_cpu[0])
    }

    pub fn length(&self) -> usize {
        self.length
    }

    pub fn state(&self, nodes: &Nodes, readers_pay: bool) -> State {
        let on: Vec<Option<u32>> = self.made.iter().map(|made| made.node).collect();
        let reads = |node: u32| match nodes {
            Nodes::Several(places) => on[places.copy_of(node, &on)],
            Nodes::One(_) => None,
        };
        let copy = |made: &Made| CopyOn {
            node: made.node,
            bytes: made.memory.bytes() as u64,
        };
        State {
            way: Way::Handles,
            mode: match (self.spread, nodes) {
                (Spread::EachNode, Nodes::Several(_)) if self.made.len() > 1 => Mode::CopyOnEachNode,
                _ => Mode::OneCopy,
            },
            bytes: size_of_val(self.contents()) as u64,
            copies: self.made.iter().map(copy).collect(),
            without: self
                .without
                .iter()
                .map(|(node, why)| Without {
                    node: *node,
                    why: why.clone(),
                    reads: reads(*node),
                })
                .collect(),
            why_one: match (self.spread, nodes) {
                (_, Nodes::One(why)) => Some(why.clone()),
                (Spread::One, _) => Some("the copies were collapsed, and not replicated again".to_owned()),
                (Spread::EachNode, _) if self.made.len() == 1 => Some("no other node could have one".to_owned()),
                (Spread::EachNode, _) => None,
            },
            writes: self.writes,
            readers_pay,
        }
    }

    fn write(
        spread: Spread,
        nodes: &Nodes,
        old: &[T],
        writes: u64,
        change: impl FnOnce(&mut [T]),
    ) -> Result<Copies<T>, Error> {
        const { assert!(align_of::<T>() <= sys::memory::PAGE, "copies begin with a page") };
        let bytes = size_of_val(old);
        let (mut empty, mut without) = (Vec::new(), Vec::new());
        if let (Spread::EachNode, Nodes::Several(places)) = (spread, nodes) {
            for node in places.nodes() {
                match on_node(bytes, node) {
                    Ok(memory) => empty.push((Some(node), memory)),
                    Err(why) => without.push((node, why)),
                }
            }
        }
        let mut empty = empty.into_iter();
        let (node, mut first) = match empty.next() {
            Some(first) => first,
            None => {
                let memory = NearMemory::map(bytes, None).map_err(|source| Error::Memory { bytes, source })?;
                (node_of(&memory), memory)
            }
        };
        let contents: &mut [T] = bytemuck::cast_slice_mut(&mut first.as_mut_slice()[..bytes]);
        contents.copy_from_slice(old);
        change(contents);
        let mut made = vec![sealed(node, first)?];
        let first = Arc::clone(&made[0].memory);
        for (node, memory) in empty {
            made.push(filled(node, memory, &first.as_slice()[..bytes])?);
        }
        Ok(Copies::table(spread, nodes, old.len(), writes, made, without))
    }

    /// Pre: a copy is made, and each has `length` elements.
    fn table(
        spread: Spread,
        nodes: &Nodes,
        length: usize,
        writes: u64,
        made: Vec<Made>,
        without: Vec<(u32, String)>,
    ) -> Copies<T> {
        let on: Vec<Option<u32>> = made.iter().map(|made| made.node).collect();
        let by_cpu = match nodes {
            Nodes::Several(places) => places.copy_of_cpus(&on),
            Nodes::One(_) => vec![0],
        };
        let pointer = |copy: usize| made[copy].memory.start().cast();
        Copies {
            length,
            writes,
            spread,
            by_cpu: by_cpu.into_iter().map(pointer).collect(),
            made,
            without,
            cpu: ThisCpu::find(),
        }
    }
}

/// Memory with all its pages on that node, or why there is none.
fn on_node(bytes: usize, node: u32) -> Result<NearMemory, String> {
    let memory = NearMemory::map(bytes, Some(node)).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::Unsupported => {
            format!("memory may not be put on nodes here (mbind): {error}")
        }
        ErrorKind::InvalidInput => "this process may not have memory there (cpuset)".to_owned(),
        _ => format!("{bytes} bytes there: {error}"),
    })?;
    let pages = memory.nodes();
    let pages = pages.map_err(|error| format!("where pages lie may not be asked here (move_pages): {error}"))?;
    match pages.iter().filter(|&&page| page != Ok(node)).count() {
        0 => Ok(memory),
        elsewhere => Err(format!(
            "it has no memory left for it: {elsewhere} of {} pages came to lie elsewhere",
            pages.len()
        )),
    }
}

/// The single node that has all the pages, if known.
fn node_of(memory: &NearMemory) -> Option<u32> {
    let pages = memory.nodes().ok()?;
    let first = (*pages.first()?).ok()?;
    pages.iter().all(|&page| page == Ok(first)).then_some(first)
}

fn filled(node: Option<u32>, mut memory: NearMemory, bytes: &[u8]) -> Result<Made, Error> {
    memory.as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
    sealed(node, memory)
}

fn sealed(node: Option<u32>, memory: NearMemory) -> Result<Made, Error> {
    let bytes = memory.bytes();
    let memory = memory.seal().map_err(|source| Error::Memory { bytes, source })?;
    let memory = Arc::new(Counted::new(memory));
    Ok(Made { node, memory })
}
