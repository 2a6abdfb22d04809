/* The lower and the upper triangular system, plane by plane. */
#include "lu.h"

/* Adds a block times a vector, times `scale`. */
static inline void add_product(double *to, const double *block, const double *v, double scale)
{
   int m;
   for (m = 0; m < 5; m++)
      to[m] += scale * (block[m * 5] * v[0] + block[m * 5 + 1] * v[1] + block[m * 5 + 2] * v[2] +
                        block[m * 5 + 3] * v[3] + block[m * 5 + 4] * v[4]);
}

/* The solution of block x = v, in v: by elimination, no pivoting needed. */
static inline void eliminate(const double *block, double *v)
{
   double t[25];
   int m, l, k;
   for (m = 0; m < 25; m++)
      t[m] = block[m];
   for (k = 0; k < 4; k++) {
      const double inverse = 1 / t[k * 6];
      for (m = k + 1; m < 5; m++) {
         const double times = t[m * 5 + k] * inverse;
         for (l = k + 1; l < 5; l++)
            t[m * 5 + l] -= times * t[k * 5 + l];
         v[m] -= times * v[k];
      }
   }
   for (k = 4; k >= 0; k--) {
      for (l = k + 1; l < 5; l++)
         v[k] -= t[k * 5 + l] * v[l];
      v[k] /= t[k * 6];
   }
}

void solve_lower(struct range rows, int64_t k)
{
   int i, j, m;
   for (i = rows.begin; i < rows.end; i++)
      for (j = 1; j < grid.n - 1; j++)
         add_product(at(rsd, i, j, k), block_at(a, i, j), at(rsd, i, j, k - 1), -grid.omega);
   for (i = rows.begin; i < rows.end; i++)
      for (j = 1; j < grid.n - 1; j++) {
         double *v = at(rsd, i, j, k), sum[5];
         for (m = 0; m < 5; m++)
            sum[m] = v[m];
         add_product(sum, block_at(b, i, j), at(rsd, i, j - 1, k), -grid.omega);
         add_product(sum, block_at(c, i, j), at(rsd, i - 1, j, k), -grid.omega);
         eliminate(block_at(d, i, j), sum);
         for (m = 0; m < 5; m++)
            v[m] = sum[m];
      }
}

void solve_upper(struct range rows, int64_t k)
{
   int i, j, m;
   for (i = rows.end - 1; i >= rows.begin; i--)
      for (j = grid.n - 2; j >= 1; j--) {
         double *v = at(rsd, i, j, k), sum[5] = {0, 0, 0, 0, 0};
         add_product(sum, block_at(c, i, j), at(rsd, i, j, k + 1), grid.omega);
         add_product(sum, block_at(b, i, j), at(rsd, i, j + 1, k), grid.omega);
         add_product(sum, block_at(a, i, j), at(rsd, i + 1, j, k), grid.omega);
         eliminate(block_at(d, i, j), sum);
         for (m = 0; m < 5; m++)
            v[m] -= sum[m];
      }
}
