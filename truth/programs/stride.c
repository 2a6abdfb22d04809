/* All words of a block are added up: 1 KiB apart, round after round, and one after the other. The block stays in the
   second-level cache of most machines. */
#include "timed.h"

int main(int argc, char **argv)
{
   int dense = variant(argc, argv, "apart", "dense");
   size_t n = size_or(argc, argv, 64 * 1024), step = dense ? 1 : 128;
   volatile uint64_t *a = malloc(n * sizeof *a);
   uint64_t sum = 0;
   for (size_t i = 0; i < n; i++)
      a[i] = i;
   work_begins();
   for (int pass = 0; pass < 900; pass++)
      for (size_t start = 0; start < step; start++)
         for (size_t i = start; i < n; i += step)
            sum += a[i];
   work_ends();
   printf("%llu\n", (unsigned long long)sum);
}
