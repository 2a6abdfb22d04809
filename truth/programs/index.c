/* A sparse matrix times a vector, its column numbers in 64 bits, or in 32. */
#include "timed.h"

enum { PER_ROW = 16 };

int main(int argc, char **argv)
{
   int narrow = variant(argc, argv, "wide", "narrow");
   size_t rows = size_or(argc, argv, 400000), count = rows * PER_ROW;
   uint64_t *wide = malloc(count * sizeof *wide);
   uint32_t *small = malloc(count * sizeof *small);
   uint32_t *x = malloc(rows * sizeof *x);
   uint64_t state = 13, sum = 0;
   for (size_t i = 0; i < rows; i++)
      x[i] = (uint32_t)(i % 23);
   for (size_t i = 0; i < rows; i++)
      for (size_t k = 0; k < PER_ROW; k++)
         wide[i * PER_ROW + k] = small[i * PER_ROW + k] = (uint32_t)((i + random_next(&state) % 200) % rows);
   work_begins();
   for (int pass = 0; pass < 10; pass++)
      for (size_t i = 0; i < rows; i++) {
         uint64_t row = 0;
         if (narrow)
            for (size_t k = 0; k < PER_ROW; k++)
               row += x[small[i * PER_ROW + k]];
         else
            for (size_t k = 0; k < PER_ROW; k++)
               row += x[wide[i * PER_ROW + k]];
         sum += row * (i + 1);
      }
   work_ends();
   printf("%llu\n", (unsigned long long)sum);
}
