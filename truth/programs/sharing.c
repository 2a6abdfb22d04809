/* Two threads count, each in a word of its own: in one line, or a line apart. Plain words, or atomic ones. */
#include "timed.h"

#include <pthread.h>
#include <stdatomic.h>

enum { APART = 256 };

struct counter {
   void *word;
   size_t rounds;
   int atomic;
};

static void *count(void *given)
{
   const struct counter *counter = given;
   if (counter->atomic) {
      _Atomic uint64_t *word = counter->word;
      for (size_t i = 0; i < counter->rounds; i++)
         atomic_fetch_add_explicit(word, i, memory_order_relaxed);
   } else {
      volatile uint64_t *word = counter->word;
      for (size_t i = 0; i < counter->rounds; i++)
         *word = *word + i;
   }
   return NULL;
}

int main(int argc, char **argv)
{
   const size_t distance = variant(argc, argv, "together", "apart") ? APART : sizeof(uint64_t);
   const size_t rounds = size_or(argc, argv, 10000000);
   const int atomic = argc > 3 && strcmp(argv[3], "atomic") == 0;
   char *room = aligned_alloc(APART, 4 * APART);
   memset(room, 0, 4 * APART);
   struct counter counters[2] = {{room, rounds, atomic}, {room + distance, rounds, atomic}};
   pthread_t other;
   work_begins();
   if (pthread_create(&other, NULL, count, &counters[1]) != 0)
      return 1;
   count(&counters[0]);
   pthread_join(other, NULL);
   work_ends();
   printf("%llu\n", (unsigned long long)(*(uint64_t *)room + *(uint64_t *)(room + distance)));
}
