/* One block times one block: four rows of c at a time, two rows of b, so that an element of b serves four
   multiplications and one of c two. */
#include "blocked.h"

static void four_rows(const double *a, int64_t across, const double *b, int64_t down, double *c, int64_t next,
                      int64_t depth, int64_t width)
{
   int64_t j, k;
   for (k = 0; k + 2 <= depth; k += 2) {
      const double a00 = a[k], a01 = a[k + 1], a10 = a[across + k], a11 = a[across + k + 1];
      const double a20 = a[2 * across + k], a21 = a[2 * across + k + 1];
      const double a30 = a[3 * across + k], a31 = a[3 * across + k + 1];
      const double *restrict b0 = b + k * down, *restrict b1 = b0 + down;
      double *restrict c0 = c, *restrict c1 = c + next, *restrict c2 = c1 + next, *restrict c3 = c2 + next;
      for (j = 0; j < width; j++) {
         c0[j] += a00 * b0[j] + a01 * b1[j];
         c1[j] += a10 * b0[j] + a11 * b1[j];
         c2[j] += a20 * b0[j] + a21 * b1[j];
         c3[j] += a30 * b0[j] + a31 * b1[j];
      }
   }
   for (; k < depth; k++)
      for (j = 0; j < width; j++) {
         c[j] += a[k] * b[k * down + j];
         c[next + j] += a[across + k] * b[k * down + j];
         c[2 * next + j] += a[2 * across + k] * b[k * down + j];
         c[3 * next + j] += a[3 * across + k] * b[k * down + j];
      }
}

void multiply(struct block a, struct block b, struct block c)
{
   int64_t i, j, k;
   for (i = 0; i + 4 <= a.height; i += 4)
      four_rows(a.first + i * a.stride, a.stride, b.first, b.stride, c.first + i * c.stride, c.stride, a.width,
                c.width);
   for (; i < a.height; i++)
      for (k = 0; k < a.width; k++)
         for (j = 0; j < c.width; j++)
            c.first[i * c.stride + j] += a.first[i * a.stride + k] * b.first[k * b.stride + j];
}
