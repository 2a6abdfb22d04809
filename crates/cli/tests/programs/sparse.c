/* A sparse matrix times a vector, several times over: `a` and `colidx` go by, `p` is used again and again. With a second
   argument the program gives `p` a cache slot of its own. */
#include <stdlib.h>

#include "domicile-trace.h"

enum { ROWS = 2000, COLUMNS = 16384, EACH = 30 };

double p[COLUMNS];      /* 128 KiB */
int colidx[ROWS * EACH]; /* 234 KiB */
static double* a;        /* 469 KiB, on the heap */
static double q[ROWS];

static double* make(size_t count) { return malloc(count * sizeof(double)); }

int main(int argc, char** argv)
{
   int round, row, k, rounds = argc > 1 ? atoi(argv[1]) : 6;
   unsigned number = 12345;
   a = make((size_t)ROWS * EACH);
   if (argc > 2) {
      DOMICILE_SLOT(1, 144 << 10, 1);
      DOMICILE_DATA_RANGE(1, p, sizeof p);
      DOMICILE_ALLOCATE(1, 1);
      DOMICILE_DATA_RANGE(2, a, ROWS * EACH * sizeof *a);
      DOMICILE_DATA_RANGE(2, colidx, sizeof colidx);
      DOMICILE_ALLOCATE(2, DOMICILE_NO_SLOT);
   }
   for (k = 0; k < ROWS * EACH; k++) {
      number = number * 1664525 + 1013904223;
      colidx[k] = number >> 18;
      a[k] = 1.0;
   }
   for (k = 0; k < COLUMNS; k++)
      p[k] = k;
   for (round = 0; round < rounds; round++)
      for (row = 0; row < ROWS; row++) {
         double sum = 0;
         for (k = row * EACH; k < (row + 1) * EACH; k++)
            sum += a[k] * p[colidx[k]];
         q[row] += sum;
      }
   return q[7] < 0;
}
