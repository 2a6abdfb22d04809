//! Programs that are recorded under Valgrind, or run with a run-time: minutes. `make check` leaves them out.

mod broken;
mod causes;
mod compare;
mod demo;
mod detail;
mod files;
mod predicted;
mod record;
mod record_ends;
mod run;
mod windows;
