/* Forks a team for next to nothing, many times, over arrays that were allocated: prints what a fork took the first thread, in
   nanoseconds of its processor time. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TURNS = 100000 };

int main(void)
{
   int count = 512 + (rand() & 1);
   double *from = calloc((size_t)count, sizeof *from), *to = calloc((size_t)count, sizeof *to);
   struct timespec began, ended;
   for (int turn = 0; turn < TURNS; turn++) {
      if (turn == TURNS / 10) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
#pragma omp parallel for schedule(static)
      for (int at = 0; at < count; at++) to[at] = from[at] + 1;
   }
   clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
   printf("%.1f\n", ((double)(ended.tv_sec - began.tv_sec) * 1e9 + (double)(ended.tv_nsec - began.tv_nsec)) / (TURNS * 0.9));
   return to[0] != 1;
}
