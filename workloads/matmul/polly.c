/* The interchanged loops in C, for compilers that tile by themselves (clang with Polly). Arrays as
   Fortran passes them: column-major, so that the last index of Fortran is the first one here. */
#include "frame.h"

void multiply_(double *restrict a_, double *restrict b_, double *restrict c_, const int *n_,
               const struct options *options, struct outcome *outcome)
{
   const long n = *n_;
   double(*restrict a)[n] = (double(*)[n])a_;
   double(*restrict b)[n] = (double(*)[n])b_;
   double(*restrict c)[n] = (double(*)[n])c_;

   for (long j = 0; j < n; j++)
      for (long k = 0; k < n; k++)
         for (long i = 0; i < n; i++)
            c[j][i] += a[k][i] * b[j][k];
   (void)options;
   (void)outcome;
}
