//! Domicile as a library for C, C++ and Fortran: `libdomicile`, with the headers `domicile/th.h`,
//! `domicile/ulcc.h`, `domicile/summary.h` and `domicile/domicile.h` and the Fortran modules `domicile_th`, `domicile` and
//! `domicile_slots`.
//!
//! | file | what it is |
//! | --- | --- |
//! | `th` | the paper's three calls (Philbin96, section 3.1) |
//! | `fortran` | the same for the module `domicile_th` |
//! | `companions` | calls that belong to these but are not in the paper |
//! | `program` | the order of the whole program that they share |
//! | `order`, `fork`, `ask` | orders as objects, with errors |
//! | `fortran_order` | the same for the module `domicile` |
//! | `structures`, `sized`, `error` | inputs and outputs |
//! | `plan`, `cache` | attributes checked, defaults filled in |
//! | `ulcc` | the functions of ULCC (Ding11, section 3.1) |
//! | `slots` | cache slots as objects, with errors |
//! | `replicated` | data with a copy on each memory node, for threads |
//! | `shared_replicas` | the same for processes, at the same address in each |
//! | `ship` | work that goes to the cache that holds its data |
//! | `fortran_ship` | the same for the module `domicile` |
//! | `fortran_slots` | the same for the module `domicile_slots` |
//! | `summary`, `phase` | what a program reports about its parallel loops and its progress |
//! | `mappings` | `mremap` and `move_pages`, which wait for pages that are being moved |
//! | `handle`, `call` | a scheduler as C holds it, a thread as C sees it |
//!
//! The safe library `threads` is the scheduler, and `policy::order` assigns threads to bins. This crate contains what
//! is unsafe about calls from C, each piece with its reason. No panic leaves it: a panic becomes an error code, or ends
//! the program if the call returns nothing.

pub mod ask;
mod cache;
mod call;
pub mod companions;
pub mod error;
pub mod fork;
pub mod fortran;
pub mod fortran_order;
pub mod fortran_ship;
pub mod fortran_slots;
mod handle;
mod mappings;
pub mod order;
pub mod phase;
mod plan;
mod program;
pub mod replicated;
pub mod shared_replicas;
pub mod ship;
mod sized;
pub mod slots;
mod stderr;
pub mod structures;
pub mod summary;
pub mod th;
pub mod ulcc;
