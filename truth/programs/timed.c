/* See timed.h. */
#include "timed.h"

#include <domicile-trace.h>
#include <time.h>

static struct timespec cpu_began, wall_began;

static long long since(clockid_t clock, const struct timespec *began)
{
   struct timespec now;
   clock_gettime(clock, &now);
   return (now.tv_sec - began->tv_sec) * 1000000000ll + (now.tv_nsec - began->tv_nsec);
}

void work_begins(void)
{
   DOMICILE_PHASE("work");
   clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu_began);
   clock_gettime(CLOCK_MONOTONIC, &wall_began);
}

void work_ends(void)
{
   long long wall = since(CLOCK_MONOTONIC, &wall_began);
   long long cpu = since(CLOCK_PROCESS_CPUTIME_ID, &cpu_began);
   DOMICILE_PHASE("rest");
   fprintf(stderr, "truth: cpu %lld ns, wall %lld ns\n", cpu, wall);
}
