/* The version with slots: see slots.h and team.h. What a program asks goes to the library by the functions of the paper
   (Ding11, section 3.1). A slot that cannot be had ends the program: its times would be reported of a run without. */
#define ULCC_NO_SHORT_NAMES
#include "slots.h"

#include "team.h"

#include <domicile/ulcc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SLOTS_MAX (2 * THREADS_MAX)
#define PAGE 4096

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static ULCC_Slot defined[SLOTS_MAX];
static int slots;
static double seconds;

static void insist(int failed, const char *what)
{
   char why[512];
   if (!failed)
      return;
   snprintf(why, sizeof why, "no %s: %s", what, ULCC_Error());
   frame_fail(why);
}

static double now(void)
{
   struct timespec at;
   clock_gettime(CLOCK_MONOTONIC, &at);
   return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

void slots_open(void) { insist(ULCC_Init(0) != 0, "cache slots"); }

void slots_close(void) { ULCC_Exit(); }

double slots_seconds(void) { return seconds; }

/* The number is the one by which groups of threads know this thread; it is on its cpu by now. */
void slots_enter(int thread)
{
   if (slots_on())
      insist(ULCC_Bind_Thread(thread) != 0, "threads for cache slots");
}

int slot_define(int64_t bytes, int kind)
{
   ULCC_Slot slot;
   int number;
   if (!slots_on())
      return 0;
   slot = ULCC_Cache_Slot((long)(bytes / 1024), kind == SLOT_PRIVATE ? ULCC_PRIVATE : ULCC_SHARED);
   insist(slot == ULCC_NO_SLOT, "cache slot");
   pthread_mutex_lock(&counting);
   number = slots < SLOTS_MAX ? slots++ : -1;
   if (number >= 0)
      defined[number] = slot;
   pthread_mutex_unlock(&counting);
   if (number < 0)
      frame_fail("more slots than there is room for");
   return number;
}

static char *page_up(const void *at) { return (char *)(((uintptr_t)at + PAGE - 1) / PAGE * PAGE); }

void slot_give(int slot, const struct piece *pieces, int count, int first, int last)
{
   const double begun = now();
   ULCC_Threads group = NULL;
   ULCC_Data data;
   int i;
   if (!slots_on())
      return;
   for (i = first; i <= last; i++) {
      group = ULCC_Thread_Group(group, i);
      insist(!group, "group of threads");
   }
   data = ULCC_Data_Set(group);
   insist(!data, "data set");
   for (i = 0; i < count; i++) {
      char *from = page_up(pieces[i].start), *to = page_up((const char *)pieces[i].start + pieces[i].bytes);
      if (to > from)
         insist(ULCC_More_Data(data, from, to) != 0, "data for a data set");
   }
   insist(ULCC_Allocate(data, slot == NOT_CACHED ? NULL : defined[slot]) != 0, "colors for a data set");
   pthread_mutex_lock(&counting);
   seconds += now() - begun;
   pthread_mutex_unlock(&counting);
}
