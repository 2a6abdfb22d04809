/* Parallel regions whose events can be counted: ROUNDS regions, each with a loop, a barrier, a single, a critical
   section, an ordered loop; thread 0 has far more to do than the others, and does even more alone between them.
   Arguments: threads, and where the result goes. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 3, N = 1000, ALONE = 100000 };

volatile int data[N];
volatile long who[64 * 8];
volatile long alone, turns, critical, singles, order;

int main(int argc, char** argv)
{
   int round, threads = 0;
   omp_set_num_threads(atoi(argv[1]));
   for (round = 0; round < ROUNDS; round++) {
#pragma omp parallel
      {
         int me = omp_get_thread_num(), i;
         who[8 * me]++;
         if (me == 0) {
            threads = omp_get_num_threads();
            for (i = 0; i < ALONE; i++)
               alone++;
         }
#pragma omp for schedule(static)
         for (i = 0; i < N; i++)
            data[i] = i + round;
#pragma omp barrier
#pragma omp critical
         critical++;
#pragma omp single
         singles++;
#pragma omp for ordered schedule(static, 1)
         for (i = 0; i < 20; i++) {
#pragma omp ordered
            order = order * 3 % 1000003 + i;
         }
      }
      for (int i = 0; i < ALONE; i++)
         turns++;
   }
   long sum = 0;
   for (int i = 0; i < N; i++)
      sum += data[i];
   FILE* out = fopen(argv[2], "w");
   fprintf(out, "%ld %ld %ld %d %ld %ld %ld %ld\n", sum, alone, turns, threads == critical / ROUNDS, critical / threads,
          singles, order, who[0]);
   return fclose(out);
}
