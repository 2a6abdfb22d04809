/* domicile/domicile.h: orders of work, parts of the shared caches for data, data with a copy on
 * each memory node, and work that goes to the cache of its data, as objects.
 *
 * Orders. Work comes as small threads that run to completion, each with hints of what memory it uses.
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
 * Slots. A program says how much of the shared caches which of its data may have; pages of memory
 * get frames such that it has this and no more. domicile_slots(3) says more; domicile/ulcc.h has the
 * functions of the paper that it comes from, domicile/slots.hpp is for C++.
 *
 *     domicile_slots *slots;
 *     domicile_slot *slot;
 *     domicile_data_set *set;
 *     if (domicile_slots_open(NULL, &slots) != DOMICILE_OK)
 *         return puts(domicile_slots_message());
 *     domicile_slot_create(slots, 512 << 10, DOMICILE_SLOT_PRIVATE, &slot);
 *     domicile_data_set_create(slots, NULL, &set);
 *     domicile_data_set_add(set, a, bytes);
 *     if (domicile_data_set_allocate(set, slot, DOMICILE_OTHERS_ABSENT, NULL) != DOMICILE_OK)
 *         puts(domicile_slots_message());
 *     domicile_slots_close(slots);
 *
 * Any thread may call for slots at any time.
 *
 * Replicated data. Bytes that threads on all memory nodes read and that are rarely written have a copy
 * on each node. Nothing of this is transparent: a thread asks for the copy of its node.
 * domicile_replicated(3) says more. Processes share such data by domicile_shared_replicas_create(),
 * at the same address in each.
 *
 *     domicile_replicated *table;
 *     domicile_replicated_reader *reader;
 *     if (domicile_replicated_create(contents, bytes, &table) != DOMICILE_OK)
 *         return puts(domicile_replicated_message());
 *     domicile_replicated_reader_create(table, &reader);
 *     const struct row *rows = domicile_replicated_enter(reader);
 *     ... rows[17] ...
 *     domicile_replicated_leave(reader);
 *     domicile_replicated_write(table, 17 * sizeof *rows, &new_row, sizeof new_row);
 *     domicile_replicated_reader_destroy(reader);
 *     domicile_replicated_destroy(table);
 *
 * Any thread may write at any time. A reader belongs to the thread that made it. Handles must be alive:
 * these calls look nothing up.
 *
 * Shipped work. A thread that uses more data than one cache holds has each piece of work run at the
 * cache of its data, by a worker there, and waits for it. domicile_ship(3) says more.
 *
 *     domicile_caches *caches;
 *     domicile_home *names, *prices;
 *     if (domicile_caches_start(&caches) != DOMICILE_OK)
 *         return puts(domicile_ship_message());
 *     domicile_home_create(caches, name_bytes, &names);
 *     domicile_home_create(caches, price_bytes, &prices);
 *     domicile_ship(names, look_up, &query, NULL);
 *     domicile_ship(prices, add_up, &query, NULL);
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
    /**
     * Something that is needed does not work here; the message says what, and what to change.
     */
    DOMICILE_UNAVAILABLE = 10,
    /**
     * There is not that much cache left; the message says how much is.
     */
    DOMICILE_OVERCOMMITTED = 11,
    /**
     * The handle is of nothing that is alive.
     */
    DOMICILE_UNKNOWN_HANDLE = 12,
    /**
     * Not while it is in use.
     */
    DOMICILE_IN_USE = 13,
    /**
     * These addresses cannot be given colors: nothing is there, or a file, or memory that is shared.
     * Nothing was lost.
     */
    DOMICILE_UNFIT = 14,
    /**
     * The kernel refused; the message says what. Nothing was lost.
     */
    DOMICILE_REFUSED = 15,
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
 * What a slot is for.
 */
typedef enum domicile_slot_kind {
    /**
     * For data with weak locality: the slot's colors may be those of other shared slots, also of
     * other programs.
     */
    DOMICILE_SLOT_SHARED = 1,
    /**
     * For data with strong locality: nobody else is given its colors.
     */
    DOMICILE_SLOT_PRIVATE = 2,
} domicile_slot_kind;

/**
 * Who else may use memory while it gets its colors.
 */
typedef enum domicile_others {
    /**
     * Nobody: the caller promises that no other thread and no system call reads or writes the
     * ranges meanwhile. Fast, for every user.
     */
    DOMICILE_OTHERS_ABSENT = 0,
    /**
     * Threads go on reading and writing, and wait where a page is on its way. System calls may
     * too, which takes a privilege (`domicile doctor` tells); without it the call is refused.
     * Children may be made meanwhile by fork, vfork and posix_spawn; by _Fork or a bare clone only
     * with CAP_SYS_PTRACE, else such a child may find zeros. A thread that is made meanwhile, on a
     * stack in the ranges, must not end before the call does. Alternate signal stacks
     * (sigaltstack) of other threads are moved like other data, since the kernel does not tell
     * where they are: a signal that arrives there meanwhile waits for its page. The caller's own
     * one stays where it is.
     */
    DOMICILE_OTHERS_RUNNING = 1,
} domicile_others;

/**
 * Who says which bits of an address are its color.
 */
typedef enum domicile_colors_source {
    /**
     * Nobody needs to: the program is being recorded, or slots are ways of the caches and not colors.
     */
    DOMICILE_COLORS_NONE = 0,
    /**
     * Timing on this machine, since its last boot.
     */
    DOMICILE_COLORS_VALIDATED = 1,
    /**
     * The user or the program, against or without the word of the probe.
     */
    DOMICILE_COLORS_FORCED = 2,
} domicile_colors_source;

/**
 * How the threads of a program find a copy. Linux keeps no copies by itself, so nothing here is
 * transparent: a program asks for a copy by entering a region.
 */
typedef enum domicile_replicated_mode {
    /**
     * One copy for all nodes, because there can be no other or after a collapse;
     * domicile_replicated_means() says why.
     */
    DOMICILE_REPLICATED_ONE = 1,
    /**
     * A copy on each node that has cpus, as far as nodes had memory.
     */
    DOMICILE_REPLICATED_NODES = 2,
} domicile_replicated_mode;

/**
 * A worker on each cache that the process may use.
 */
typedef struct domicile_caches domicile_caches;

/**
 * Ranges of memory that get a slot together.
 */
typedef struct domicile_data_set domicile_data_set;

/**
 * Data that belongs into one of the caches. The workers end when the last home is destroyed.
 */
typedef struct domicile_home domicile_home;

/**
 * Threads that are pending, and the order in which they will run.
 */
typedef struct domicile_order domicile_order;

/**
 * Bytes that are read on all memory nodes and rarely written, with a copy on each node.
 */
typedef struct domicile_replicated domicile_replicated;

/**
 * A copy that stays as it was when it was asked for.
 */
typedef struct domicile_replicated_kept domicile_replicated_kept;

/**
 * One thread's way to replicated data.
 */
typedef struct domicile_replicated_reader domicile_replicated_reader;

/**
 * Bytes that several processes read at the same address and rarely write, with a copy on each node.
 */
typedef struct domicile_shared_replicas domicile_shared_replicas;

/**
 * A part of the shared caches.
 */
typedef struct domicile_slot domicile_slot;

/**
 * A program that divides the shared caches among its data.
 */
typedef struct domicile_slots domicile_slots;

/**
 * Threads that use a data set.
 */
typedef struct domicile_thread_group domicile_thread_group;

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
    /**
     * Not 0, with several workers on a machine with several caches: a bin runs in each run at the cache that
     * has its block from the run before, and the workers, the caller too, are kept on the cpus of their caches
     * during a run. 1: the first runs are timed with and without, and the faster way is kept. 2: always.
     */
    uint64_t at_caches;
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
    /**
     * 1 where bins ran at the caches of their blocks, 0 where not.
     */
    uint64_t at_caches;
} domicile_order_report;

/**
 * What an application asks for. Zeros are the defaults, so fill it with zeros (`= {0}`, memset),
 * set size, and then what you want otherwise.
 */
typedef struct domicile_slots_attributes {
    /**
     * sizeof(domicile_slots_attributes), which tells the library what the program was compiled
     * with.
     */
    size_t size;
    /**
     * Processors that the application will run on, counted as what has a shared cache; 0, and more
     * than there are: all that this process may use.
     */
    uint32_t processors;
    /**
     * Not 0: take the colors given here, though the probe did not validate them. The environment
     * variable DOMICILE_COLORS=force:first_bit:bits:color_bytes does the same.
     */
    uint32_t force;
    /**
     * With force: the lowest bit of the physical address that belongs to the color, at least 12.
     */
    uint32_t first_bit;
    /**
     * With force: how many bits the color has.
     */
    uint32_t bits;
    /**
     * With force: bytes of cache that one color stands for.
     */
    uint64_t color_bytes;
    /**
     * Not 0: collect frames in this process even where there is a daemon.
     */
    uint32_t without_daemon;
    /**
     * Not 0: where nobody has looked for colors since the machine started, look now, which takes
     * some two seconds. Otherwise the call fails and names `domicile probe`.
     */
    uint32_t measure;
} domicile_slots_attributes;

/**
 * How an application stands. Set size before the call.
 */
typedef struct domicile_slots_state {
    /**
     * sizeof(domicile_slots_state), which tells the library what the program was compiled with.
     */
    size_t size;
    /**
     * Colors of each shared cache; 0 where slots are ways of the caches.
     */
    uint32_t colors;
    /**
     * Shared caches of the application's processors.
     */
    uint32_t caches;
    /**
     * Bytes of cache that one color stands for; 0 where slots are ways of the caches.
     */
    uint64_t color_bytes;
    /**
     * Bytes that can still be had, in all these caches together.
     */
    uint64_t available;
    /**
     * Who says what the colors are, a domicile_colors_source.
     */
    uint32_t source;
    /**
     * The lowest bit of the physical address that belongs to the color.
     */
    uint32_t first_bit;
    /**
     * Not 0: the program is being recorded. No frame is changed; slots and data sets go to the
     * trace.
     */
    uint32_t recording;
    /**
     * 0.
     */
    uint32_t reserved;
} domicile_slots_state;

/**
 * What an allocation did. Set size before the call.
 */
typedef struct domicile_allocation {
    /**
     * sizeof(domicile_allocation), which tells the library what the program was compiled with.
     */
    size_t size;
    /**
     * Colors that the data set has now.
     */
    uint32_t colors;
    /**
     * Shared caches in which it has them.
     */
    uint32_t caches;
    /**
     * Pages of the data set.
     */
    uint64_t pages;
    /**
     * Of these: pages whose frame had an allowed color and was kept.
     */
    uint64_t kept;
    /**
     * Pages that nobody had touched, and that got a frame.
     */
    uint64_t filled;
    /**
     * Pages that got another frame, with their contents.
     */
    uint64_t exchanged;
    /**
     * Pages that could not be given an allowed color; their contents are what they were.
     * domicile_slots_message() says why of the first.
     */
    uint64_t left;
    /**
     * Bytes of the ranges that lie on pages which they do not cover whole: they stay where they are.
     */
    uint64_t left_out;
} domicile_allocation;

/**
 * The pages of a data set, counted. Set size before the call.
 */
typedef struct domicile_census {
    /**
     * sizeof(domicile_census), which tells the library what the program was compiled with.
     */
    size_t size;
    /**
     * Pages of the data set.
     */
    uint64_t pages;
    /**
     * Of these: pages whose frame has an allowed color.
     */
    uint64_t allowed;
    /**
     * Pages whose frame has another color.
     */
    uint64_t other;
    /**
     * Pages that have no frame yet, or none in memory.
     */
    uint64_t absent;
    /**
     * Pages whose frame this process may not know.
     */
    uint64_t unknown;
} domicile_census;

/**
 * How replicated data stands. Set size before the call.
 */
typedef struct domicile_replicated_state {
    /**
     * sizeof(domicile_replicated_state), which tells the library what the program was compiled with.
     */
    size_t size;
    /**
     * A domicile_replicated_mode.
     */
    uint32_t mode;
    /**
     * How many copies there are, at least 1.
     */
    uint32_t copies;
    /**
     * How many nodes with cpus have none; their threads read the nearest one.
     */
    uint32_t without;
    /**
     * Not 0: each entry takes a full memory barrier, some 5 ns, since membarrier(2) does not work
     * here.
     */
    uint32_t readers_pay;
    /**
     * Bytes of contents, once.
     */
    uint64_t bytes;
    /**
     * Bytes of memory of all copies: whole pages. While contents are written there are the old and
     * the new copies.
     */
    uint64_t memory;
    /**
     * Of these, what one copy would not take: what the replicas cost.
     */
    uint64_t extra;
    /**
     * How often contents were written.
     */
    uint64_t writes;
} domicile_replicated_state;

/**
 * What became of the calls so far, and the cost of one. Set size before the call.
 */
typedef struct domicile_caches_state {
    /**
     * sizeof(domicile_caches_state), which tells the library what the program was compiled with.
     */
    size_t size;
    /**
     * How many caches there are to ship to. 1: all work runs on its caller's thread, since nothing is to be
     * gained.
     */
    uint64_t caches;
    /**
     * Nanoseconds there and back with nothing to do, to a worker that looks for work; measured at the start.
     */
    uint64_t hand_over_ns;
    /**
     * The same to a worker that sleeps, as it does after a millisecond without work.
     */
    uint64_t wake_ns;
    /**
     * Calls whose work went to another cache.
     */
    uint64_t shipped;
    /**
     * Calls that ran on the caller's thread: it was at the cache already,
     */
    uint64_t here;
    /**
     * the process may use one cache only,
     */
    uint64_t one_cache;
    /**
     * this is a child of fork, which has no workers,
     */
    uint64_t forked;
    /**
     * all data fits into one cache,
     */
    uint64_t fits_one_cache;
    /**
     * all caches together are too small for the data,
     */
    uint64_t fits_no_caches;
    /**
     * the work of the home takes less time than four hand-overs, by its mean,
     */
    uint64_t too_short;
    /**
     * the caller was already eight levels deep in nested shipped work,
     */
    uint64_t nested;
    /**
     * or calls that were timed both ways, in turns, were not faster when shipped. That is tried again now and then.
     */
    uint64_t no_gain;
} domicile_caches_state;

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
 * worse. A function in Rust that panics ends the run with DOMICILE_PANIC. A caller that is cancelled
 * (pthread_cancel) is so after the run.
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

/**
 * Why the caller's last call for slots that failed did, in words for people; empty where none has.
 * It lives until the next one of the same thread fails.
 */
const char *domicile_slots_message(void);

/**
 * Opens an application: finds out what the shared caches are and which colors they have, and
 * connects to the daemon where one runs.
 *
 * attributes may be NULL: all defaults. Where it fails, *slots is NULL, and
 * domicile_slots_message() says why and what to change: DOMICILE_UNAVAILABLE where colors are not
 * validated on this machine and not forced.
 *
 * Where `domicile probe` found no colors and resctrl is mounted and writable, the application has
 * ways of the outermost cache instead: threads that use data in private slots get the ways that
 * these slots come to, all together; no page moves. domicile_slots_message() and
 * domicile_slots_means() say so. It is untried on hardware.
 */
enum domicile_error domicile_slots_open(const struct domicile_slots_attributes *attributes,
                                        struct domicile_slots **slots);

/**
 * Ends an application with its slots, groups and data sets. The data stays where it is; memory
 * from domicile_slot_memory stays, and is freed with domicile_slot_memory_free. What another
 * thread is doing is done first. NULL is allowed.
 */
enum domicile_error domicile_slots_close(struct domicile_slots *slots);

/**
 * Bytes of cache that the application can still have, in all shared caches of its processors
 * together; 0 where there is no such application.
 */
uint64_t domicile_slots_available(const struct domicile_slots *slots);

/**
 * How an application stands: its colors, who says so, what is left.
 */
enum domicile_error domicile_slots_ask(const struct domicile_slots *slots,
                                       struct domicile_slots_state *state);

/**
 * Which facilities of the system are in use and why, in words for people, a line for each. Lives
 * until the application is closed.
 */
const char *domicile_slots_means(const struct domicile_slots *slots);

/**
 * Defines a slot of so many bytes in each shared cache whose processors use it; kind is a
 * domicile_slot_kind. Its colors are chosen when a data set is allocated to it.
 */
enum domicile_error domicile_slot_create(struct domicile_slots *slots,
                                         uint64_t bytes,
                                         uint32_t kind,
                                         struct domicile_slot **slot);

/**
 * Ends a slot. Data sets that are in it stay there, and the last of them takes its colors with it.
 * NULL is allowed.
 */
enum domicile_error domicile_slot_destroy(struct domicile_slot *slot);

/**
 * The caller is the thread that groups know by this number, any integer. Data sets that are
 * allocated for the first time from then on find it on the processors that it may use.
 */
enum domicile_error domicile_slots_bind(struct domicile_slots *slots, int64_t thread);

/**
 * Makes a group without threads, which stands for all threads of the program.
 */
enum domicile_error domicile_thread_group_create(struct domicile_slots *slots,
                                                 struct domicile_thread_group **group);

/**
 * Adds a thread, by its number, any integer. A caller that is not bound yet is bound to the
 * number it gives; other threads bind themselves (domicile_slots_bind), before or after. As long
 * as one of a group is not bound, it may run on any of the application's processors.
 */
enum domicile_error domicile_thread_group_add(struct domicile_thread_group *group, int64_t thread);

/**
 * Adds whatever runs on a processor, by the kernel's number.
 */
enum domicile_error domicile_thread_group_add_cpu(struct domicile_thread_group *group,
                                                  uint32_t cpu);

/**
 * Ends a group; data sets that were made with it keep their threads. NULL is allowed.
 */
enum domicile_error domicile_thread_group_destroy(struct domicile_thread_group *group);

/**
 * Makes a data set without data, which the threads of a group use; NULL stands for all.
 */
enum domicile_error domicile_data_set_create(struct domicile_slots *slots,
                                             struct domicile_thread_group *group,
                                             struct domicile_data_set **set);

/**
 * Adds so many bytes from an address on. They get their colors in the next
 * domicile_data_set_allocate, and must be there then.
 */
enum domicile_error domicile_data_set_add(struct domicile_data_set *set,
                                          const void *start,
                                          size_t bytes);

/**
 * Gives all pages of a data set frames of the slot's colors; slot NULL: confines them to the
 * fewest colors, because they are not worth caching. others is a domicile_others; done may be
 * NULL. Whatever it comes to, contents are intact.
 *
 * A single page that cannot have a color (nothing is mapped there, it is shared memory or a file's
 * own page, may not be read and written, or may be run) refuses the whole data set
 * (DOMICILE_UNFIT), before anything is moved: it is none that the caller meant.
 * domicile_slots_message names it; make the data set of what lies around it. Pages that merely
 * cannot be moved at the moment are left, and counted in done.
 *
 * While others run, mremap and move_pages wait for the end of a batch; the library stands in front of
 * these two functions. As bare system calls they do not wait: mremap may then fail with EFAULT
 * where part of its pages is being colored, with some of them moved, and move_pages may say ENOENT.
 */
enum domicile_error domicile_data_set_allocate(struct domicile_data_set *set,
                                               struct domicile_slot *slot,
                                               uint32_t others,
                                               struct domicile_allocation *done);

/**
 * The colors that a data set was given, lowest first: at most `room` of them go where colors
 * points, which may be NULL where room is 0; *count is how many there are.
 */
enum domicile_error domicile_data_set_colors(const struct domicile_data_set *set,
                                             uint32_t *colors,
                                             size_t room,
                                             size_t *count);

/**
 * Counts the pages of a data set by the colors that their frames have now: the kernel may have
 * exchanged some since they were allocated.
 */
enum domicile_error domicile_data_set_census(const struct domicile_data_set *set,
                                             struct domicile_census *census);

/**
 * Gives pages whose frames have another color by now frames of the right ones; census may be
 * NULL, otherwise it is how things are afterwards. Only for who may know of frames
 * (CAP_SYS_ADMIN), otherwise DOMICILE_UNAVAILABLE: allocating again gives all pages new frames.
 */
enum domicile_error domicile_data_set_repair(struct domicile_data_set *set,
                                             uint32_t others,
                                             struct domicile_census *census);

/**
 * Ends a data set. Its data stays where it is; what it had of a slot is free for other data sets.
 * To be called before the data's memory is freed. NULL is allowed.
 */
enum domicile_error domicile_data_set_destroy(struct domicile_data_set *set);

/**
 * Memory of at least so many bytes, full of zeros, whose frames have the slot's colors, for the
 * threads of a group (NULL: all). It begins with a page and has pages to itself.
 */
enum domicile_error domicile_slot_memory(struct domicile_slots *slots,
                                         struct domicile_slot *slot,
                                         struct domicile_thread_group *group,
                                         size_t bytes,
                                         void **memory);

/**
 * Frees memory of domicile_slot_memory, before or after its application was closed. NULL is
 * allowed.
 */
enum domicile_error domicile_slot_memory_free(void *memory);

/**
 * Why the caller's last call for replicated data that failed did, in words for people; empty where
 * none has. It lives until the next one of the same thread fails, or one for slots.
 */
const char *domicile_replicated_message(void);

/**
 * Makes replicated data of so many bytes with these contents, which are copied, with a copy on each
 * memory node that has cpus. Their number never changes. Each copy begins with a page.
 *
 * A node that cannot have a copy goes without, and a machine with one node has one copy:
 * domicile_replicated_ask() and domicile_replicated_means() tell. Where the call fails (0 bytes, no
 * memory), *replicated is NULL.
 */
enum domicile_error domicile_replicated_create(const void *contents,
                                               size_t bytes,
                                               struct domicile_replicated **replicated);

/**
 * Ends replicated data. Its copies stay until its last reader is destroyed, too. NULL is allowed.
 */
enum domicile_error domicile_replicated_destroy(struct domicile_replicated *replicated);

/**
 * Makes a reader for the calling thread. No other thread may use it, and the thread destroys it
 * before it ends.
 */
enum domicile_error domicile_replicated_reader_create(const struct domicile_replicated *replicated,
                                                      struct domicile_replicated_reader **reader);

/**
 * Ends a reader; it leaves the region that it is in. NULL is allowed.
 */
enum domicile_error domicile_replicated_reader_destroy(struct domicile_replicated_reader *reader);

/**
 * Enters a region: gives the copy of the node that the thread is on, as many bytes as were given to
 * domicile_replicated_create(), to be read only, until domicile_replicated_leave(). Who writes to
 * it is ended by SIGSEGV.
 *
 * Writers wait for it: keep regions short. A thread that moves to another node meanwhile gets that
 * node's copy with its next region. NULL where the reader is NULL or inside a region already.
 */
const void *domicile_replicated_enter(struct domicile_replicated_reader *reader);

/**
 * Leaves the region, if the reader is in one: what domicile_replicated_enter() gave is not to be
 * read any more. NULL is allowed.
 */
void domicile_replicated_leave(struct domicile_replicated_reader *reader);

/**
 * Keeps the copy of the caller's node as it is now, for programs that cannot say when a region ends.
 *
 * What is written afterwards is not seen there, and writers do not wait for it. Its memory is in use until
 * domicile_replicated_kept_destroy(), also when the replicated data is gone.
 */
enum domicile_error domicile_replicated_keep(const struct domicile_replicated *replicated,
                                             struct domicile_replicated_kept **kept);

/**
 * Where the bytes of a copy are that is kept, to be read only. NULL where kept is NULL.
 */
const void *domicile_replicated_kept_start(const struct domicile_replicated_kept *kept);

/**
 * Gives up a copy that was kept, on any thread. NULL is allowed.
 */
enum domicile_error domicile_replicated_kept_destroy(struct domicile_replicated_kept *kept);

/**
 * Puts other contents in the place of bytes offset to offset + bytes, in all copies.
 *
 * When it returns, nobody reads the old contents any more, on any node; nobody has seen a part of
 * the write. It waits for all threads that are inside a region, and for other writers. Twice the
 * memory is in use meanwhile. Nothing was changed where it fails with DOMICILE_INVALID (beyond the
 * end), DOMICILE_IN_USE (the calling thread is inside a region of this data and would wait for
 * itself), DOMICILE_OUT_OF_MEMORY, DOMICILE_UNKNOWN_HANDLE (this process was forked; it makes data
 * of its own) or DOMICILE_UNAVAILABLE (the kernel refuses membarrier(2)). DOMICILE_REFUSED: the new
 * contents are in place, but threads inside a region may still read the old ones.
 */
enum domicile_error domicile_replicated_write(struct domicile_replicated *replicated,
                                              size_t offset,
                                              const void *contents,
                                              size_t bytes);

/**
 * Frees all copies but one, that of the caller's node: what replicas cost is had back. It waits and
 * fails as domicile_replicated_write() does.
 */
enum domicile_error domicile_replicated_collapse(struct domicile_replicated *replicated);

/**
 * Makes a copy on each node with cpus that has none, as far as nodes have memory now. It waits and
 * fails as domicile_replicated_write() does.
 */
enum domicile_error domicile_replicated_replicate(struct domicile_replicated *replicated);

/**
 * How replicated data stands: which mode, how many copies, what they cost.
 */
enum domicile_error domicile_replicated_ask(const struct domicile_replicated *replicated,
                                            struct domicile_replicated_state *state);

/**
 * The same in words for people: which nodes have a copy, and why others have none. They live as
 * those of domicile_replicated_message(), and take their place.
 */
const char *domicile_replicated_means(const struct domicile_replicated *replicated);

/**
 * Why the calling thread's last failed call for caches failed, in words; empty where none has. The words
 * live until its next call fails, or one for slots or replicated data.
 */
const char *domicile_ship_message(void);

/**
 * Starts a worker on each cache that the calling thread may use: of the outermost level of which the machine
 * has several. With one cache there are no workers, and all work runs on its caller's thread.
 *
 * DOMICILE_UNAVAILABLE: the caches cannot be read, or a thread cannot be started; *caches is NULL then.
 */
enum domicile_error domicile_caches_start(struct domicile_caches **caches);

/**
 * Gives up the caches. The workers end with the last home. NULL is allowed.
 */
enum domicile_error domicile_caches_end(struct domicile_caches *caches);

/**
 * What became of the calls so far, and the cost of one.
 */
enum domicile_error domicile_caches_ask(const struct domicile_caches *caches,
                                        struct domicile_caches_state *state);

/**
 * Gives data of so many bytes a cache: the one with the least data so far. Handles must be alive: these calls
 * look nothing up.
 */
enum domicile_error domicile_home_create(const struct domicile_caches *caches,
                                         uint64_t bytes,
                                         struct domicile_home **home);

/**
 * Gives the room in the cache back. NULL is allowed.
 */
enum domicile_error domicile_home_destroy(struct domicile_home *home);

/**
 * The number of a home's cache, from 0; UINT32_MAX where home is NULL.
 */
uint32_t domicile_home_cache(const struct domicile_home *home);

/**
 * Calls work(argument) at the cache of its data, and returns when it has returned. Its value is put into
 * *value, which may be NULL. Any thread may call, and work may ship other work.
 *
 * Where shipping cannot pay, work runs on the caller's thread; domicile_caches_ask() counts why. Work must
 * return: to leave it by longjmp, by pthread_exit or by a C++ exception ends the program or worse. It holds
 * no lock that other shipped work waits for, and waits for no other thread that ships: there is one worker
 * for each cache. A function in Rust that panics is DOMICILE_PANIC, with its words as the message. If the
 * caller is cancelled (pthread_cancel) during the call, that takes effect after it has returned.
 *
 * Workers block all signals but those of faults (SIGSEGV, SIGBUS, SIGFPE and the like), and a program that
 * work starts inherits that: reset the mask first. Destroy no home while a call uses it, nor in an exit
 * handler where work may call exit.
 */
enum domicile_error domicile_ship(const struct domicile_home *home,
                                  void *(*work)(void*),
                                  void *argument,
                                  void **value);

/**
 * Makes data of so many bytes with these contents, which are copied, to be shared with other
 * processes: a copy on each memory node that has cpus. Their number never changes.
 *
 * Others get domicile_shared_replicas_descriptor(), as a child of fork and exec or over a Unix
 * socket, and call domicile_shared_replicas_attach(). They trust each other: who has the descriptor
 * can write to all of it. Where the call fails, *shared is NULL, and domicile_replicated_message()
 * says why.
 */
enum domicile_error domicile_shared_replicas_create(const void *contents,
                                                    size_t bytes,
                                                    struct domicile_shared_replicas **shared);

/**
 * The same with copies on the given nodes, by the kernel's numbers: the master on the first, a
 * replica on each other. A node may be named more than once. No nodes: one copy, anywhere.
 */
enum domicile_error domicile_shared_replicas_create_on(const void *contents,
                                                       size_t bytes,
                                                       const uint32_t *nodes,
                                                       size_t count,
                                                       struct domicile_shared_replicas **shared);

/**
 * Joins the processes that share what one of them created, of which this one has the descriptor. It
 * is copied: the caller may close its own.
 *
 * The bytes appear at the same address as in the others. DOMICILE_INVALID: the descriptor is of
 * something else. DOMICILE_REFUSED: this process has something else at the address, or is attached
 * already; or there are too many processes.
 */
enum domicile_error domicile_shared_replicas_attach(int descriptor,
                                                    struct domicile_shared_replicas **shared);

/**
 * Leaves those who share. The bytes are not to be read any more; other processes keep them. NULL is
 * allowed. A child of fork may call it for what was its parent's.
 */
enum domicile_error domicile_shared_replicas_destroy(struct domicile_shared_replicas *shared);

/**
 * What other processes attach by. It is the object's own, lives as long as that, and is closed on
 * exec unless the program says otherwise (FD_CLOEXEC). -1 where shared is NULL.
 */
int domicile_shared_replicas_descriptor(const struct domicile_shared_replicas *shared);

/**
 * Where the bytes are, in each of the processes: to be read at any moment, by any thread, until
 * domicile_shared_replicas_destroy(). Who writes to them is ended by SIGSEGV, and so is a child of
 * fork that reads. NULL where shared is NULL.
 *
 * It is shared memory: who reads while another process writes may see a part of the write. What
 * was written is seen by all when the write has returned.
 */
const void *domicile_shared_replicas_start(const struct domicile_shared_replicas *shared);

/**
 * How many bytes there are. 0 where shared is NULL.
 */
size_t domicile_shared_replicas_bytes(const struct domicile_shared_replicas *shared);

/**
 * Has this process read the copy of the node that the calling thread is on: after it was moved
 * there. All threads of a process read the same copy.
 */
enum domicile_error domicile_shared_replicas_follow(struct domicile_shared_replicas *shared);

/**
 * Writes bytes from place offset on, for all processes. All of them have turned to one copy before
 * anything is written, and stay with it until somebody replicates; when it returns, every process
 * reads the new bytes.
 *
 * Writers wait for each other and for each process to turn. Nothing was changed where it fails with
 * DOMICILE_INVALID (beyond the end) or DOMICILE_UNKNOWN_HANDLE (this process was forked; it attaches
 * by itself, in a program of its own). DOMICILE_REFUSED: the kernel refused memory or a mapping.
 */
enum domicile_error domicile_shared_replicas_write(struct domicile_shared_replicas *shared,
                                                   size_t offset,
                                                   const void *contents,
                                                   size_t bytes);

/**
 * Frees all replicas, once every process has turned to the master. It fails as
 * domicile_shared_replicas_write() does.
 */
enum domicile_error domicile_shared_replicas_collapse(struct domicile_shared_replicas *shared);

/**
 * Makes a replica on each node that is to have one and has memory for it; every process turns to its
 * node's by and by. It fails as domicile_shared_replicas_write() does.
 */
enum domicile_error domicile_shared_replicas_replicate(struct domicile_shared_replicas *shared);

/**
 * How it stands: which mode, how many copies, what they cost. Nothing is read through a region, so
 * readers_pay is 0.
 */
enum domicile_error domicile_shared_replicas_ask(const struct domicile_shared_replicas *shared,
                                                 struct domicile_replicated_state *state);

/**
 * The same in words for people, which live as those of domicile_replicated_message(), and take
 * their place.
 */
const char *domicile_shared_replicas_means(const struct domicile_shared_replicas *shared);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DOMICILE_H */
