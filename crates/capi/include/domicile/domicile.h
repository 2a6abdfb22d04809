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
 * The most hints of a thread, and so the most dimensions of a block.
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
 * The id of a thread that a running thread forked: it has none.
 */
#define DOMICILE_NO_THREAD UINT64_MAX

/**
 * The result of a call. `DOMICILE_OK` is 0; later versions may add values, so treat every value that you do not know
 * as a failure.
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
     * A value is outside its permitted range; the message names it.
     */
    DOMICILE_INVALID = 2,
    /**
     * There is no memory left. Threads forked before are still there, and this call changed nothing.
     */
    DOMICILE_OUT_OF_MEMORY = 3,
    /**
     * The order is running already, or the call must wait until the run is over.
     */
    DOMICILE_RUNNING = 4,
    /**
     * The order is running, and the caller is not one of its running threads.
     */
    DOMICILE_NOT_INSIDE = 5,
    /**
     * No pending thread has this id.
     */
    DOMICILE_UNKNOWN_THREAD = 6,
    /**
     * Threads wait for each other in a cycle; the message names them.
     */
    DOMICILE_CYCLE = 7,
    /**
     * A thread unwound (a panic in Rust). Threads that have not run are still pending.
     */
    DOMICILE_PANIC = 8,
    /**
     * The library found itself in an impossible state; please report it.
     */
    DOMICILE_INTERNAL = 9,
    /**
     * A necessary facility does not work here; the message names it, and says what to change.
     */
    DOMICILE_UNAVAILABLE = 10,
    /**
     * Not that much cache is left; the message says how much is.
     */
    DOMICILE_OVERCOMMITTED = 11,
    /**
     * The handle refers to nothing that is alive.
     */
    DOMICILE_UNKNOWN_HANDLE = 12,
    /**
     * The object is in use.
     */
    DOMICILE_IN_USE = 13,
    /**
     * These addresses cannot be given colors: nothing is mapped there, or a file, or shared memory. Nothing was lost.
     */
    DOMICILE_UNFIT = 14,
    /**
     * The kernel refused; the message gives details. Nothing was lost.
     */
    DOMICILE_REFUSED = 15,
} domicile_error;

/**
 * The order in which bins run.
 */
typedef enum domicile_tour {
    /**
     * In the order in which their blocks were first used, as in the paper.
     */
    DOMICILE_TOUR_FIRST_FORK = 0,
    /**
     * From each bin to the nearest remaining one.
     */
    DOMICILE_TOUR_NEAREST = 1,
    /**
     * Along a Hilbert curve.
     */
    DOMICILE_TOUR_HILBERT = 2,
} domicile_tour;

/**
 * The purpose of a slot.
 */
typedef enum domicile_slot_kind {
    /**
     * For data with weak locality: the slot may share its colors with other shared slots, even of other programs.
     */
    DOMICILE_SLOT_SHARED = 1,
    /**
     * For data with strong locality: no other slot gets its colors.
     */
    DOMICILE_SLOT_PRIVATE = 2,
} domicile_slot_kind;

/**
 * Other users of memory while it gets its colors.
 */
typedef enum domicile_others {
    /**
     * None: the caller promises that no other thread and no system call reads or writes the ranges meanwhile. Fast,
     * and any user may do it.
     */
    DOMICILE_OTHERS_ABSENT = 0,
    /**
     * Threads continue to read and write, and wait while a page is being moved. System calls may too, which takes a
     * privilege (`domicile doctor` reports it); without it the call is refused. Meanwhile, fork, vfork and posix_spawn
     * may make children; _Fork or a bare clone may do so only with CAP_SYS_PTRACE, else the child may find zeros. A
     * thread that is created meanwhile, on a stack in the ranges, must not end before the call does. Alternate signal
     * stacks (sigaltstack) of other threads are moved like other data, since the kernel does not say where they are: a
     * signal that arrives there meanwhile waits for its page. The caller's own alternate stack stays where it is.
     */
    DOMICILE_OTHERS_RUNNING = 1,
} domicile_others;

/**
 * The source of the color bits of an address.
 */
typedef enum domicile_colors_source {
    /**
     * No source is needed: the program is being recorded, or slots are ways of the caches and not colors.
     */
    DOMICILE_COLORS_NONE = 0,
    /**
     * Timing on this machine, since its last boot.
     */
    DOMICILE_COLORS_VALIDATED = 1,
    /**
     * The user or the program, whatever the probe found.
     */
    DOMICILE_COLORS_FORCED = 2,
} domicile_colors_source;

/**
 * How the threads of a program find a copy. Linux keeps no copies by itself, so nothing here is
 * transparent: a program asks for a copy by entering a region.
 */
typedef enum domicile_replicated_mode {
    /**
     * One copy for all nodes, because more are impossible or after a collapse; domicile_replicated_means() says why.
     */
    DOMICILE_REPLICATED_ONE = 1,
    /**
     * A copy on each node that has cpus and had memory.
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
 * Data that is assigned to one of the caches. The workers end when the last home is destroyed.
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
 * A copy that stays as it was when it was requested.
 */
typedef struct domicile_replicated_kept domicile_replicated_kept;

/**
 * One thread's access to replicated data.
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
 * The attributes of an order. Zeros are the defaults, so fill it with zeros (`= {0}`, memset), set size, and then what
 * should differ.
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
     * The order in which bins run, a domicile_tour.
     */
    uint32_t tour;
    /**
     * Not 0: threads with the same hints in another order go to the same bin. All sides of the
     * block must be equal.
     */
    uint32_t fold;
    /**
     * The sides of a block, in the units of the hints (bytes, if they are addresses); 0: the default, which is the
     * cache that this process actually gets, or the TLB's reach if that is smaller, in bytes divided by the number of
     * hints.
     */
    uint64_t block[DOMICILE_HINTS_MAX];
    /**
     * How many further caches to optimize for, at most DOMICILE_LEVELS_MAX: bins of bins.
     */
    uint32_t levels;
    /**
     * The expected number of bins; there may be more.
     */
    uint32_t bins;
    /**
     * The sides of the blocks for each further cache, from the inside out; each is a multiple of the next inner one.
     */
    uint64_t outer[DOMICILE_LEVELS_MAX][DOMICILE_HINTS_MAX];
    /**
     * For the default block: bytes of cache; 0: as measured on this machine.
     */
    uint64_t cache_bytes;
    /**
     * For the default block: bytes that the TLB reaches; 0: as measured on this machine, or unknown.
     */
    uint64_t tlb_reach_bytes;
    /**
     * Not 0, with several workers on a machine with several caches: in each run, a bin runs at the cache that has its
     * block from the run before, and the workers, including the caller, are pinned to the cpus of their caches during
     * a run. 1: the first runs are timed with and without, and the faster way is kept. 2: always.
     */
    uint64_t at_caches;
} domicile_order_attributes;

/**
 * The result of a run. Set size before the call.
 */
typedef struct domicile_order_report {
    /**
     * sizeof(domicile_order_report), which tells the library what the program was compiled with.
     */
    size_t size;
    /**
     * Threads that ran, including those that running threads forked.
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
     * 1 if bins ran at the caches of their blocks, otherwise 0.
     */
    uint64_t at_caches;
} domicile_order_report;

/**
 * The requests of an application. Zeros are the defaults, so fill it with zeros (`= {0}`, memset), set size, and then
 * what should differ.
 */
typedef struct domicile_slots_attributes {
    /**
     * sizeof(domicile_slots_attributes), which tells the library what the program was compiled
     * with.
     */
    size_t size;
    /**
     * The processors that the application will run on, where a processor is everything behind one shared cache. 0, or
     * more than there are: all that this process may use.
     */
    uint32_t processors;
    /**
     * Not 0: use the colors given here, although the probe did not validate them. The environment variable
     * DOMICILE_COLORS=force:first_bit:bits:color_bytes does the same.
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
     * With force: bytes of cache per color.
     */
    uint64_t color_bytes;
    /**
     * Not 0: collect frames in this process even if there is a daemon.
     */
    uint32_t without_daemon;
    /**
     * Not 0: if nobody has looked for colors since the machine started, look now, which takes about two seconds.
     * Otherwise the call fails and names `domicile probe`.
     */
    uint32_t measure;
} domicile_slots_attributes;

/**
 * The state of an application. Set size before the call.
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
     * The number of shared caches of the application's processors.
     */
    uint32_t caches;
    /**
     * Bytes of cache per color; 0 where slots are ways of the caches.
     */
    uint64_t color_bytes;
    /**
     * Bytes that are still available, in all these caches together.
     */
    uint64_t available;
    /**
     * The source of the colors, a domicile_colors_source.
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
 * The result of an allocation. Set size before the call.
 */
typedef struct domicile_allocation {
    /**
     * sizeof(domicile_allocation), which tells the library what the program was compiled with.
     */
    size_t size;
    /**
     * How many colors the data set has now.
     */
    uint32_t colors;
    /**
     * How many shared caches it has them in.
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
     * Untouched pages that got a frame.
     */
    uint64_t filled;
    /**
     * Pages that got another frame, with their contents.
     */
    uint64_t exchanged;
    /**
     * Pages that could not be given an allowed color; their contents are unchanged. domicile_slots_message() explains
     * the first one.
     */
    uint64_t left;
    /**
     * Bytes of the ranges that lie on pages which the ranges cover only in part: they stay where they are.
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
     * Pages whose frame this process is not allowed to know.
     */
    uint64_t unknown;
} domicile_census;

/**
 * The state of replicated data. Set size before the call.
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
     * How many nodes with cpus have no copy; their threads read the nearest one.
     */
    uint32_t without;
    /**
     * Not 0: each entry takes a full memory barrier, some 5 ns, since membarrier(2) does not work
     * here.
     */
    uint32_t readers_pay;
    /**
     * Bytes of the contents, counted once.
     */
    uint64_t bytes;
    /**
     * Bytes of memory of all copies, in whole pages. During a write both the old and the new copies exist.
     */
    uint64_t memory;
    /**
     * Of these, the bytes beyond one copy: the cost of the replicas.
     */
    uint64_t extra;
    /**
     * How often the contents were written.
     */
    uint64_t writes;
} domicile_replicated_state;

/**
 * The fate of the calls so far, and the cost of one. Set size before the call.
 */
typedef struct domicile_caches_state {
    /**
     * sizeof(domicile_caches_state), which tells the library what the program was compiled with.
     */
    size_t size;
    /**
     * The number of caches to ship to. 1: all work runs on its caller's thread, since shipping gains nothing.
     */
    uint64_t caches;
    /**
     * Nanoseconds for an empty round trip to a worker that polls for work; measured at the start.
     */
    uint64_t hand_over_ns;
    /**
     * The same for a worker that sleeps, as it does after a millisecond without work.
     */
    uint64_t wake_ns;
    /**
     * Calls whose work went to another cache.
     */
    uint64_t shipped;
    /**
     * Calls that ran on the caller's thread, because the thread was at the cache already,
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
     * the home's work takes less time than four hand-overs, on average,
     */
    uint64_t too_short;
    /**
     * the caller was already eight levels deep in nested shipped work,
     */
    uint64_t nested;
    /**
     * or shipped calls were not faster when calls were timed both ways in turn. That is tried again from time to time.
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
 * attributes may be NULL: all defaults. If the call fails, *order is NULL, and domicile_order_message(NULL) says why.
 */
enum domicile_error domicile_order_create(const struct domicile_order_attributes *attributes,
                                          struct domicile_order **order);

/**
 * Frees an order with all its pending threads, which do not run. NULL is allowed; a running order is not freed
 * (DOMICILE_RUNNING). Do not use the handle afterwards.
 */
enum domicile_error domicile_order_destroy(struct domicile_order *order);

/**
 * Reserves memory for this many threads in this many bins, so that later forks need no allocation for them.
 */
enum domicile_error domicile_order_reserve(struct domicile_order *order,
                                           size_t threads,
                                           size_t bins);

/**
 * Runs all pending threads, bin by bin, and returns when they and the threads that they forked have run.
 *
 * With keep = 0 the threads are then forgotten; otherwise they stay for the next run. report may be NULL. A thread's
 * function must return: leaving it by longjmp or by a C++ exception ends the program or worse. A Rust function that
 * panics ends the run with DOMICILE_PANIC. If the caller is cancelled (pthread_cancel) during the run, the
 * cancellation takes effect after the run.
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
 * hints points to as many hints as the attributes say: addresses, or coordinates. Threads whose hints lie in the same
 * block run together, in the order of their forks. thread may be NULL; otherwise *thread receives the thread's id, for
 * dependencies. A running thread may fork: the new thread runs in the same run, and its id is DOMICILE_NO_THREAD; it
 * is forgotten after the run even if the run keeps its threads.
 */
enum domicile_error domicile_order_fork(struct domicile_order *order,
                                        void (*f)(void*, void*),
                                        void *arg1,
                                        void *arg2,
                                        const uint64_t *hints,
                                        uint64_t *thread);

/**
 * Forks a thread that runs after the count threads whose ids are at earlier. Those that have already run do not delay
 * it. Not for running threads.
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
 * Makes a pending thread run after another one. A cycle is refused (DOMICILE_CYCLE), and the message names it. Not for
 * running threads.
 */
enum domicile_error domicile_order_depend(struct domicile_order *order,
                                          uint64_t later,
                                          uint64_t earlier);

/**
 * How many threads are pending; 0 for NULL and while the order runs.
 */
uint64_t domicile_order_pending(const struct domicile_order *order);

/**
 * The number of the worker that runs the calling thread, from 0; -1 when the caller is not a running thread of the
 * order.
 */
int domicile_order_worker(const struct domicile_order *order);

/**
 * The side of a block along a dimension, in the units of the hints; 0 if there is no such dimension.
 */
uint64_t domicile_order_block(const struct domicile_order *order,
                              uint32_t dimension);

/**
 * Why the block has its sides: which limit was chosen, and from which figures. Lives as long as the order.
 */
const char *domicile_order_reason(const struct domicile_order *order);

/**
 * The message of the last failed call, in words for people; empty if none has failed. It lives until the next call for
 * the order fails. For NULL: the message of the last domicile_order_create that failed on this thread of the operating
 * system.
 */
const char *domicile_order_message(const struct domicile_order *order);

/**
 * Sets what th_init cannot, for th_fork and th_run: workers, tour, levels, sides that differ. hints is 0 or 3. A later
 * th_init changes only the sides and the expected number of bins.
 *
 * Without this call, the environment variables DOMICILE_WORKERS (a number) and DOMICILE_TOUR (first-fork, nearest or
 * hilbert) configure a program that uses only the paper's calls.
 */
enum domicile_error domicile_th_configure(const struct domicile_order_attributes *attributes);

/**
 * Reports on the last th_run.
 */
enum domicile_error domicile_th_report(struct domicile_order_report *report);

/**
 * Returns why the last failed th_init, th_run, domicile_th_configure or domicile_th_report did nothing (a
 * domicile_error), and clears it; DOMICILE_OK if none failed. A failure of th_fork or th_run that would lose a thread
 * ends the program instead.
 */
int domicile_th_error(void);

/**
 * The version of the library, as in "0.1.0".
 */
const char *domicile_version(void);

/**
 * The message of the calling thread's last failed call for slots, in words for people; empty if none has failed. It
 * lives until the thread's next call fails, for slots, replicated data or caches.
 */
const char *domicile_slots_message(void);

/**
 * Opens an application: finds the shared caches and their colors, and connects to the daemon where one runs.
 *
 * attributes may be NULL: all defaults. If the call fails, *slots is NULL, and domicile_slots_message() says why and
 * what to change: DOMICILE_UNAVAILABLE if colors are neither validated on this machine nor forced.
 *
 * If `domicile probe` found no colors and resctrl is mounted and writable, the application has ways of the outermost
 * cache instead: threads that use data in private slots share the ways of all these slots; no page moves.
 * domicile_slots_message() and domicile_slots_means() say so. This is untested on hardware.
 */
enum domicile_error domicile_slots_open(const struct domicile_slots_attributes *attributes,
                                        struct domicile_slots **slots);

/**
 * Ends an application with its slots, groups and data sets. The data stays where it is; memory from
 * domicile_slot_memory stays, and is freed with domicile_slot_memory_free. Calls that other threads are making finish
 * first. NULL is allowed.
 */
enum domicile_error domicile_slots_close(struct domicile_slots *slots);

/**
 * Bytes of cache that the application can still get, in all shared caches of its processors together; 0 if there is no
 * such application.
 */
uint64_t domicile_slots_available(const struct domicile_slots *slots);

/**
 * The state of an application: its colors, their source, what is left.
 */
enum domicile_error domicile_slots_ask(const struct domicile_slots *slots,
                                       struct domicile_slots_state *state);

/**
 * The facilities of the system that are in use and why, in words for people, a line for each. Lives until the
 * application is closed.
 */
const char *domicile_slots_means(const struct domicile_slots *slots);

/**
 * Defines a slot of this many bytes in each shared cache whose processors use it; kind is a domicile_slot_kind. Its
 * colors are chosen when a data set is allocated to it.
 */
enum domicile_error domicile_slot_create(struct domicile_slots *slots,
                                         uint64_t bytes,
                                         uint32_t kind,
                                         struct domicile_slot **slot);

/**
 * Destroys a slot. Data sets in it stay there, and its colors become free with the last of them. NULL is allowed.
 */
enum domicile_error domicile_slot_destroy(struct domicile_slot *slot);

/**
 * Binds the caller to the number by which groups know it, any integer. Data sets that are allocated for the first time
 * afterwards count it on the processors that it may use.
 */
enum domicile_error domicile_slots_bind(struct domicile_slots *slots,
                                        int64_t thread);

/**
 * Makes an empty group, which stands for all threads of the program.
 */
enum domicile_error domicile_thread_group_create(struct domicile_slots *slots,
                                                 struct domicile_thread_group **group);

/**
 * Adds a thread, by its number, any integer. A caller that is not bound yet is bound to the number it gives; other
 * threads bind themselves (domicile_slots_bind), before or after. As long as a thread of the group is not bound, it
 * may run on any of the application's processors.
 */
enum domicile_error domicile_thread_group_add(struct domicile_thread_group *group,
                                              int64_t thread);

/**
 * Adds whatever runs on a processor, by the kernel's number.
 */
enum domicile_error domicile_thread_group_add_cpu(struct domicile_thread_group *group,
                                                  uint32_t cpu);

/**
 * Destroys a group; data sets that were made with it keep their threads. NULL is allowed.
 */
enum domicile_error domicile_thread_group_destroy(struct domicile_thread_group *group);

/**
 * Makes an empty data set for the threads of a group; NULL stands for all threads.
 */
enum domicile_error domicile_data_set_create(struct domicile_slots *slots,
                                             struct domicile_thread_group *group,
                                             struct domicile_data_set **set);

/**
 * Adds this many bytes from an address on. They get their colors in the next domicile_data_set_allocate, and must be
 * mapped then.
 */
enum domicile_error domicile_data_set_add(struct domicile_data_set *set,
                                          const void *start,
                                          size_t bytes);

/**
 * Gives all pages of a data set frames of the slot's colors; slot NULL: confines them to the fewest colors, because
 * they are not worth caching. others is a domicile_others; done may be NULL. Contents stay intact whatever the result.
 *
 * The whole data set is refused (DOMICILE_UNFIT), before anything is moved, if a single page cannot have a color:
 * nothing is mapped there, it is shared memory or a file's own page, it may not be read and written, or it is
 * executable. Such a page is surely not what the caller meant. domicile_slots_message names it; make the data set from
 * the memory around it. Pages that merely cannot be moved at the moment stay, and are counted in done.
 *
 * While others run, mremap and move_pages wait for the end of a batch; the library interposes these two functions.
 * Direct system calls do not wait: mremap may then fail with EFAULT where part of its pages is being colored, with
 * some of them moved, and move_pages may report ENOENT.
 */
enum domicile_error domicile_data_set_allocate(struct domicile_data_set *set,
                                               struct domicile_slot *slot,
                                               uint32_t others,
                                               struct domicile_allocation *done);

/**
 * The colors of a data set, lowest first: at most `room` of them are stored at colors, which may be NULL if room is 0;
 * *count is how many there are.
 */
enum domicile_error domicile_data_set_colors(const struct domicile_data_set *set,
                                             uint32_t *colors,
                                             size_t room,
                                             size_t *count);

/**
 * Counts the pages of a data set by the current colors of their frames: the kernel may have exchanged some since the
 * allocation.
 */
enum domicile_error domicile_data_set_census(const struct domicile_data_set *set,
                                             struct domicile_census *census);

/**
 * Gives pages whose frames now have another color frames of the right ones; census may be NULL, otherwise it receives
 * the counts afterwards. The process must be allowed to read frame numbers (CAP_SYS_ADMIN), otherwise
 * DOMICILE_UNAVAILABLE; allocating again gives all pages new frames instead.
 */
enum domicile_error domicile_data_set_repair(struct domicile_data_set *set,
                                             uint32_t others,
                                             struct domicile_census *census);

/**
 * Destroys a data set. Its data stays where it is; its share of a slot becomes free for other data sets. Call it
 * before the data's memory is freed. NULL is allowed.
 */
enum domicile_error domicile_data_set_destroy(struct domicile_data_set *set);

/**
 * Allocates memory of at least this many bytes, filled with zeros, whose frames have the slot's colors, for the
 * threads of a group (NULL: all). It begins on a page boundary and shares no page.
 */
enum domicile_error domicile_slot_memory(struct domicile_slots *slots,
                                         struct domicile_slot *slot,
                                         struct domicile_thread_group *group,
                                         size_t bytes,
                                         void **memory);

/**
 * Frees memory from domicile_slot_memory, before or after its application was closed. NULL is allowed.
 */
enum domicile_error domicile_slot_memory_free(void *memory);

/**
 * The message of the calling thread's last failed call for replicated data, in words for people; empty if none has
 * failed. It lives until the thread's next call fails, for replicated data, slots or caches.
 */
const char *domicile_replicated_message(void);

/**
 * Makes replicated data of this many bytes, with a copy on each memory node that has cpus. The contents are copied.
 * The number of bytes never changes. Each copy begins on a page boundary.
 *
 * A node that cannot have a copy has none, and a machine with one node has one copy: domicile_replicated_ask() and
 * domicile_replicated_means() report this. If the call fails (0 bytes, no memory), *replicated is NULL.
 */
enum domicile_error domicile_replicated_create(const void *contents,
                                               size_t bytes,
                                               struct domicile_replicated **replicated);

/**
 * Destroys replicated data. Its copies stay until its last reader is also destroyed. NULL is allowed.
 */
enum domicile_error domicile_replicated_destroy(struct domicile_replicated *replicated);

/**
 * Makes a reader for the calling thread. No other thread may use it, and the thread must destroy it before it ends.
 */
enum domicile_error domicile_replicated_reader_create(const struct domicile_replicated *replicated,
                                                      struct domicile_replicated_reader **reader);

/**
 * Destroys a reader, which leaves its region. NULL is allowed.
 */
enum domicile_error domicile_replicated_reader_destroy(struct domicile_replicated_reader *reader);

/**
 * Enters a region: returns the copy of the thread's current node. It has as many bytes as were given to
 * domicile_replicated_create(), and is read-only, until domicile_replicated_leave(). A write to it raises SIGSEGV.
 *
 * Writers wait for the region to end: keep regions short. A thread that moves to another node meanwhile gets that
 * node's copy with its next region. Returns NULL if the reader is NULL or already inside a region.
 */
const void *domicile_replicated_enter(struct domicile_replicated_reader *reader);

/**
 * Leaves the region, if the reader is in one. Do not read what domicile_replicated_enter() returned any more. NULL is
 * allowed.
 */
void domicile_replicated_leave(struct domicile_replicated_reader *reader);

/**
 * Keeps the copy of the caller's node as it is now, for programs that cannot say when a region ends.
 *
 * Later writes do not change it, and writers do not wait for it. Its memory stays in use until
 * domicile_replicated_kept_destroy(), even after the replicated data is destroyed.
 */
enum domicile_error domicile_replicated_keep(const struct domicile_replicated *replicated,
                                             struct domicile_replicated_kept **kept);

/**
 * The start of the bytes of a kept copy, which is read-only. NULL if kept is NULL.
 */
const void *domicile_replicated_kept_start(const struct domicile_replicated_kept *kept);

/**
 * Frees a kept copy, on any thread. NULL is allowed.
 */
enum domicile_error domicile_replicated_kept_destroy(struct domicile_replicated_kept *kept);

/**
 * Replaces the bytes from offset up to offset + bytes, in all copies.
 *
 * When it returns, nobody reads the old contents any more, on any node; nobody has seen part of the write. It waits
 * for all threads that are inside a region, and for other writers. Twice the memory is in use meanwhile. Nothing was
 * changed if it fails with DOMICILE_INVALID (beyond the end), DOMICILE_IN_USE (the calling thread is inside a region
 * of this data and would wait for itself), DOMICILE_OUT_OF_MEMORY, DOMICILE_UNKNOWN_HANDLE (this process is a child of
 * fork; it must make its own data) or DOMICILE_UNAVAILABLE (the kernel refuses membarrier(2)). DOMICILE_REFUSED: the
 * new contents are in place, but threads inside a region may still read the old ones.
 */
enum domicile_error domicile_replicated_write(struct domicile_replicated *replicated,
                                              size_t offset,
                                              const void *contents,
                                              size_t bytes);

/**
 * Frees all copies but that of the caller's node, and so the memory of the replicas. It waits and fails as
 * domicile_replicated_write() does.
 */
enum domicile_error domicile_replicated_collapse(struct domicile_replicated *replicated);

/**
 * Makes a copy on each node with cpus that has none, if the node has memory now. It waits and fails as
 * domicile_replicated_write() does.
 */
enum domicile_error domicile_replicated_replicate(struct domicile_replicated *replicated);

/**
 * The state of replicated data: its mode, how many copies there are, and their cost.
 */
enum domicile_error domicile_replicated_ask(const struct domicile_replicated *replicated,
                                            struct domicile_replicated_state *state);

/**
 * The same in words for people: which nodes have a copy, and why others have none. The words live as long as those of
 * domicile_replicated_message(), and replace them.
 */
const char *domicile_replicated_means(const struct domicile_replicated *replicated);

/**
 * The message of the calling thread's last failed call for caches, in words; empty if none has failed. It lives until
 * the thread's next call fails, for caches, slots or replicated data.
 */
const char *domicile_ship_message(void);

/**
 * Starts a worker on each cache that the calling thread may use, at the outermost level of which the machine has
 * several caches. With one cache there are no workers, and all work runs on its caller's thread.
 *
 * DOMICILE_UNAVAILABLE: the caches cannot be read, or a thread cannot be started; *caches is then NULL.
 */
enum domicile_error domicile_caches_start(struct domicile_caches **caches);

/**
 * Releases the caches. The workers end with the last home. NULL is allowed.
 */
enum domicile_error domicile_caches_end(struct domicile_caches *caches);

/**
 * Reports the fate of the calls so far, and the cost of one.
 */
enum domicile_error domicile_caches_ask(const struct domicile_caches *caches,
                                        struct domicile_caches_state *state);

/**
 * Assigns data of this many bytes to the cache with the least data so far. Handles must be alive: these calls do not
 * check them.
 */
enum domicile_error domicile_home_create(const struct domicile_caches *caches,
                                         uint64_t bytes,
                                         struct domicile_home **home);

/**
 * Frees the room in the cache. NULL is allowed.
 */
enum domicile_error domicile_home_destroy(struct domicile_home *home);

/**
 * The number of a home's cache, from 0; UINT32_MAX if home is NULL.
 */
uint32_t domicile_home_cache(const struct domicile_home *home);

/**
 * Calls work(argument) at the cache of its data, and returns when work has returned. Its value is stored in *value,
 * which may be NULL. Any thread may call, and work may ship other work.
 *
 * If shipping cannot pay, work runs on the caller's thread; domicile_caches_ask() counts the reasons. Work must
 * return: leaving it by longjmp, by pthread_exit or by a C++ exception ends the program or worse. It must hold no lock
 * that other shipped work waits for, and must wait for no other thread that ships: there is one worker for each cache.
 * A Rust function that panics is DOMICILE_PANIC, with its words as the message. If the caller is cancelled
 * (pthread_cancel) during the call, that takes effect after it has returned.
 *
 * Workers block all signals except those of faults (SIGSEGV, SIGBUS, SIGFPE and the like), and a program that work
 * starts inherits the mask: reset it first. Destroy no home while a call uses it, nor in an exit handler if work may
 * call exit.
 */
enum domicile_error domicile_ship(const struct domicile_home *home,
                                  void *(*work)(void*),
                                  void *argument,
                                  void **value);

/**
 * Makes data of this many bytes, to be shared with other processes, with a copy on each memory node that has cpus. The
 * contents are copied. The number of bytes never changes.
 *
 * Other processes receive domicile_shared_replicas_descriptor(), as children of fork and exec or over a Unix socket,
 * and call domicile_shared_replicas_attach(). They must trust each other: each holder of the descriptor can write to
 * all of the data. If the call fails, *shared is NULL, and domicile_replicated_message() says why.
 */
enum domicile_error domicile_shared_replicas_create(const void *contents,
                                                    size_t bytes,
                                                    struct domicile_shared_replicas **shared);

/**
 * The same with copies on the given nodes, by the kernel's numbers: the master on the first, a replica on each other.
 * A node may occur more than once. Without nodes there is one copy, anywhere.
 */
enum domicile_error domicile_shared_replicas_create_on(const void *contents,
                                                       size_t bytes,
                                                       const uint32_t *nodes,
                                                       size_t count,
                                                       struct domicile_shared_replicas **shared);

/**
 * Attaches this process to the data behind a descriptor that another process created. The descriptor is duplicated:
 * the caller may close its own.
 *
 * The bytes appear at the same address as in the other processes. DOMICILE_INVALID: the descriptor is for something
 * else. DOMICILE_REFUSED: this process has something else at the address, or is attached already; or there are too
 * many processes.
 */
enum domicile_error domicile_shared_replicas_attach(int descriptor,
                                                    struct domicile_shared_replicas **shared);

/**
 * Detaches this process. Do not read the bytes any more; other processes keep them. NULL is allowed. A child of fork
 * may call it for its parent's object.
 */
enum domicile_error domicile_shared_replicas_destroy(struct domicile_shared_replicas *shared);

/**
 * The descriptor with which other processes attach. The object owns it; it lives as long as the object, and is closed
 * on exec unless the program changes that (FD_CLOEXEC). -1 if shared is NULL.
 */
int domicile_shared_replicas_descriptor(const struct domicile_shared_replicas *shared);

/**
 * The start of the bytes, the same in each process. Any thread may read them at any time until
 * domicile_shared_replicas_destroy(). A write to them raises SIGSEGV, and so does a read in a child of fork. NULL if
 * shared is NULL.
 *
 * It is shared memory: a reader may see part of a write while another process writes. Every process sees the new bytes
 * once the write has returned.
 */
const void *domicile_shared_replicas_start(const struct domicile_shared_replicas *shared);

/**
 * The number of bytes. 0 if shared is NULL.
 */
size_t domicile_shared_replicas_bytes(const struct domicile_shared_replicas *shared);

/**
 * Makes this process read the copy of the calling thread's node: for use after the thread was moved there. All threads
 * of a process read the same copy.
 */
enum domicile_error domicile_shared_replicas_follow(struct domicile_shared_replicas *shared);

/**
 * Writes bytes from offset on, for all processes. Before anything is written, all of them switch to one copy, and stay
 * with it until one of them replicates; when the call returns, every process reads the new bytes.
 *
 * Writers wait for each other and for each process to switch. Nothing was changed if it fails with DOMICILE_INVALID
 * (beyond the end) or DOMICILE_UNKNOWN_HANDLE (this process is a child of fork; it must attach itself, in its own
 * program). DOMICILE_REFUSED: the kernel refused memory or a mapping.
 */
enum domicile_error domicile_shared_replicas_write(struct domicile_shared_replicas *shared,
                                                   size_t offset,
                                                   const void *contents,
                                                   size_t bytes);

/**
 * Frees all replicas, once every process has switched to the master. It fails as domicile_shared_replicas_write()
 * does.
 */
enum domicile_error domicile_shared_replicas_collapse(struct domicile_shared_replicas *shared);

/**
 * Makes a replica on each node that should have one and has memory for it; the processes switch to their nodes'
 * replicas gradually. It fails as domicile_shared_replicas_write() does.
 */
enum domicile_error domicile_shared_replicas_replicate(struct domicile_shared_replicas *shared);

/**
 * The state of the data: mode, number of copies, and their cost. No read enters a region, so readers_pay is always 0.
 */
enum domicile_error domicile_shared_replicas_ask(const struct domicile_shared_replicas *shared,
                                                 struct domicile_replicated_state *state);

/**
 * The same in words for people; they live as long as those of domicile_replicated_message(), and replace them.
 */
const char *domicile_shared_replicas_means(const struct domicile_shared_replicas *shared);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DOMICILE_H */
