//! The only floor of Domicile that talks to Linux.
//!
//! Every function states what it needs and what it promises. Files are read below a [`Root`], so
//! that the captured tree of another machine can stand in for this one.

pub mod affinity;
pub mod arrays;
pub mod awake;
pub mod balancing;
pub mod barriers;
pub mod blocks;
pub mod cache_domains;
pub mod caches;
pub mod cancellation;
pub mod changes;
pub mod chase;
pub mod clock;
pub mod containers;
pub mod cpuinfo;
pub mod cpus;
pub mod cpusets;
pub mod damon;
pub mod descriptors;
pub mod faults;
pub mod forks;
pub mod frames;
pub mod groups;
pub mod handover;
pub mod headroom;
pub mod home;
pub mod in_place;
pub mod instructions;
pub mod kept;
pub mod kernel;
pub mod listing;
pub mod mappings;
pub mod mbind;
pub mod memory;
pub mod move_pages;
pub mod near;
pub mod nodes;
pub mod numa_maps;
pub mod owed;
pub mod packet;
pub mod pages;
pub mod peer;
pub mod perf;
pub mod perf_devices;
pub mod pressure;
pub mod processes;
pub mod protection_keys;
pub mod ready;
pub mod referenced;
pub mod requests;
pub mod resctrl;
mod root;
pub mod samples;
pub mod service;
pub mod shared;
pub mod shared_pages;
pub mod signals;
pub mod soft_dirty;
pub mod supervise;
pub mod tasks;
pub mod this_cpu;
#[cfg(target_arch = "x86_64")]
pub mod traced;

pub use root::{Problem, Root, SysError};
