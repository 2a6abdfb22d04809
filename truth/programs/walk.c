/* A matrix of doubles is summed, along its columns or along its rows. */
#include "timed.h"

int main(int argc, char **argv)
{
   int rows_first = variant(argc, argv, "columns", "rows");
   size_t n = size_or(argc, argv, 3000);
   double *a = malloc(n * n * sizeof *a), sum = 0;
   for (size_t i = 0; i < n * n; i++)
      a[i] = (double)(i % 7);
   work_begins();
   for (int pass = 0; pass < 4; pass++) {
      if (rows_first)
         for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
               sum += a[i * n + j];
      else
         for (size_t j = 0; j < n; j++)
            for (size_t i = 0; i < n; i++)
               sum += a[i * n + j];
   }
   work_ends();
   printf("%.0f\n", sum);
}
