//! The `domicile` command: parse, call, print.
#![forbid(unsafe_code)]
