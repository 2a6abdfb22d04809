//! The present parts of replicated data, and their costs.

use std::fmt;

/// How readers find their copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The threads of a process, by handles.
    Handles,
    /// Processes, by their mappings.
    Mappings,
}

/// The existing copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One on each node that has cpus, as far as the nodes have memory.
    CopyOnEachNode,
    /// One for all: by request, or because more are impossible; [`State::why_one`] says which.
    OneCopy,
}

/// A copy and its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyOn {
    /// The kernel's number of the node that has all its pages; `None`: not known, or several.
    pub node: Option<u32>,
    /// Bytes of memory: whole pages.
    pub bytes: u64,
}

/// A node with cpus that has no copy, though it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Without {
    pub node: u32,
    pub why: String,
    /// The node of the copy that its threads read.
    pub reads: Option<u32>,
}

/// The state of replicated data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct State {
    pub way: Way,
    pub mode: Mode,
    /// Bytes of the contents, counted once.
    pub bytes: u64,
    /// Not empty.
    pub copies: Vec<CopyOn>,
    /// Nodes without a copy, in ascending order.
    pub without: Vec<Without>,
    /// Why there is one copy for all, if there is.
    pub why_one: Option<String>,
    /// How often contents were written.
    pub writes: u64,
    /// Entering a region takes a full memory barrier, since `membarrier(2)` does not work here.
    pub readers_pay: bool,
}

impl State {
    /// Bytes of memory of all copies. During a write both the old and the new ones count.
    pub fn memory(&self) -> u64 {
        self.copies.iter().map(|copy| copy.bytes).sum()
    }

    /// Bytes of memory beyond those of one copy: the cost of the replicas.
    pub fn extra(&self) -> u64 {
        self.memory() - self.copies.first().map_or(0, |copy| copy.bytes)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<String> = self
            .copies
            .iter()
            .map(|copy| {
                copy.node
                    .map_or("a node not known".to_owned(), |node| format!("node {node}"))
            })
            .collect();
        f.write_str(match self.way {
            Way::Handles => "handles",
            Way::Mappings => "mappings",
        })?;
        match self.mode {
            Mode::CopyOnEachNode => write!(f, ": copies on {}", nodes.join(", "))?,
            Mode::OneCopy => write!(f, ": one copy, on {}", nodes.join(", "))?,
        }
        write!(
            f,
            "; {} bytes of memory, of which {} for replicas",
            self.memory(),
            self.extra()
        )?;
        if let Some(why) = &self.why_one {
            write!(f, "\none copy for all: {why}")?;
        }
        for without in &self.without {
            write!(f, "\nnode {} has no copy: {}", without.node, without.why)?;
            if let Some(node) = without.reads {
                write!(f, "; its threads read the one on node {node}")?;
            }
        }
        if self.readers_pay {
            f.write_str("\neach entry takes a full memory barrier: membarrier(2) does not work here")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_what_one_copy_would_not_take() {
        let copy = |node| CopyOn {
            node: Some(node),
            bytes: 8192,
        };
        let state = State {
            way: Way::Handles,
            mode: Mode::CopyOnEachNode,
            bytes: 5000,
            copies: vec![copy(0), copy(2)],
            without: vec![Without {
                node: 1,
                why: "it is full".to_owned(),
                reads: Some(2),
            }],
            why_one: None,
            writes: 0,
            readers_pay: false,
        };
        assert_eq!((state.memory(), state.extra()), (16384, 8192));
        assert_eq!(
            state.to_string(),
            "handles: copies on node 0, node 2; 16384 bytes of memory, of which 8192 for replicas\n\
             node 1 has no copy: it is full; its threads read the one on node 2"
        );
    }
}
