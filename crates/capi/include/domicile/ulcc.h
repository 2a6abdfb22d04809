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
 * What a slot is for; `shared` and `private` in C, as in the paper.
 */
enum ulcc_kind {
    /**
     * For data with weak locality: colors may be those of other shared slots.
     */
    ULCC_SHARED = 1,
    /**
     * For data with strong locality: the slot's colors are nobody else's.
     */
    ULCC_PRIVATE = 2,
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Begins: finds out what the shared caches of so many processors are and which colors they have,
 * and connects to the memory manager (`domicile daemon`) where one runs. A processor is what
 * has a shared cache, as in the paper; 0 and more than there are stand for all of them.
 *
 * Where colors were looked for and not found, and Linux's resctrl is there, the slots are ways of
 * the last cache: all threads that use data in private slots have the ways of these slots
 * together, and nobody else has; data is not kept apart from data, and shared slots take nothing.
 * ULCC_Error() says so after the call. It is untried on hardware.
 *
 * 0, or -1 where no cache can be allocated here; ULCC_Error() tells why. The program may go on
 * calling all the same: what follows fails too and changes nothing. To be called again after
 * ULCC_Exit, and in a process that was forked.
 */
int ULCC_Init(int num_processors);

/**
 * The cache space in KB that the application can use, in all shared caches of its processors
 * together, less what private slots have already; 0 where there is none.
 */
long ULCC_Available_Space_App(void);

/**
 * Defines a slot of so many KB in each shared cache whose processors use it, ULCC_PRIVATE or
 * ULCC_SHARED. Its colors are chosen when a data set is allocated to it.
 *
 * ULCC_NO_SLOT where it fails, which is not NULL: ULCC_Allocate with NULL would say that the data
 * is not worth caching.
 */
ULCC_Slot ULCC_Cache_Slot(long kilobytes, int kind);

/**
 * Adds a thread to a group, which it gives back; makes a group for NULL. NULL where it fails.
 *
 * A thread is any integer by which the program knows it. A caller that is not bound yet
 * (ULCC_Bind_Thread) is bound to the number it gives: data that it uses is cached by the
 * processors that it may run on when the data is allocated. Numbers of other threads may be given
 * as well; as long as such a thread is not bound, it may run on any of the application's
 * processors.
 */
ULCC_Threads ULCC_Thread_Group(ULCC_Threads group, long thread);

/**
 * Makes a data set that these threads use; NULL stands for all threads of the program. NULL where
 * it fails.
 */
ULCC_Data ULCC_Data_Set(ULCC_Threads threads);

/**
 * Adds the memory from an address up to, but not including, another one. 0, or -1 where it fails.
 *
 * Whole pages get colors: one that the ranges of the data set cover in part only stays as it is.
 */
int ULCC_More_Data(ULCC_Data set, const void *from, const void *to);

/**
 * Chooses colors for the slot, where it has none yet, and gives all pages of the data set frames
 * of these colors. With NULL the data is not worth caching: it is confined to the fewest colors.
 * 0, or -1 where it fails, or how many pages could not be given these colors, and are in other
 * frames; contents are intact whatever it comes to.
 *
 * Nobody else may use the data meanwhile, the caller's system calls included; otherwise see
 * ULCC_Allocate_Running.
 */
int ULCC_Allocate(ULCC_Data set, ULCC_Slot slot);

/**
 * The same while other threads read and write the data; not in the paper. It takes a privilege
 * (`domicile doctor` tells) and fails without it.
 *
 * Children may be made meanwhile by fork, vfork and posix_spawn; by _Fork or a bare clone only with
 * CAP_SYS_PTRACE, else such a child may find zeros. A thread that is made meanwhile, on a stack in
 * the data, must not end before the call does.
 */
int ULCC_Allocate_Running(ULCC_Data set, ULCC_Slot slot);

/**
 * Ends. Slots, groups and data sets are no more; the data stays where it is, and its memory is
 * freed as any other. 0, or -1 where there was nothing to end.
 */
int ULCC_Exit(void);

/**
 * Ends a data set; not in the paper. Its data stays where it is; what it had of a slot is free
 * for other data sets. To be called before the data's memory is freed. 0, or -1 where it fails.
 */
int ULCC_Free_Data_Set(ULCC_Data set);

/**
 * Ends a slot; not in the paper. Data sets that are in it stay there, and the last of them takes
 * its colors with it. 0, or -1 where it fails.
 */
int ULCC_Free_Slot(ULCC_Slot slot);

/**
 * The caller is the thread of this number; not in the paper. Data sets that are allocated for the
 * first time from then on find it on the processors that it may use. 0, or -1 where it fails.
 */
int ULCC_Bind_Thread(long thread);

/**
 * Why the caller's last call of these that failed did, in words for people; empty where none has.
 * It lives until the next one fails. After ULCC_Init it may say by which means slots are had.
 */
const char *ULCC_Error(void);

/**
 * The application, for the calls of domicile/domicile.h; slots, groups and data sets are of the
 * same kinds there. NULL before ULCC_Init, after ULCC_Exit, and where ULCC_Init failed.
 */
ULCC_Slots ULCC_Application(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DOMICILE_ULCC_H */
