/* The columns of a matrix are added up one after the other. Its rows are a page long, so that a column falls into few
   sets of the caches; or a page and a line. */
#include "timed.h"

enum { COLUMNS = 512, PAD = 8 };

int main(int argc, char **argv)
{
   int padded = variant(argc, argv, "page", "padded");
   size_t rows = size_or(argc, argv, 512), length = COLUMNS + (padded ? PAD : 0);
   uint64_t *a = aligned_alloc(4096, rows * (COLUMNS + PAD) * sizeof *a), sum = 0;
   for (size_t i = 0; i < rows; i++)
      for (size_t j = 0; j < COLUMNS; j++)
         a[i * length + j] = i ^ j;
   work_begins();
   for (int pass = 0; pass < 120; pass++)
      for (size_t j = 0; j < COLUMNS; j++)
         for (size_t i = 0; i < rows; i++)
            sum += a[i * length + j] * (j + 1);
   work_ends();
   printf("%llu\n", (unsigned long long)sum);
}
