/* Tasks, which are run by threads that wait: all of their references are the program's. */
#include <omp.h>
#include <stdio.h>

enum { TASKS = 40, EACH = 100 };
volatile int touched[TASKS * EACH];
volatile long lone;

int main(void)
{
   omp_nest_lock_t lock;
   omp_lock_t other;
   long sum = 0;
   int i;
   omp_init_nest_lock(&lock);
   omp_init_lock(&other);
#pragma omp parallel num_threads(4)
   {
#pragma omp single
      {
         int t;
         for (t = 0; t < TASKS; t++)
#pragma omp task firstprivate(t)
         {
            int k;
            for (k = 0; k < EACH; k++)
               touched[t * EACH + k] = t + k;
         }
#pragma omp taskwait
      }
      omp_set_nest_lock(&lock);
      omp_set_nest_lock(&lock);
      lone++;
      omp_unset_nest_lock(&lock);
      omp_unset_nest_lock(&lock);
      while (!omp_test_lock(&other))
         ;
      lone++;
      omp_unset_lock(&other);
   }
   for (i = 0; i < TASKS * EACH; i++)
      sum += touched[i];
   printf("%ld %ld\n", sum, lone);
   return sum == 40L * 100 * (39 + 99) / 2 && lone == 8 ? 0 : 1;
}
