/* Wrappers around GNU OpenMP: the beginning and end of a team, its barriers, its locks. libgomp waits by
   spinning on words that nobody else could tell from data: what it does while a thread waits for its team or for
   work is kept out of the trace. LLVM's OpenMP reports by itself (preload_ompt.c).

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#include "valgrind.h"

#include "wire.h"
#include "wrapper.h"

#define WRAP(name) I_WRAP_SONAME_FNNAME_ZZ(libgompZdsoZa, name)
#define NOTE(op, object, value) WRAPPER_NOTE(WRAPPER_SYNC, op, object, value)

__thread unsigned long waiting_;

/* Bound by the loader if the program has libgomp from the start. */
extern int omp_get_num_threads(void) __attribute__((weak));

static int threads_now(void)
{
   return omp_get_num_threads ? omp_get_num_threads() : 0;
}

/* ---- teams ---- */

/* What a team runs, wrapped. Lives on the master's stack, which outlives the team. */
struct team {
   void (*body)(void*);
   void* data;
   unsigned long* master; /* its waiting_, which no other thread has */
};

/* The innermost team of the thread: barriers belong to it. */
static __thread struct team* team_now;
static struct team no_team;

/* A thread that waits at a barrier or at its team's end runs tasks meanwhile, and nobody says which references are
   theirs: where there are tasks, these waits are not taken for such. */
static int has_tasks;

static void team_body(void* argument)
{
   struct team *team = argument, *outer = team_now;
   int is_master = team->master == &waiting_;
   team_now = team;
   if (is_master)
      waiting_is(0);
   else
      waiting_only(0);
   NOTE(SYNC_TEAM_ENTER, team, threads_now());
   team->body(team->data);
   NOTE(SYNC_TEAM_LEAVE, team, 0);
   team_now = outer;
   /* The end of a team is a barrier. */
   waiting_is(!has_tasks);
}

static void team_start(struct team* team, unsigned long threads)
{
   NOTE(SYNC_TEAM_START, team, threads);
   waiting_push(1);
}

static void team_end(struct team* team)
{
   waiting_pop();
   NOTE(SYNC_TEAM_END, team, 0);
}

/* All begin with the body, its data and the number of threads; how many more arguments there are does not matter
   to the one that passes them on. The team has ended when they return. */
#define PARALLEL(name)                                                                           \
   unsigned long WRAP(name)(void (*body)(void*), void* data, unsigned long a, unsigned long b,   \
                            unsigned long c, unsigned long d, unsigned long e, unsigned long f); \
   unsigned long WRAP(name)(void (*body)(void*), void* data, unsigned long a, unsigned long b,   \
                            unsigned long c, unsigned long d, unsigned long e, unsigned long f)  \
   {                                                                                             \
      OrigFn fn;                                                                                 \
      struct team team = {body, data, &waiting_};                                                \
      unsigned long result;                                                                      \
      VALGRIND_GET_ORIG_FN(fn);                                                                  \
      team_start(&team, a);                                                                      \
      CALL_FN_W_8W(result, fn, team_body, &team, a, b, c, d, e, f);                              \
      team_end(&team);                                                                           \
      return result;                                                                             \
   }

PARALLEL(GOMPZuparallel)
PARALLEL(GOMPZuparallelZureductions)
PARALLEL(GOMPZuparallelZusections)
PARALLEL(GOMPZuparallelZuloopZustatic)
PARALLEL(GOMPZuparallelZuloopZudynamic)
PARALLEL(GOMPZuparallelZuloopZuguided)
PARALLEL(GOMPZuparallelZuloopZuruntime)
PARALLEL(GOMPZuparallelZuloopZunonmonotonicZudynamic)
PARALLEL(GOMPZuparallelZuloopZunonmonotonicZuguided)
PARALLEL(GOMPZuparallelZuloopZunonmonotonicZuruntime)
PARALLEL(GOMPZuparallelZuloopZumaybeZunonmonotonicZuruntime)

/* ---- barriers ---- */

static void barrier(void)
{
   NOTE(SYNC_TEAM_BARRIER, team_now ? team_now : &no_team, threads_now());
}

#define BARRIER(name)                                                                            \
   unsigned long WRAP(name)(void);                                                               \
   unsigned long WRAP(name)(void)                                                                \
   {                                                                                             \
      OrigFn fn;                                                                                 \
      unsigned long result;                                                                      \
      VALGRIND_GET_ORIG_FN(fn);                                                                  \
      barrier();                                                                                 \
      waiting_push(!has_tasks);                                                                  \
      CALL_FN_W_v(result, fn);                                                                   \
      waiting_pop();                                                                             \
      return result;                                                                             \
   }

BARRIER(GOMPZubarrier)
BARRIER(GOMPZubarrierZucancel)
BARRIER(GOMPZuloopZuend)
BARRIER(GOMPZuloopZuendZucancel)
BARRIER(GOMPZusectionsZuend)
BARRIER(GOMPZusectionsZuendZucancel)

/* `single copyprivate` is one barrier: the thread that runs the block comes to it afterwards, the others within. */
void* WRAP(GOMPZusingleZucopyZustart)(void);
void* WRAP(GOMPZusingleZucopyZustart)(void)
{
   OrigFn fn;
   void* others;
   VALGRIND_GET_ORIG_FN(fn);
   waiting_push(!has_tasks);
   CALL_FN_W_v(others, fn);
   waiting_pop();
   if (others)
      barrier();
   return others;
}

void WRAP(GOMPZusingleZucopyZuend)(void* data);
void WRAP(GOMPZusingleZucopyZuend)(void* data)
{
   OrigFn fn;
   VALGRIND_GET_ORIG_FN(fn);
   barrier();
   waiting_push(!has_tasks);
   CALL_FN_v_W(fn, data);
   waiting_pop();
}

/* ---- tasks: that there are any ---- */

#define TASKS(name)                                                                              \
   void WRAP(name)(unsigned long a, unsigned long b, unsigned long c, unsigned long d,           \
                   unsigned long e, unsigned long f, unsigned long g, unsigned long h,           \
                   unsigned long i, unsigned long j, unsigned long k);                           \
   void WRAP(name)(unsigned long a, unsigned long b, unsigned long c, unsigned long d,           \
                   unsigned long e, unsigned long f, unsigned long g, unsigned long h,           \
                   unsigned long i, unsigned long j, unsigned long k)                            \
   {                                                                                             \
      OrigFn fn;                                                                                 \
      unsigned long unused;                                                                      \
      VALGRIND_GET_ORIG_FN(fn);                                                                  \
      has_tasks = 1;                                                                             \
      CALL_FN_W_11W(unused, fn, a, b, c, d, e, f, g, h, i, j, k);                                \
      (void)unused;                                                                              \
   }

TASKS(GOMPZutask)
TASKS(GOMPZutaskloop)
TASKS(GOMPZutaskloopZuull)

/* ---- critical sections and locks ---- */

#define LOCK(name, op_before, op_after)                                                          \
   void WRAP(name)(void* which);                                                                 \
   void WRAP(name)(void* which)                                                                  \
   {                                                                                             \
      OrigFn fn;                                                                                 \
      VALGRIND_GET_ORIG_FN(fn);                                                                  \
      if (op_before)                                                                             \
         NOTE(op_before, which, 0);                                                              \
      CALL_FN_v_W(fn, which);                                                                    \
      if (op_after)                                                                              \
         NOTE(op_after, which, 0);                                                               \
   }

LOCK(GOMPZucriticalZunameZustart, 0, SYNC_LOCK)
LOCK(GOMPZucriticalZunameZuend, SYNC_UNLOCK, 0)
LOCK(ompZusetZulock, 0, SYNC_LOCK)
LOCK(ompZuunsetZulock, SYNC_UNLOCK, 0)
LOCK(ompZusetZunestZulock, 0, SYNC_LOCK)
LOCK(ompZuunsetZunestZulock, SYNC_UNLOCK, 0)

#define TEST_LOCK(name)                                                                          \
   int WRAP(name)(void* which);                                                                  \
   int WRAP(name)(void* which)                                                                   \
   {                                                                                             \
      OrigFn fn;                                                                                 \
      int result;                                                                                \
      VALGRIND_GET_ORIG_FN(fn);                                                                  \
      CALL_FN_W_W(result, fn, which);                                                            \
      if (result)                                                                                \
         NOTE(SYNC_LOCK, which, 0);                                                              \
      return result;                                                                             \
   }

TEST_LOCK(ompZutestZulock)
TEST_LOCK(ompZutestZunestZulock)

static char critical_object, atomic_object, ordered_object;

#define CRITICAL(name, op_before, op_after, object, waits)                                       \
   void WRAP(name)(void);                                                                        \
   void WRAP(name)(void)                                                                         \
   {                                                                                             \
      OrigFn fn;                                                                                 \
      VALGRIND_GET_ORIG_FN(fn);                                                                  \
      if (op_before)                                                                             \
         NOTE(op_before, &object, 0);                                                            \
      if (waits)                                                                                 \
         waiting_push(1);                                                                        \
      CALL_FN_v_v(fn);                                                                           \
      if (waits)                                                                                 \
         waiting_pop();                                                                          \
      if (op_after)                                                                              \
         NOTE(op_after, &object, 0);                                                             \
   }

CRITICAL(GOMPZucriticalZustart, 0, SYNC_LOCK, critical_object, 0)
CRITICAL(GOMPZucriticalZuend, SYNC_UNLOCK, 0, critical_object, 0)
CRITICAL(GOMPZuatomicZustart, 0, SYNC_LOCK, atomic_object, 0)
CRITICAL(GOMPZuatomicZuend, SYNC_UNLOCK, 0, atomic_object, 0)
/* Whose turn it is in an ordered loop: each turn waits for the one before. */
CRITICAL(GOMPZuorderedZustart, 0, SYNC_COND_WAITED, ordered_object, 1)
CRITICAL(GOMPZuorderedZuend, SYNC_COND_SIGNAL, 0, ordered_object, 0)
