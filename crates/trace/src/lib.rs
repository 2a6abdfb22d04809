//! Reference streams: what a program touched, thread by thread, and what gives it meaning.
#![forbid(unsafe_code)]

mod model;

pub use model::{
    Allocation, Array, Event, Frame, Header, Location, Module, Op, Process, Ref, Site, SiteId, Stack, StackId, Symbol,
    Thread, ThreadId, Timed,
};
