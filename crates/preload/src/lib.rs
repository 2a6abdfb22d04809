//! The run-time of `domicile run`: it is loaded into a program before its libraries (`LD_PRELOAD`). It gives the data
//! of the unmodified program the cache slots of a plan; or, if the program describes its loops, it gives the arrays of
//! its parallel loops frames of suitable colors, or homes near their users.
//!
//! | file | what it is |
//! | --- | --- |
//! | `start`, `end` | before `main`: instructions, static data; the report, while the program runs and when it ends |
//! | `entry` | the functions that replace `malloc` and similar ones, `mmap`, `operator new` |
//! | `next` | the functions that they replace |
//! | `sites`, `callers` | the site of a call: by return address, by call stack if necessary |
//! | `blocks`, `arena` | blocks of the data sets: whole pages in a range of addresses of their own, so that they are known by address |
//! | `placing`, `data_sets` | the data sets, and each as the library of slots has it |
//! | `cdpc`, `arrays`, `before_main` | the arrays of parallel loops, by which policy they are placed, and when |
//! | `padding` | large blocks at different places of the on-chip cache |
//! | `files` | the run-time's own files, away from the program's |
//! | `reserve` | the run-time's own memory where the program's address space cannot grow |
//! | `aside` | a program that restricts its system calls |
//! | `modules` | where the program's files lie |
//! | `outset` | what is possible only before `main` |
//! | `text` | the program's text, from a copy on its node |
//! | `fork` | what a child of fork has |
//!
//! A call that is for no data set costs two comparisons and a table look-up. This crate contains what is unsafe about
//! replacing the C library's functions, each piece with its reason. The run-time's own memory comes from the next
//! `malloc`, or from a reserve if that has none. After any failure the program runs as without the run-time.

mod arena;
mod arrays;
mod aside;
mod before_main;
mod blocks;
mod callers;
mod cdpc;
mod data_sets;
mod end;
mod entry;
mod files;
mod fork;
mod modules;
mod next;
mod outset;
mod padding;
mod placing;
mod reserve;
mod sites;
mod start;
mod text;

#[global_allocator]
static ALLOCATOR: reserve::Frugal = reserve::Frugal;
