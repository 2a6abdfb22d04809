/* A matrix is transposed, whole, or in tiles of 16 by 16. */
#include "timed.h"

enum { TILE = 16 };

int main(int argc, char **argv)
{
   int tiled = variant(argc, argv, "whole", "tiled");
   size_t n = size_or(argc, argv, 2560) / TILE * TILE;
   uint64_t *a = malloc(n * n * sizeof *a), *b = malloc(n * n * sizeof *b), sum = 0;
   for (size_t i = 0; i < n * n; i++) {
      a[i] = i;
      b[i] = 0;
   }
   work_begins();
   if (tiled) {
      for (size_t ii = 0; ii < n; ii += TILE)
         for (size_t jj = 0; jj < n; jj += TILE)
            for (size_t i = ii; i < ii + TILE; i++)
               for (size_t j = jj; j < jj + TILE; j++)
                  b[j * n + i] = a[i * n + j];
   } else {
      for (size_t i = 0; i < n; i++)
         for (size_t j = 0; j < n; j++)
            b[j * n + i] = a[i * n + j];
   }
   work_ends();
   for (size_t i = 0; i < n * n; i++)
      sum += b[i] * (i % 101);
   printf("%llu\n", (unsigned long long)sum);
}
