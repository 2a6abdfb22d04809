/* See measured.h. With WHOLE, what comes before the measured part is recorded, too. */
#define _GNU_SOURCE
#include "measured.h"

#include <domicile-trace.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define REPORTS 16

static struct timespec wall, cpu;
static double seconds, cpu_seconds;
static struct {
   char name[32];
   double value;
} reports[REPORTS];
static int reported;

#ifndef WHOLE
/* Before `main`, so that as little as possible of the start is in a recorded trace. */
__attribute__((constructor)) static void nothing_yet(void) { DOMICILE_RECORD_STOP(); }
#endif

/* FRAME_BEHIND=BYTES: another recording of the same program. So much is mapped first, and never used; what the program
   allocates lies behind it. */
__attribute__((constructor)) static void lie_behind(void)
{
   const char *text = getenv("FRAME_BEHIND");
   if (!text)
      return;
   char *end;
   const unsigned long bytes = strtoul(text, &end, 10);
   if (end == text || *end || mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
      frame_fail("FRAME_BEHIND is no number of bytes that can be mapped");
}

static double since(const struct timespec *start, clockid_t clock)
{
   struct timespec now;
   clock_gettime(clock, &now);
   return (double)(now.tv_sec - start->tv_sec) + 1e-9 * (double)(now.tv_nsec - start->tv_nsec);
}

void frame_begin(void)
{
   clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
   clock_gettime(CLOCK_MONOTONIC, &wall);
   DOMICILE_RECORD_START();
}

void frame_end(void)
{
   DOMICILE_RECORD_STOP();
   seconds += since(&wall, CLOCK_MONOTONIC);
   cpu_seconds += since(&cpu, CLOCK_PROCESS_CPUTIME_ID);
}

double frame_seconds(void) { return seconds; }

double frame_cpu_seconds(void) { return cpu_seconds; }

void frame_report(const char *name, double value)
{
   if (reported == REPORTS)
      frame_fail("more numbers reported than the line of JSON has room for");
   snprintf(reports[reported].name, sizeof reports[reported].name, "%s", name);
   reports[reported++].value = value;
}

void frame_print_reports(void)
{
   int i;
   for (i = 0; i < reported; i++)
      printf(",\"%s\":%.17g", reports[i].name, reports[i].value);
}

void frame_fail(const char *message)
{
   fprintf(stderr, "%s: %s\n", program_invocation_short_name, message);
   exit(1);
}
