//! Teams of threads under Valgrind. `make check` leaves them out.

mod openmp;
