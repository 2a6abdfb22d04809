/* Describes parallel loops over static arrays before main, and again and again afterwards; prints what a call took, in
   nanoseconds. LOOPS and PAGES (of each of seven arrays) are given when it is compiled. */
#include <domicile/summary.h>
#include <stdio.h>
#include <time.h>

enum { ARRAYS = 7, TURNS = 200000 };

static char arrays[ARRAYS][PAGES][4096] __attribute__((aligned(4096)));
static domicile_summary summaries[LOOPS][ARRAYS];
static domicile_loop loops[LOOPS];
static char places[LOOPS][16];

__attribute__((constructor)) static void before(void)
{
   for (int number = 0; number < LOOPS; number++) {
      snprintf(places[number], sizeof places[number], "loop %d", number);
      for (int array = 0; array < ARRAYS; array++)
         summaries[number][array] = (domicile_summary){.name = "array", .start = arrays[array], .bytes = sizeof arrays[array],
                                                       .unit = 4096, .span = 4096, .communication = DOMICILE_SHIFT,
                                                       .distance = PAGES > 1 ? 4096 * (array % 3 - 1) : 0, .access = DOMICILE_READS};
      loops[number] = (domicile_loop){DOMICILE_SUMMARY_VERSION, ARRAYS, places[number], PAGES, 0, DOMICILE_EVEN, 0, 4, 0,
                                      summaries[number]};
      domicile_parallel_loop(&loops[number]);
   }
}

int main(void)
{
   struct timespec began, ended;
   clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
   for (int turn = 0; turn < TURNS; turn++) domicile_parallel_loop(&loops[turn % LOOPS]);
   clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
   printf("%.1f\n", ((double)(ended.tv_sec - began.tv_sec) * 1e9 + (double)(ended.tv_nsec - began.tv_nsec)) / TURNS);
   return 0;
}
