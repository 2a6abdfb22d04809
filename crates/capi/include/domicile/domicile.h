/* domicile/domicile.h: orders of work as objects.
 *
 * Work comes as small threads that run to completion, each with hints of what memory it uses.
 * Threads whose hints lie in the same block of memory run together. C99 and C++; link with
 * `pkg-config --cflags --libs domicile`. domicile_order(3) says more; domicile/th.h has the three
 * calls of the paper that it comes from.
 *
 *     domicile_order_attributes attributes = {.size = sizeof attributes, .hints = 2};
 *     domicile_order *order;
 *     if (domicile_order_create(&attributes, &order) != DOMICILE_OK)
 *         return puts(domicile_order_message(NULL));
 *     uint64_t hints[2] = {(uintptr_t)a, (uintptr_t)b};
 *     if (domicile_order_fork(order, f, arg1, arg2, hints, NULL) != DOMICILE_OK)
 *         return puts(domicile_order_message(order));
 *     domicile_order_run(order, 0, NULL);
 *     domicile_order_destroy(order);
 *
 * An order is used by one thread of the operating system at a time; but while it runs, its running
 * threads may all fork into it. It may be handed from one to another like any object.
 *
 * Generated from crates/capi/src by `cargo xtask generate`.
 */

#ifndef DOMICILE_H
#define DOMICILE_H

#include <stddef.h>
#include <stdint.h>

/**
 * The most hints that a thread can have, and so the most dimensions of a block.
 */
#define DOMICILE_HINTS_MAX 8

/**
 * The most caches beyond the one that a block is made for.
 */
#define DOMICILE_LEVELS_MAX 3

/**
 * The most workers.
 */
#define DOMICILE_WORKERS_MAX 1024

/**
 * The id of a thread that has none, because it was forked by a running thread.
 */
#define DOMICILE_NO_THREAD UINT64_MAX

/**
 * What a call came to. `DOMICILE_OK` is 0; more may come in later versions, so treat whatever you
 * do not know as a failure.
 */
typedef enum domicile_error {
    /**
     * Done.
     */
    DOMICILE_OK = 0,
    /**
     * A pointer that must point to something is null.
     */
    DOMICILE_NULL = 1,
    /**
     * A value is outside what it may be; the message says which.
     */
    DOMICILE_INVALID = 2,
    /**
     * There is no memory left. What was forked before is still there, and this call changed
     * nothing.
     */
    DOMICILE_OUT_OF_MEMORY = 3,
    /**
     * A run inside a run of the same order, or another call that must wait until the run is over.
     */
    DOMICILE_RUNNING = 4,
    /**
     * The order is running, and the caller is not one of its running threads.
     */
    DOMICILE_NOT_INSIDE = 5,
    /**
     * No thread that is pending has this id.
     */
    DOMICILE_UNKNOWN_THREAD = 6,
    /**
     * Threads wait for each other in a circle; the message names them.
     */
    DOMICILE_CYCLE = 7,
    /**
     * A thread unwound (a panic of Rust). Threads that have not run are still pending.
     */
    DOMICILE_PANIC = 8,
    /**
     * The library found itself in a state that it should never be in; please report it.
     */
    DOMICILE_INTERNAL = 9,
} domicile_error;

/**
 * In which order bins run.
 */
typedef enum domicile_tour {
    /**
     * In the order in which their blocks were first used, as in the paper.
     */
    DOMICILE_TOUR_FIRST_FORK = 0,
    /**
     * From each to the nearest that is left.
     */
    DOMICILE_TOUR_NEAREST = 1,
    /**
     * Along a Hilbert curve.
     */
    DOMICILE_TOUR_HILBERT = 2,
} domicile_tour;

/**
 * Threads that are pending, and the order in which they will run.
 */
typedef struct domicile_order domicile_order;

/**
 * What an order is like. Zeros are the defaults, so fill it with zeros (`= {0}`, memset), set
 * size, and then what you want otherwise.
 */
typedef struct domicile_order_attributes {
    /**
     * sizeof(domicile_order_attributes), which tells the library what the program was compiled
     * with.
     */
    size_t size;
    /**
     * Hints of a thread, 1 to DOMICILE_HINTS_MAX; 0: 2.
     */
    uint32_t hints;
    /**
     * Workers, 1 to DOMICILE_WORKERS_MAX; 0: 1. On one worker, threads run on the caller's stack.
     */
    uint32_t workers;
    /**
     * In which order bins run, a domicile_tour.
     */
    uint32_t tour;
    /**
     * Not 0: threads with the same hints in another order go to the same bin. All sides of the
     * block must be equal.
     */
    uint32_t fold;
    /**
     * The sides of a block, in the units of the hints (bytes, where they are addresses); 0: the
     * default, the bytes of the cache that this process really gets divided by the hints, or those
     * that the TLB reaches where they are fewer.
     */
    uint64_t block[DOMICILE_HINTS_MAX];
    /**
     * How many further caches to care for, at most DOMICILE_LEVELS_MAX: bins of bins.
     */
    uint32_t levels;
    /**
     * How many bins to be ready for; there may be more.
     */
    uint32_t bins;
    /**
     * The sides of the blocks for each further cache, from the inside out; each is a multiple of
     * the one inside it.
     */
    uint64_t outer[DOMICILE_LEVELS_MAX][DOMICILE_HINTS_MAX];
    /**
     * For the default block: bytes of cache; 0: as measured on this machine.
     */
    uint64_t cache_bytes;
    /**
     * For the default block: bytes that the TLB reaches; 0: as measured on this machine, or not
     * known.
     */
    uint64_t tlb_reach_bytes;
} domicile_order_attributes;

/**
 * What a run did. Set size before the call.
 */
typedef struct domicile_order_report {
    /**
     * sizeof(domicile_order_report), which tells the library what the program was compiled with.
     */
    size_t size;
    /**
     * Threads that ran, those that running threads forked among them.
     */
    uint64_t threads;
    /**
     * Bins that were visited.
     */
    uint64_t bins;
    /**
     * Workers that took part.
     */
    uint64_t workers;
} domicile_order_report;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The error in a few words, for any number; never null, and not to be freed.
 */
const char *domicile_error_text(int32_t error);

/**
 * Makes an order without threads.
 *
 * attributes may be NULL: all defaults. Where it fails, *order is NULL, and
 * domicile_order_message(NULL) says why.
 */
enum domicile_error domicile_order_create(const struct domicile_order_attributes *attributes,
                                          struct domicile_order **order);

/**
 * Frees an order with all its pending threads, which do not run. NULL is allowed; a running order
 * is not freed (DOMICILE_RUNNING). The handle is not to be used again.
 */
enum domicile_error domicile_order_destroy(struct domicile_order *order);

/**
 * Makes room for so many threads in so many bins, so that the forks to come find the memory they
 * need.
 */
enum domicile_error domicile_order_reserve(struct domicile_order *order,
                                           size_t threads,
                                           size_t bins);

/**
 * Runs all pending threads, bin by bin, and returns when they and those that they forked have run.
 *
 * With keep = 0 they are forgotten, else they are there for the next run. report may be NULL. A
 * thread's function must return: leaving it by longjmp or by a C++ exception ends the program or
 * worse. A function in Rust that panics ends the run with DOMICILE_PANIC.
 */
enum domicile_error domicile_order_run(struct domicile_order *order,
                                       int keep,
                                       struct domicile_order_report *report);

/**
 * Forgets all pending threads; they do not run.
 */
enum domicile_error domicile_order_clear(struct domicile_order *order);

/**
 * Forks a thread that will call f(arg1, arg2).
 *
 * hints points to as many hints as the attributes say: addresses, or coordinates. Threads whose
 * hints lie in the same block run together, in the order of their forks. thread may be NULL;
 * otherwise *thread is the thread's id, for dependencies. A running thread may fork: such a thread
 * runs in the same run, and its id is DOMICILE_NO_THREAD; it is not kept, whatever the run keeps.
 */
enum domicile_error domicile_order_fork(struct domicile_order *order,
                                        void (*f)(void*, void*),
                                        void *arg1,
                                        void *arg2,
                                        const uint64_t *hints,
                                        uint64_t *thread);

/**
 * Forks a thread that runs after the count threads whose ids are at earlier. Those that have run
 * already do not keep it waiting. Not for running threads.
 */
enum domicile_error domicile_order_fork_after(struct domicile_order *order,
                                              void (*f)(void*, void*),
                                              void *arg1,
                                              void *arg2,
                                              const uint64_t *hints,
                                              const uint64_t *earlier,
                                              size_t count,
                                              uint64_t *thread);

/**
 * Makes a pending thread run after another one. A circle is refused (DOMICILE_CYCLE), and the
 * message names it. Not for running threads.
 */
enum domicile_error domicile_order_depend(struct domicile_order *order,
                                          uint64_t later,
                                          uint64_t earlier);

/**
 * How many threads are pending; 0 for NULL and while the order runs.
 */
uint64_t domicile_order_pending(const struct domicile_order *order);

/**
 * Which worker runs the calling thread, from 0; -1 when the caller is not a running thread of the
 * order.
 */
int domicile_order_worker(const struct domicile_order *order);

/**
 * The side of a block along a dimension, in the units of the hints; 0 where there is no such
 * dimension.
 */
uint64_t domicile_order_block(const struct domicile_order *order, uint32_t dimension);

/**
 * Why the block has the sides that it has: which limit was chosen, and with which figures. Lives
 * as long as the order.
 */
const char *domicile_order_reason(const struct domicile_order *order);

/**
 * What the last call that failed said, in words for people; empty where none has failed. It lives
 * until the next call for the order fails. For NULL: the last domicile_order_create on this thread
 * of the operating system that failed.
 */
const char *domicile_order_message(const struct domicile_order *order);

/**
 * Sets for th_fork and th_run what th_init cannot: workers, tour, levels, sides that differ. hints
 * is 0 or 3. A th_init that comes later changes the sides and the bins to be ready for, and
 * nothing else.
 *
 * Without it, the environment variables DOMICILE_WORKERS (a number) and DOMICILE_TOUR (first-fork,
 * nearest or hilbert) say how a program with only the paper's calls runs.
 */
enum domicile_error domicile_th_configure(const struct domicile_order_attributes *attributes);

/**
 * What the last th_run did.
 */
enum domicile_error domicile_th_report(struct domicile_order_report *report);

/**
 * Why the last th_init or th_run that was left undone was (a domicile_error), and forgets it;
 * DOMICILE_OK when all was done. What th_fork and th_run cannot leave undone without losing a
 * thread ends the program.
 */
int domicile_th_error(void);

/**
 * The version of the library, as in "0.1.0".
 */
const char *domicile_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DOMICILE_H */
