//! Compiler-directed page coloring (Bugnion96, section 5): a preferred color for each page of a parallel program, from
//! its compiler's description of each array in each parallel loop.
//!
//! A summary says how one loop uses one array ([`Loop`], section 5.1). [`touched`] makes pages of it. [`hints`] takes
//! the five steps of section 5.2, each in a file of its own:
//!
//! 1. `segments`: pages of one array that the same cpus touch, in maximal runs; segments of the same cpus are a set;
//! 2. `sets`: a path over the sets, so that neighbours share cpus;
//! 3. `together`: a path over the segments of a set, so that arrays used together are close;
//! 4. `cyclic`: the starting points of pages within their segment, so that conflicting starts are far apart in the
//!    cache;
//! 5. `colors`: colors in turn.
//!
//! Then `fit` keeps the paper's promise: no cpu whose pages fit in its cache has two of one color. If the steps
//! have kept it, nothing changes.
//!
//! [`weighed`] compares that with the results of page coloring and bin hopping, and chooses for each set of arrays: the
//! five steps may lose if the pages of each cpu do not fit.
//!
//! [`Program`] collects the loops that a program describes, each once, for the simulated world and for the live one.
//!
//! [`homes`] continues from the first step with memory nodes instead of colors: it finds where each page should live.
//!
//! [`order`] takes the steps from the second on, for segments that are known otherwise: from a trace of a program that
//! no compiler described.

mod bytes;
mod coloring;
mod colors;
mod cyclic;
mod fit;
mod hints;
mod homes;
mod iterations;
mod nest;
mod path;
mod program;
mod segments;
mod sets;
mod steps;
mod summary;
mod together;
mod touch_order;
mod touched;
mod wanted;
mod weigh;

pub use hints::{Array, Brought, Choice, Hint, Hints, Machine, NamedChoice, Placed, Set, Weighed};
pub use homes::{Home, homes};
pub use program::{Added, Program, Room};
pub use segments::{Segment, Segments, segments};
pub use steps::{hints, order};
pub use summary::{Access, Communication, Direction, Inner, Loop, Malformed, Schedule, Summary};
pub use touch_order::{first_touches, in_step};
pub use touched::{Touched, pages, touched};
pub use wanted::{PageColors, Source, Wanted};
pub use weigh::{predicted, weighed, weighed_order};
