/* domicile/th.h: threads that are run in an order that is kind to caches.
 *
 * The three calls of J. Philbin, J. Edler, O. J. Anshus, C. C. Douglas, K. Li, "Thread Scheduling
 * for Cache Locality", ASPLOS 1996, section 3.1. C99 and C++; link with
 * `pkg-config --cflags --libs domicile`. What the paper does not have (workers, tours,
 * dependencies, errors) is in domicile/domicile.h; th(3) says more.
 *
 * One thread of the operating system calls at a time; but threads that run may all fork, on
 * whatever worker they run.
 *
 * Generated from crates/capi/src/th.rs by `cargo xtask generate`.
 */

#ifndef DOMICILE_TH_H
#define DOMICILE_TH_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Set the bytes of a block in each dimension, and the expected number of bins.
 *
 * 0 is the default. For blocksize, that is a block whose sides add up to the cache that this program actually gets,
 * shared among the dimensions that the first thread has (its hints that are not 0), or to the TLB's reach if that is
 * smaller. For hashsize, it is a table that grows as needed; more bins than expected only cost time once.
 *
 * May be called more than once, or not at all. Pending threads keep their blocks, and run before those that are forked
 * from now on. A call by a running thread has no effect except a message on stderr.
 */
void th_init(size_t blocksize, size_t hashsize);

/**
 * Fork a thread that will call f(arg1, arg2).
 *
 * The hints are addresses of memory that it will use: threads whose hints lie in the same blocks run together, in the
 * order of their forks. A hint of 0 marks an absent dimension: with two hints hint3 is 0, with one hint2 as well. A
 * running thread may fork: such threads run in the same th_run.
 *
 * If there is no memory, or f is 0, the program ends with a message: no thread is lost.
 */
void th_fork(void (*f)(void*, void*), void *arg1, void *arg2, const void *hint1, const void *hint2, const void *hint3);

/**
 * Run all threads that have been forked, then return.
 *
 * With keep = 0 they are then forgotten; otherwise the next th_run runs them again. A call by a running thread has no
 * effect except a message on stderr.
 */
void th_run(int keep);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DOMICILE_TH_H */
