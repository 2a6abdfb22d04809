/* domicile/ulcc.h: a program says which of its data gets which part of the shared caches.
 *
 * The functions of X. Ding, K. Wang, X. Zhang, "ULCC: A User-Level Facility for Optimizing Shared
 * Cache Performance on Multicores", PPoPP 2011, section 3.1. C99 and C++; link with
 * `pkg-config --cflags --libs domicile`. ulcc(3) says more; domicile/domicile.h has the same with
 * error codes and more to ask (domicile_slots(3)).
 *
 *     ULCC_Init(num_processors);
 *     long space = ULCC_Available_Space_App() / num_threads;
 *
 *     ULCC_Slot slot = ULCC_Cache_Slot(space, private);     // in each thread
 *     ULCC_Threads threads = ULCC_Thread_Group(NULL, my_thread_id);
 *     ULCC_Data data = ULCC_Data_Set(threads);
 *     ULCC_More_Data(data, addr1, addr2);
 *     if (ULCC_Allocate(data, slot) != 0)
 *         fprintf(stderr, "%s\n", ULCC_Error());
 *
 *     ULCC_Exit();
 *
 * Any thread may call at any time. No call ends the program: where something cannot be done, the
 * call says so, and the program runs as it would without it.
 *
 * In C, `private` and `shared` stand for ULCC_PRIVATE and ULCC_SHARED as in the paper; define
 * ULCC_NO_SHORT_NAMES before including to have these names for yourself. In C++ there are none.
 *
 * Generated from crates/capi/src/ulcc.rs by `cargo xtask generate`.
 */

#ifndef DOMICILE_ULCC_H
#define DOMICILE_ULCC_H

#include <stddef.h>

/** A cache space slot: what ULCC_Cache_Slot gives, and ULCC_Allocate takes. */
typedef struct domicile_slot *ULCC_Slot;
/** Threads that use a data set. */
typedef struct domicile_thread_group *ULCC_Threads;
/** A data set. */
typedef struct domicile_data_set *ULCC_Data;
/** The application that the calls are about. */
typedef struct domicile_slots *ULCC_Slots;

/** What ULCC_Cache_Slot gives where it fails. */
#define ULCC_NO_SLOT ((ULCC_Slot)(~(size_t)0))

#if !defined(__cplusplus) && !defined(ULCC_NO_SHORT_NAMES)
/** The kinds of slots as the paper calls them. No macros: a clause of OpenMP may be called the same. */
enum { shared = 1, private = 2 };
#endif

/**
 * The purpose of a slot; `shared` and `private` in C, as in the paper.
 */
enum ulcc_kind {
    /**
     * For data with weak locality: the slot may share its colors with other shared slots.
     */
    ULCC_SHARED = 1,
    /**
     * For data with strong locality: no other slot gets the slot's colors.
     */
    ULCC_PRIVATE = 2,
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Begins: finds the shared caches of this many processors and their colors, and connects to the memory manager
 * (`domicile daemon`) where one runs. A processor is everything behind one shared cache, as in the paper; 0, or more
 * than there are, stands for all of them.
 *
 * If a search found no colors, and Linux's resctrl is there, the slots are ways of the last cache: all threads that
 * use data in private slots share the ways of these slots, and nobody else has them. Data is not separated from other
 * data, and shared slots take nothing. ULCC_Error() says so after the call. This is untested on hardware.
 *
 * Returns 0, or -1 if no cache can be allocated here; ULCC_Error() says why. The program may still make the other
 * calls: they also fail and change nothing. Call it again after ULCC_Exit, and in a child of fork.
 */
int ULCC_Init(int num_processors);

/**
 * The cache space in KB that the application can use, in all shared caches of its processors together, less what
 * private slots have already; 0 if there is none.
 */
long ULCC_Available_Space_App(void);

/**
 * Defines a slot of this many KB in each shared cache whose processors use it, ULCC_PRIVATE or ULCC_SHARED. Its colors
 * are chosen when a data set is allocated to it.
 *
 * Returns ULCC_NO_SLOT if it fails. That is not NULL: ULCC_Allocate with NULL would mean that the data is not worth
 * caching.
 */
ULCC_Slot ULCC_Cache_Slot(long kilobytes, int kind);

/**
 * Adds a thread to a group, and returns the group; NULL makes a group. Returns NULL if it fails.
 *
 * A thread is any integer by which the program knows it. A caller that is not bound yet (ULCC_Bind_Thread) is bound to
 * the number it gives: its data is cached by the processors that it may run on when the data is allocated. Numbers of
 * other threads may be given as well; as long as such a thread is not bound, it may run on any of the application's
 * processors.
 */
ULCC_Threads ULCC_Thread_Group(ULCC_Threads group, long thread);

/**
 * Makes a data set that these threads use; NULL stands for all threads of the program. Returns NULL if it fails.
 */
ULCC_Data ULCC_Data_Set(ULCC_Threads threads);

/**
 * Adds the memory from one address up to, but not including, another. Returns 0, or -1 if it fails.
 *
 * Only whole pages get colors: a page that the ranges of the data set cover in part stays as it is.
 */
int ULCC_More_Data(ULCC_Data set, const void *from, const void *to);

/**
 * Chooses colors for the slot, if it has none yet, and gives all pages of the data set frames of these colors. With
 * NULL the data is not worth caching: it is confined to the fewest colors. Returns 0, or -1 if it fails, or the number
 * of pages that could not be given these colors, and are in other frames; contents stay intact whatever the result.
 *
 * Nobody else may use the data meanwhile, not even the caller's system calls; otherwise see ULCC_Allocate_Running.
 */
int ULCC_Allocate(ULCC_Data set, ULCC_Slot slot);

/**
 * The same while other threads read and write the data; not in the paper. It takes a privilege (`domicile doctor`
 * reports it) and fails without it.
 *
 * Meanwhile, fork, vfork and posix_spawn may make children; _Fork or a bare clone may do so only with CAP_SYS_PTRACE,
 * else the child may find zeros. A thread that is created meanwhile, on a stack in the data, must not end before the
 * call does.
 */
int ULCC_Allocate_Running(ULCC_Data set, ULCC_Slot slot);

/**
 * Ends. Slots, groups and data sets no longer exist; the data stays where it is, and its memory is freed as usual.
 * Returns 0, or -1 if there was nothing to end.
 */
int ULCC_Exit(void);

/**
 * Destroys a data set; not in the paper. Its data stays where it is; its share of a slot becomes free for other data
 * sets. Call it before the data's memory is freed. Returns 0, or -1 if it fails.
 */
int ULCC_Free_Data_Set(ULCC_Data set);

/**
 * Destroys a slot; not in the paper. Data sets in it stay there, and its colors become free with the last of them.
 * Returns 0, or -1 if it fails.
 */
int ULCC_Free_Slot(ULCC_Slot slot);

/**
 * Binds the caller to this thread number; not in the paper. Data sets that are allocated for the first time afterwards
 * count it on the processors that it may use. Returns 0, or -1 if it fails.
 */
int ULCC_Bind_Thread(long thread);

/**
 * The message of the caller's last failed call, in words for people; empty if none has failed. It lives until the next
 * failure. After ULCC_Init it may name the means that provide the slots.
 */
const char *ULCC_Error(void);

/**
 * The application, for the calls of domicile/domicile.h, whose slots, groups and data sets have the same types. NULL
 * before ULCC_Init, after ULCC_Exit, and if ULCC_Init failed.
 */
ULCC_Slots ULCC_Application(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DOMICILE_ULCC_H */
