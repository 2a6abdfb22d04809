//! The arrays of a program's parallel loops, as one of two policies places them: in frames of colors, or on nodes.

use live::Others;
use live::cdpc::Coloring;
use live::summary_homes::SummaryHomes;
use policy::cdpc::Loop;

pub enum Arrays {
    Colored(Box<Coloring>),
    Homed(Box<SummaryHomes>),
}

impl Arrays {
    /// The loops so far.
    pub fn loops(&self) -> &[Loop] {
        match self {
            Arrays::Colored(coloring) => coloring.loops(),
            Arrays::Homed(homes) => homes.loops(),
        }
    }

    pub fn is_started(&self) -> bool {
        match self {
            Arrays::Colored(coloring) => coloring.is_started(),
            Arrays::Homed(homes) => homes.is_started(),
        }
    }

    /// Returns true if initialised arrays must leave the program's file. Written pages do so by themselves, and get the
    /// requested frame; only a page without a file can be given a frame of a color.
    pub fn leave_files(&self) -> bool {
        matches!(self, Arrays::Colored(_))
    }

    /// # Safety
    /// As for [`Coloring::start`].
    pub unsafe fn start(&mut self, others: Others) {
        match self {
            // SAFETY: the caller's promise.
            Arrays::Colored(coloring) => unsafe { coloring.start(others) },
            Arrays::Homed(homes) => homes.start(),
        }
    }

    /// # Safety
    /// As for [`Coloring::hear`].
    pub unsafe fn hear(&mut self, described: Loop) {
        match self {
            // SAFETY: the caller's promise.
            Arrays::Colored(coloring) => unsafe { coloring.hear(described) },
            Arrays::Homed(homes) => homes.hear(described),
        }
    }

    /// Returns true if a loop was described before.
    pub fn knows(&self, described: &Loop) -> bool {
        match self {
            Arrays::Colored(coloring) => coloring.knows(described),
            Arrays::Homed(homes) => homes.knows(described),
        }
    }

    /// Returns true if describing this loop now would do more than count it.
    pub fn has_work(&mut self, described: &Loop) -> bool {
        match self {
            Arrays::Colored(coloring) => coloring.has_work(described),
            Arrays::Homed(homes) => homes.has_work(described),
        }
    }

    pub fn heard_again(&mut self) {
        match self {
            Arrays::Colored(coloring) => coloring.heard_again(),
            Arrays::Homed(homes) => homes.heard_again(),
        }
    }

    /// Passes over a loop, or those so far, because nothing can be done now; `why` is the reason.
    pub fn pass_over(&mut self, described: Option<Loop>, why: &'static str) {
        match self {
            Arrays::Colored(coloring) => coloring.pass_over(described, why),
            Arrays::Homed(homes) => homes.pass_over(described, why),
        }
    }

    pub fn refuse(&mut self, why: String) {
        match self {
            Arrays::Colored(coloring) => coloring.refuse(why),
            Arrays::Homed(homes) => homes.refuse(why),
        }
    }

    /// Bytes that describing a loop may take, or all that is known together.
    pub fn memory(&self, described: Option<&Loop>) -> usize {
        match self {
            Arrays::Colored(coloring) => coloring.memory(described),
            Arrays::Homed(homes) => homes.memory(described),
        }
    }
}
