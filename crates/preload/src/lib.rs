//! The run-time of `domicile run`: loaded into a program before its libraries (`LD_PRELOAD`), it gives
//! the program's data the cache slots of a plan, without a change to the program; or the arrays of its parallel loops
//! frames of the colors that suit these, or homes near their users, if the program describes its loops.
//!
//! | file | what it is |
//! | --- | --- |
//! | `start`, `end` | before `main`: instructions, static data; the report, while the program runs and when it ends |
//! | `entry` | the functions that take the place of `malloc` and its kin, `mmap`, `operator new` |
//! | `next` | the functions that they stand in front of |
//! | `sites`, `callers` | whose call it is: by return address, by call stack where that is needed |
//! | `blocks`, `arena` | blocks of the data sets: whole pages in a range of addresses of their own, so that they are known by address |
//! | `placing`, `data_sets` | the data sets, and each as the library of slots has it |
//! | `cdpc`, `arrays`, `before_main` | the arrays of parallel loops, by which policy they are placed, and when |
//! | `padding` | large blocks at different places of the on-chip cache |
//! | `files` | the run-time's own files, out of the program's way |
//! | `reserve` | the run-time's own memory where the program's address space cannot grow |
//! | `aside` | a program that restricts its system calls |
//! | `modules` | where the program's files lie |
//! | `outset` | what can be said and done before `main` alone |
//! | `text` | the program's text, from a copy on its node |
//! | `fork` | what a child of fork has |
//!
//! A call that is no data set's passes with two comparisons and a look into a table. What is unsafe about
//! standing in front of the C library is here, each piece with its reason. The run-time's own memory comes
//! from the next `malloc`, or from a reserve where that has none, and whatever goes wrong leaves the program as it would be without it.

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
