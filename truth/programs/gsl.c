/* The GNU Scientific Library's matrices lie row by row: the largest absolute sums of columns, and of rows. */
#include "timed.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_matrix.h>

int main(int argc, char **argv)
{
   int rows = variant(argc, argv, "columns", "rows");
   size_t n = size_or(argc, argv, 2500);
   gsl_matrix *a = gsl_matrix_alloc(n, n);
   for (size_t i = 0; i < n; i++)
      for (size_t j = 0; j < n; j++)
         gsl_matrix_set(a, i, j, (double)((i + 3 * j) % 11));
   double sum = 0;
   work_begins();
   for (size_t k = 0; k < 5 * n; k++) {
      gsl_vector_view view = rows ? gsl_matrix_row(a, k % n) : gsl_matrix_column(a, k % n);
      sum += gsl_blas_dasum(&view.vector);
   }
   work_ends();
   printf("%.0f\n", sum);
}
