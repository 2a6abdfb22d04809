/* LLVM's OpenMP (clang, flang): libomp reports teams, barriers and locks by itself, through the tools' interface
   of the standard (OMPT; OpenMP 5.0, chapter 4). It looks for `ompt_start_tool` among all that is loaded.

   The types and numbers below are those of the standard, as far as they are needed: its header comes with the
   compiler, which whoever builds this does not need.

   A thread waits, and what it does is not the program's, from its arrival at a barrier to its release, from the end of
   a region to the begin of the next, from asking for a lock to getting it, and, the master, from its call of the
   runtime to the begin of the region: there libomp lets the others go. Tasks and reductions that libomp runs
   meanwhile are the program's.

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#include "valgrind.h"

#include "wire.h"
#include "wrapper.h"

#define NOTE(op, object, value) WRAPPER_NOTE(WRAPPER_SYNC, op, object, value)

/* ---- the standard's ---- */

union data {
   unsigned long value;
   void* ptr;
};

enum scope { SCOPE_BEGIN = 1, SCOPE_END = 2 };
enum { THREAD_WORKER = 2 };
enum { TASK_INITIAL = 1, TASK_EXPLICIT = 4 };
enum task_status {
   TASK_COMPLETE = 1,
   TASK_YIELD = 2,
   TASK_CANCEL = 3,
   TASK_DETACH = 4,
   TASK_SWITCH = 7,
};
enum sync_region {
   REGION_BARRIER = 1,
   REGION_BARRIER_IMPLICIT = 2,
   REGION_BARRIER_EXPLICIT = 3,
   REGION_BARRIER_IMPLEMENTATION = 4,
   REGION_TASKWAIT = 5,
   REGION_TASKGROUP = 6,
   REGION_REDUCTION = 7,
   REGION_BARRIER_WORKSHARE = 8,
   REGION_BARRIER_PARALLEL = 9,
   REGION_BARRIER_TEAMS = 10,
};
enum { MUTEX_TEST_LOCK = 2, MUTEX_TEST_NEST_LOCK = 4, MUTEX_ORDERED = 7 };
enum callback {
   CALLBACK_THREAD_BEGIN = 1,
   CALLBACK_PARALLEL_BEGIN = 3,
   CALLBACK_PARALLEL_END = 4,
   CALLBACK_TASK_CREATE = 5,
   CALLBACK_TASK_SCHEDULE = 6,
   CALLBACK_IMPLICIT_TASK = 7,
   CALLBACK_SYNC_REGION_WAIT = 16,
   CALLBACK_MUTEX_RELEASED = 17,
   CALLBACK_SYNC_REGION = 23,
   CALLBACK_MUTEX_ACQUIRE = 26,
   CALLBACK_MUTEX_ACQUIRED = 27,
   CALLBACK_NEST_LOCK = 28,
   CALLBACK_REDUCTION = 31,
};

typedef void (*function)(void);
typedef int (*set_callback)(enum callback which, function callback);
struct tool {
   int (*initialize)(function (*lookup)(const char* name), int device, union data* tool);
   void (*finalize)(union data* tool);
   union data tool;
};

/* ---- teams: what a region's data holds is its number, what an implicit task's holds is its team's threads ---- */

/* Beyond all addresses, so that no other object has the same number. */
#define TEAM_FIRST (1ul << 47)
static unsigned long teams;

static void on_thread_begin(int kind, union data* thread)
{
   if (kind == THREAD_WORKER)
      waiting_only(1);
}

static void on_parallel_begin(union data* task, const void* frame, union data* region, unsigned asked, int flags,
                              const void* place)
{
   region->value = TEAM_FIRST + __atomic_fetch_add(&teams, 1, __ATOMIC_RELAXED);
   NOTE(SYNC_TEAM_START, region->value, asked);
   waiting_push(1);
}

static void on_parallel_end(union data* region, union data* task, int flags, const void* place)
{
   waiting_pop();
   NOTE(SYNC_TEAM_END, region->value, 0);
}

static void on_implicit_task(enum scope scope, union data* region, union data* task, unsigned threads,
                             unsigned number, int flags)
{
   if (scope != SCOPE_BEGIN || (flags & TASK_INITIAL) || region == 0)
      return;
   task->value = (unsigned long)threads << 1;
   if (number == 0)
      waiting_is(0);
   else
      waiting_only(0);
   NOTE(SYNC_TEAM_ENTER, region->value, threads);
}

/* ---- barriers ---- */

static void on_sync_region(enum sync_region kind, enum scope scope, union data* region, union data* task,
                           const void* place)
{
   switch (kind) {
   case REGION_BARRIER_PARALLEL:
   case REGION_BARRIER_TEAMS:
      /* The region's own end. The next begin, or the master's end, shows that the wait is over. */
      if (scope == SCOPE_BEGIN && region) {
         NOTE(SYNC_TEAM_LEAVE, region->value, 0);
         waiting_is(1);
      }
      break;
   case REGION_BARRIER:
   case REGION_BARRIER_IMPLICIT:
   case REGION_BARRIER_EXPLICIT:
   case REGION_BARRIER_IMPLEMENTATION:
   case REGION_BARRIER_WORKSHARE:
      if (scope == SCOPE_BEGIN) {
         if (region && task)
            NOTE(SYNC_TEAM_BARRIER, region->value, task->value >> 1);
         waiting_push(1);
      } else {
         waiting_pop();
      }
      break;
   default:
      break;
   }
}

static void on_sync_region_wait(enum sync_region kind, enum scope scope, union data* region, union data* task,
                                const void* place)
{
   if (kind != REGION_TASKWAIT && kind != REGION_TASKGROUP)
      return;
   if (scope == SCOPE_BEGIN)
      waiting_push(1);
   else
      waiting_pop();
}

/* The threads' parts being put together, by whoever comes last or holds the lock. */
static void on_reduction(enum sync_region kind, enum scope scope, union data* region, union data* task,
                         const void* place)
{
   if (scope == SCOPE_BEGIN)
      waiting_push(0);
   else
      waiting_pop();
}

/* ---- tasks: an explicit one's data is 1 ---- */

static void on_task_create(union data* parent, const void* frame, union data* task, int flags, int dependences,
                           const void* place)
{
   if (flags & TASK_EXPLICIT)
      task->value = 1;
}

/* libomp runs a task to its end upon the one that it interrupts. */
static void on_task_schedule(union data* prior, enum task_status status, union data* next)
{
   switch (status) {
   case TASK_SWITCH:
   case TASK_YIELD:
      waiting_push(0);
      break;
   case TASK_COMPLETE:
   case TASK_CANCEL:
   case TASK_DETACH:
      waiting_pop();
      break;
   default:
      break;
   }
}

/* ---- locks ---- */

/* The thread has asked for a lock, and waits. */
static __thread int asked;

static void answered(void)
{
   if (asked)
      waiting_pop();
   asked = 0;
}

static void on_mutex_acquire(int kind, unsigned hint, unsigned implementation, unsigned long object,
                             const void* place)
{
   /* A test is reported only if it succeeds; it does not wait. */
   if (kind == MUTEX_TEST_LOCK || kind == MUTEX_TEST_NEST_LOCK)
      return;
   asked = 1;
   waiting_push(1);
}

/* The owner of a nested lock gets it once more, or gives one of several back. */
static void on_nest_lock(enum scope scope, unsigned long object, const void* place)
{
   if (scope == SCOPE_BEGIN)
      answered();
}

static void on_mutex_acquired(int kind, unsigned long object, const void* place)
{
   answered();
   /* Whose turn it is in an ordered loop: each turn waits for the one before. */
   NOTE(kind == MUTEX_ORDERED ? SYNC_COND_WAITED : SYNC_LOCK, object, 0);
}

static void on_mutex_released(int kind, unsigned long object, const void* place)
{
   NOTE(kind == MUTEX_ORDERED ? SYNC_COND_SIGNAL : SYNC_UNLOCK, object, 0);
}

/* ---- loops being dealt out ---- */

/* Who has which iterations is a matter of some twenty instructions. Debian's libomp, which can be debugged, spends
   thousands on it, with texts that it allocates, fills and throws away: none of that is the program's. All take
   at most nine arguments; how many does not matter to the one that passes them on. */
#define DEALS(name)                                                                              \
   unsigned long I_WRAP_SONAME_FNNAME_ZZ(libompZdsoZa, name)(                                    \
      unsigned long a, unsigned long b, unsigned long c, unsigned long d, unsigned long e,       \
      unsigned long f, unsigned long g, unsigned long h, unsigned long i);                       \
   unsigned long I_WRAP_SONAME_FNNAME_ZZ(libompZdsoZa, name)(                                    \
      unsigned long a, unsigned long b, unsigned long c, unsigned long d, unsigned long e,       \
      unsigned long f, unsigned long g, unsigned long h, unsigned long i)                        \
   {                                                                                             \
      OrigFn fn;                                                                                 \
      unsigned long result;                                                                      \
      VALGRIND_GET_ORIG_FN(fn);                                                                  \
      WRAPPER_ENTER(heap_busy_);                                                                 \
      waiting_push(1);                                                                           \
      CALL_FN_W_9W(result, fn, a, b, c, d, e, f, g, h, i);                                       \
      waiting_pop();                                                                             \
      WRAPPER_LEAVE(heap_busy_);                                                                 \
      return result;                                                                             \
   }

#define DEALS_BY_TYPE(name)                                                                      \
   DEALS(name##Zu4)                                                                              \
   DEALS(name##Zu4u)                                                                             \
   DEALS(name##Zu8)                                                                              \
   DEALS(name##Zu8u)

DEALS_BY_TYPE(ZuZukmpcZuforZustaticZuinit)
DEALS_BY_TYPE(ZuZukmpcZudispatchZuinit)
DEALS_BY_TYPE(ZuZukmpcZudispatchZunext)
DEALS_BY_TYPE(ZuZukmpcZudispatchZufini)

/* ---- the beginning ---- */

static int initialize(function (*lookup)(const char* name), int device, union data* tool)
{
   set_callback set = (set_callback)lookup("ompt_set_callback");
   if (set == 0)
      return 0;
   set(CALLBACK_THREAD_BEGIN, (function)on_thread_begin);
   set(CALLBACK_PARALLEL_BEGIN, (function)on_parallel_begin);
   set(CALLBACK_PARALLEL_END, (function)on_parallel_end);
   set(CALLBACK_IMPLICIT_TASK, (function)on_implicit_task);
   set(CALLBACK_TASK_CREATE, (function)on_task_create);
   set(CALLBACK_TASK_SCHEDULE, (function)on_task_schedule);
   set(CALLBACK_SYNC_REGION, (function)on_sync_region);
   set(CALLBACK_SYNC_REGION_WAIT, (function)on_sync_region_wait);
   set(CALLBACK_REDUCTION, (function)on_reduction);
   set(CALLBACK_MUTEX_ACQUIRE, (function)on_mutex_acquire);
   set(CALLBACK_MUTEX_ACQUIRED, (function)on_mutex_acquired);
   set(CALLBACK_MUTEX_RELEASED, (function)on_mutex_released);
   set(CALLBACK_NEST_LOCK, (function)on_nest_lock);
   return 1;
}

static void finalize(union data* tool) {}

struct tool* ompt_start_tool(unsigned version, const char* runtime);
__attribute__((visibility("default"))) struct tool* ompt_start_tool(unsigned version, const char* runtime)
{
   static struct tool tool = {initialize, finalize, {0}};
   return &tool;
}
