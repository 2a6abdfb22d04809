/* One block times one block: two rows of c at a time, four rows of b, so that an element of b serves two
   multiplications and one of c four. */
#include "blocked.h"

static void two_rows(const double *a, int64_t across, const double *b, int64_t down, double *c, int64_t next,
                     int64_t depth, int64_t width)
{
   int64_t j, k;
   for (k = 0; k + 4 <= depth; k += 4) {
      const double a00 = a[k], a01 = a[k + 1], a02 = a[k + 2], a03 = a[k + 3];
      const double a10 = a[across + k], a11 = a[across + k + 1], a12 = a[across + k + 2], a13 = a[across + k + 3];
      const double *restrict b0 = b + k * down, *restrict b1 = b0 + down;
      const double *restrict b2 = b1 + down, *restrict b3 = b2 + down;
      double *restrict c0 = c, *restrict c1 = c + next;
      for (j = 0; j < width; j++) {
         const double x0 = b0[j], x1 = b1[j], x2 = b2[j], x3 = b3[j];
         c0[j] += a00 * x0 + a01 * x1 + a02 * x2 + a03 * x3;
         c1[j] += a10 * x0 + a11 * x1 + a12 * x2 + a13 * x3;
      }
   }
   for (; k < depth; k++)
      for (j = 0; j < width; j++) {
         c[j] += a[k] * b[k * down + j];
         c[next + j] += a[across + k] * b[k * down + j];
      }
}

void multiply(struct block a, struct block b, struct block c)
{
   int64_t i, j, k;
   for (i = 0; i + 2 <= a.height; i += 2)
      two_rows(a.first + i * a.stride, a.stride, b.first, b.stride, c.first + i * c.stride, c.stride, a.width, c.width);
   for (; i < a.height; i++)
      for (k = 0; k < a.width; k++)
         for (j = 0; j < c.width; j++)
            c.first[i * c.stride + j] += a.first[i * a.stride + k] * b.first[k * b.stride + j];
}
