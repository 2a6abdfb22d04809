/* The GNU Scientific Library's sparse matrix times a vector: as it was filled in, and in compressed rows. */
#include "timed.h"

#include <gsl/gsl_spblas.h>
#include <gsl/gsl_spmatrix.h>

int main(int argc, char **argv)
{
   int rows = variant(argc, argv, "filled", "rows");
   size_t n = size_or(argc, argv, 50000);
   uint64_t state = 79;
   gsl_spmatrix *filled = gsl_spmatrix_alloc_nzmax(n, n, 8 * n, GSL_SPMATRIX_TRIPLET);
   for (size_t i = 0; i < 8 * n; i++) {
      size_t row = random_next(&state) % n;
      gsl_spmatrix_set(filled, row, (row + random_next(&state) % 1000) % n, (double)(i % 9));
   }
   gsl_spmatrix *matrix = rows ? gsl_spmatrix_compress(filled, GSL_SPMATRIX_CSR) : filled;
   gsl_vector *x = gsl_vector_alloc(n), *y = gsl_vector_calloc(n);
   gsl_vector_set_all(x, 2);
   work_begins();
   for (int k = 0; k < 40; k++)
      gsl_spblas_dgemv(CblasNoTrans, 1, matrix, x, 1, y);
   work_ends();
   double sum = 0;
   for (size_t i = 0; i < n; i++)
      sum += gsl_vector_get(y, i) * (double)(i % 13);
   printf("%.0f\n", sum);
}
