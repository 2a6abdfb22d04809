//! Results, made readable: tables for terminals and one self-contained HTML page.
//!
//! Everything here is pure: data in, text out. The data are the JSON documents that `simulate` and
//! `advise` print ([`Outcome`], [`Advice`]), so that a saved result is shown exactly as a fresh one.
#![forbid(unsafe_code)]

mod advice;
mod advice_text;
mod bar;
mod document;
mod html;
mod lists;
mod number;
mod outcome;
mod outcome_text;
mod slots;
mod split_text;
mod table;
mod traffic_text;
mod verdict;
mod work;

pub use advice::{Advice, CacheFacts, Facts, MachineFacts, Share};
pub use advice_text::advice;
pub use document::{Document, Unreadable};
pub use html::{advice_page, outcomes_page};
pub use lists::{machines, policies};
pub use number::{bytes, count, nanoseconds, percent};
pub use outcome::{
    Bus, Cache, Collision, Memory, Outcome, Prefetches, Side, Stall, StallByClass, Structure, Time, Tlb, Work,
};
pub use outcome_text::outcomes;
pub use slots::{SlotAdvice, SlotData, SlotsTold};
pub use table::{Cell, Column, Table};
pub use verdict::verdict;
pub use work::{CacheChange, Change, WorkAdvice};
