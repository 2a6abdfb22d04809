//! `domicile run` on programs in C, C++ and Fortran, and on Debian's own: nothing that they compute changes, and their
//! data lies where the plan says.

mod arrays;
mod attacks;
mod blocks;
mod daemon;
mod endings;
mod heap;
mod limits;
mod loops;
mod refusals;
mod workshop;
