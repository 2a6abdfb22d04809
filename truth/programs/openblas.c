/* OpenBLAS: a product of matrices, column by column, and as a whole, which it does in blocks. */
#include "timed.h"

#include <cblas.h>

int main(int argc, char **argv)
{
   int whole = variant(argc, argv, "columns", "whole");
   int n = (int)size_or(argc, argv, 600);
   double *a = (double *)malloc(n * n * sizeof *a), *b = (double *)malloc(n * n * sizeof *b);
   double *c = (double *)calloc(n * n, sizeof *c), sum = 0;
   for (int i = 0; i < n * n; i++) {
      a[i] = i % 7;
      b[i] = i % 11;
   }
   work_begins();
   if (whole)
      cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a, n, b, n, 0, c, n);
   else
      for (int j = 0; j < n; j++)
         cblas_dgemv(CblasColMajor, CblasNoTrans, n, n, 1, a, n, b + j * n, 1, 0, c + j * n, 1);
   work_ends();
   for (int i = 0; i < n * n; i++)
      sum += c[i] * (i % 13);
   printf("%.0f\n", sum);
}
