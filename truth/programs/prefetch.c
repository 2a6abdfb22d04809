/* Looks up nodes in random places, and works on each; with prefetches of the nodes to come, or without. */
#include "timed.h"

enum { AHEAD = 12 };

struct node {
   uint64_t key, more[7];
};

int main(int argc, char **argv)
{
   int ahead = variant(argc, argv, "plain", "prefetch");
   size_t n = size_or(argc, argv, 1000000), lookups = 300000;
   struct node *nodes = aligned_alloc(64, n * sizeof *nodes);
   uint32_t *asked = malloc((lookups + AHEAD) * sizeof *asked);
   uint64_t state = 11, sum = 0;
   for (size_t i = 0; i < n; i++)
      nodes[i].key = random_next(&state);
   for (size_t i = 0; i < lookups + AHEAD; i++)
      asked[i] = (uint32_t)(random_next(&state) % n);
   work_begins();
   for (size_t i = 0; i < lookups; i++) {
      if (ahead)
         __builtin_prefetch(&nodes[asked[i + AHEAD]]);
      /* What is done with a key is longer than what a processor looks ahead: without prefetches it waits for each. */
      uint64_t key = nodes[asked[i]].key;
      for (int round = 0; round < 150; round++)
         key = key * 0x9e3779b97f4a7c15ull + sum;
      sum += key >> 7;
   }
   work_ends();
   printf("%llu\n", (unsigned long long)sum);
}
