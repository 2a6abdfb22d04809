/* Numbers are summed: in a linked list whose nodes lie in random order, and in an array. */
#include "timed.h"

struct node {
   struct node *next;
   uint64_t value;
};

int main(int argc, char **argv)
{
   int array = variant(argc, argv, "list", "array");
   size_t n = size_or(argc, argv, 1000000);
   struct node *nodes = malloc(n * sizeof *nodes);
   uint64_t *values = malloc(n * sizeof *values), sum = 0;
   uint32_t *order = shuffled(n, 1);
   for (size_t i = 0; i < n; i++) {
      nodes[order[i]].value = values[i] = i * i;
      nodes[order[i]].next = i + 1 < n ? &nodes[order[i + 1]] : NULL;
   }
   const struct node *first = &nodes[order[0]];
   work_begins();
   for (int pass = 0; pass < 2; pass++) {
      if (array)
         for (size_t i = 0; i < n; i++)
            sum += values[i];
      else
         for (const struct node *node = first; node; node = node->next)
            sum += node->value;
   }
   work_ends();
   printf("%llu\n", (unsigned long long)sum);
}
