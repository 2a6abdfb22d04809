//! The outcome of coloring and repairing.

use std::fmt;
use std::time::Duration;

/// The result of [`color`](crate::Engine::color).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Pages that were to have a color.
    pub pages: usize,
    /// The part of these pages that had frames of a wished color already and kept them.
    pub kept: usize,
    /// Pages that were absent before the call and have a frame of a color wished for now. They may have
    /// had another in between: without a supply it is often cheaper to take the kernel's frames and
    /// exchange wrong ones.
    pub filled: usize,
    /// Pages that got a frame of a color wished for in exchange for theirs.
    pub exchanged: usize,
    /// The pages of `filled` and `exchanged` whose frames came from the first supply (the daemon).
    pub supplied: usize,
    /// Pages that do not have a color wished for, and why; their content is right.
    pub left: Vec<Left>,
    /// True if the range is locked in memory.
    pub locked: bool,
    /// The longest time that pages were in flight, while threads that touched them waited.
    pub longest: Duration,
}

impl Done {
    /// Returns whether every page has a color wished for.
    pub fn complete(&self) -> bool {
        self.left.is_empty()
    }
}

/// A page that could not be colored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    pub address: usize,
    pub why: Why,
}

/// Why a page has no color wished for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A device or the kernel holds its frame (direct I/O, io_uring, vmsplice).
    Pinned,
    /// The program unmapped, moved, emptied or protected it meanwhile.
    Changed,
    /// Something that cannot wait for a page lives there: this thread's stack, variables and alternate stack, the
    /// engine's own, or the descriptor or a held robust mutex of any thread.
    Own,
    /// The frame that came was of another color, and so were those tried after it.
    Miscolored,
    /// Another error of the kernel, by its number.
    Kernel(i32),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Pinned => f.write_str("a device or the kernel holds its frame"),
            Why::Changed => f.write_str("the program unmapped, moved, emptied or protected it meanwhile"),
            Why::Own => f.write_str("what cannot wait for a page lives there: the engine, or a thread's descriptor"),
            Why::Miscolored => f.write_str("no frame of the right color could be brought there"),
            Why::Kernel(number) => write!(f, "{}", std::io::Error::from_raw_os_error(*number)),
        }
    }
}

/// The colors of the pages of a range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    pub pages: usize,
    /// Pages of a color of the set.
    pub right: usize,
    /// Pages of another color.
    pub wrong: usize,
    /// Pages without a frame: never touched, or swapped.
    pub absent: usize,
    /// Pages whose color is not known: the page map hides frames, and the supply does not know them.
    pub unknown: usize,
    /// Pages of each color.
    pub by_color: Vec<u64>,
}

/// The findings and repairs of [`repair`](crate::Engine::repair).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Pages that had a frame of another color, or one that the supply does not know of.
    pub wrong: usize,
    pub done: Done,
}
