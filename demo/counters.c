/* Two threads count two different things. */
#include <pthread.h>
#include <stdio.h>

static struct {
   volatile long hits;
   volatile long misses;
} counters;

static void *hit(void *nothing)
{
   for (int i = 0; i < 200000; i++)
      counters.hits += 1;
   return nothing;
}

static void *miss(void *nothing)
{
   for (int i = 0; i < 200000; i++)
      counters.misses += 1;
   return nothing;
}

int main(void)
{
   pthread_t a, b;
   pthread_create(&a, 0, hit, 0);
   pthread_create(&b, 0, miss, 0);
   pthread_join(a, 0);
   pthread_join(b, 0);
   printf("%ld %ld\n", counters.hits, counters.misses);
}
