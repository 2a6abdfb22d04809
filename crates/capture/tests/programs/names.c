/* Data that has names: on the heap, in a struct that two threads write, marked by requests. */
#include <pthread.h>
#include <stdlib.h>

#include "domicile-trace.h"

struct counters {
   long hits;
   struct {
      int x, y;
   } point[2];
};
struct counters counters;

static double* make(int count) { return malloc(count * sizeof(double)); } /* line 15 */

static void* count(void* unused)
{
   int i;
   for (i = 0; i < 10; i++)
      ((volatile struct counters*)&counters)->point[1].y++;
   return unused;
}

int main(void)
{
   pthread_t thread;
   unsigned long long hints[2];
   int i;
   double* heap = make(100);
   char* grown = malloc(10);
   DOMICILE_PHASE("fill");
   DOMICILE_ARRAY("the heap", heap, 100 * sizeof(double));
   hints[0] = (unsigned long long)(size_t)heap;
   hints[1] = 7;
   DOMICILE_WORK_BEGIN(2, hints);
   for (i = 0; i < 100; i++)
      ((volatile double*)heap)[i] = i;
   DOMICILE_WORK_END();
   DOMICILE_RECORD_STOP();
   for (i = 0; i < 100; i++)
      ((volatile double*)heap)[i] = i;
   DOMICILE_RECORD_START();
   grown = realloc(grown, 100000);
   free(grown);
   pthread_create(&thread, 0, count, 0);
   for (i = 0; i < 10; i++)
      ((volatile struct counters*)&counters)->hits++;
   pthread_join(thread, 0);
   free(heap);
   return 0;
}
