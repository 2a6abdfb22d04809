/* Wrappers around GNU OpenMP: the beginning and end of a team, and its barriers. libgomp waits by
   spinning on words that nobody else could tell from data.

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#include "valgrind.h"

#include "wire.h"
#include "wrapper.h"

#define WRAP(name) I_WRAP_SONAME_FNNAME_ZZ(libgompZdsoZa, name)
#define TELL(op, object, value) WRAPPER_TELL(WRAPPER_SYNC, op, object, value)

/* Bound by the loader if the program has libgomp from the start. */
extern int omp_get_num_threads(void) __attribute__((weak));

/* What a team runs, wrapped. Lives on the master's stack, which outlives the team. */
struct team {
   void (*body)(void*);
   void* data;
};

static void team_body(void* argument)
{
   struct team* team = argument;
   TELL(SYNC_TEAM_ENTER, team, 0);
   team->body(team->data);
   TELL(SYNC_TEAM_LEAVE, team, 0);
}

void WRAP(GOMPZuparallel)(void (*body)(void*), void* data, unsigned long threads,
                          unsigned long flags);
void WRAP(GOMPZuparallel)(void (*body)(void*), void* data, unsigned long threads,
                          unsigned long flags)
{
   OrigFn fn;
   struct team team = {body, data};
   VALGRIND_GET_ORIG_FN(fn);
   TELL(SYNC_TEAM_START, &team, threads);
   CALL_FN_v_WWWW(fn, team_body, &team, threads, flags);
   TELL(SYNC_TEAM_END, &team, 0);
}

/* The loops that begin a team and a schedule at once have more arguments: the first two are the
   same, and the team ends when they return. */
#define PARALLEL_LOOP(name)                                                                      \
   void WRAP(name)(void (*body)(void*), void* data, unsigned long a, unsigned long b,            \
                   unsigned long c, unsigned long d, unsigned long e, unsigned long f);          \
   void WRAP(name)(void (*body)(void*), void* data, unsigned long a, unsigned long b,            \
                   unsigned long c, unsigned long d, unsigned long e, unsigned long f)           \
   {                                                                                             \
      OrigFn fn;                                                                                 \
      struct team team = {body, data};                                                           \
      unsigned long unused;                                                                      \
      VALGRIND_GET_ORIG_FN(fn);                                                                  \
      TELL(SYNC_TEAM_START, &team, a);                                                           \
      CALL_FN_W_8W(unused, fn, team_body, &team, a, b, c, d, e, f);                              \
      (void)unused;                                                                              \
      TELL(SYNC_TEAM_END, &team, 0);                                                             \
   }

PARALLEL_LOOP(GOMPZuparallelZuloopZustatic)
PARALLEL_LOOP(GOMPZuparallelZuloopZudynamic)
PARALLEL_LOOP(GOMPZuparallelZuloopZuguided)
PARALLEL_LOOP(GOMPZuparallelZuloopZuruntime)
PARALLEL_LOOP(GOMPZuparallelZuloopZunonmonotonicZudynamic)
PARALLEL_LOOP(GOMPZuparallelZuloopZunonmonotonicZuguided)
PARALLEL_LOOP(GOMPZuparallelZuloopZunonmonotonicZuruntime)
PARALLEL_LOOP(GOMPZuparallelZuloopZumaybeZunonmonotonicZuruntime)

/* Barriers belong to the innermost team; one number serves for all of a process. */
static char barrier_object;

#define BARRIER(name)                                                                            \
   void WRAP(name)(void);                                                                        \
   void WRAP(name)(void)                                                                         \
   {                                                                                             \
      OrigFn fn;                                                                                 \
      VALGRIND_GET_ORIG_FN(fn);                                                                  \
      TELL(SYNC_TEAM_BARRIER, &barrier_object, omp_get_num_threads ? omp_get_num_threads() : 0); \
      CALL_FN_v_v(fn);                                                                           \
   }

BARRIER(GOMPZubarrier)
BARRIER(GOMPZuloopZuend)

/* ---- critical sections ---- */

#define LOCK(name, op_before, op_after)                                                          \
   void WRAP(name)(void* which);                                                                 \
   void WRAP(name)(void* which)                                                                  \
   {                                                                                             \
      OrigFn fn;                                                                                 \
      VALGRIND_GET_ORIG_FN(fn);                                                                  \
      if (op_before)                                                                             \
         TELL(op_before, which, 0);                                                              \
      CALL_FN_v_W(fn, which);                                                                    \
      if (op_after)                                                                              \
         TELL(op_after, which, 0);                                                               \
   }

LOCK(GOMPZucriticalZunameZustart, 0, SYNC_LOCK)
LOCK(GOMPZucriticalZunameZuend, SYNC_UNLOCK, 0)
LOCK(ompZusetZulock, 0, SYNC_LOCK)
LOCK(ompZuunsetZulock, SYNC_UNLOCK, 0)

static char critical_object;

#define CRITICAL(name, op_before, op_after)                                                      \
   void WRAP(name)(void);                                                                        \
   void WRAP(name)(void)                                                                         \
   {                                                                                             \
      OrigFn fn;                                                                                 \
      VALGRIND_GET_ORIG_FN(fn);                                                                  \
      if (op_before)                                                                             \
         TELL(op_before, &critical_object, 0);                                                   \
      CALL_FN_v_v(fn);                                                                           \
      if (op_after)                                                                              \
         TELL(op_after, &critical_object, 0);                                                    \
   }

CRITICAL(GOMPZucriticalZustart, 0, SYNC_LOCK)
CRITICAL(GOMPZucriticalZuend, SYNC_UNLOCK, 0)
