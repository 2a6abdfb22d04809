//! Programs by several compilers, under Valgrind and sanitizers. `make check` leaves them out.

mod installed;
