/* Words of a large block are added up in random order, on pages of 4 KiB or on huge ones. */
#define _DEFAULT_SOURCE
#include "timed.h"

#include <sys/mman.h>

int main(int argc, char **argv)
{
   int huge = variant(argc, argv, "small", "huge");
   size_t bytes = size_or(argc, argv, 256) << 20, n = bytes / sizeof(uint64_t), align = 2 << 20;
   uint64_t *a = aligned_alloc(align, bytes), sum = 0, state = 1;
   madvise(a, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
   for (size_t i = 0; i < n; i += 64)
      a[i] = i;
   for (int i = 0; i < 8; i++)
      a[random_next(&state) % n] = 1;
   work_begins();
   for (int i = 0; i < 4000000; i++)
      sum += a[random_next(&state) % n / 64 * 64];
   work_ends();
   printf("%llu\n", (unsigned long long)sum);
}
