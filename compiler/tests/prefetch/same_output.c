// Loops of every length compute the same with prefetches as without: unrolled, counted and left alone; the last
// iterations, none at all, and addresses beyond the end of the arrays.
//
// RUN: clang-19 -O2 %s -o %t.plain && %t.plain >%t.expected
// RUN: env DOMICILE_COMPILER=prefetch,line=128,clock=400,latency=500 clang-19 -fpass-plugin=%plugin -O2 %s -o %t.a && %t.a | diff - %t.expected
// RUN: env DOMICILE_COMPILER=prefetch,line=64,clock=4000,latency=900 clang-19 -fpass-plugin=%plugin -O3 -mavx2 -mprfchw %s -o %t.b
// RUN: env DOMICILE_COMPILER=prefetch,line=32 clang-19 -fpass-plugin=%plugin -O1 %s -o %t.c && %t.c | diff - %t.expected
// RUN: env DOMICILE_COMPILER=prefetch,align=off,line=128 clang-19 -fpass-plugin=%plugin -Os %s -o %t.d && %t.d | diff - %t.expected
// RUN: llvm-objdump-19 -d %t.a | FileCheck %s
// RUN: llvm-objdump-19 -d %t.b | FileCheck --check-prefix=WRITE %s
// CHECK: prefetcht0
// WRITE: prefetchw

#include <stdio.h>
#include <stdlib.h>

typedef struct { double a, b, c; } triple;

__attribute__((noinline)) static double sum(const double *x, long n) {
  double s = 0;
  for (long i = 0; i < n; i++)
    s += x[i];
  return s;
}
__attribute__((noinline)) static void scale(triple *x, long n) {
  for (long i = n; i-- > 0;)
    x[i].b = x[i].a * 3 + x[i].c;
}
__attribute__((noinline)) static long find(const double *x, long n, double what) {
  for (long i = 0; i < n; i++)
    if (x[i] == what)
      return i;
  return -1;
}
__attribute__((noinline)) static void smooth(double *restrict y, const double *restrict x, long n, long m) {
  for (long j = 1; j < m - 1; j++)
    for (long i = 1; i < n - 1; i++) {
      y[j * n + i] = x[j * n + i - 1] + x[j * n + i + 1] + x[(j - 1) * n + i];
      if (x[j * n + i] > 100)
        y[j * n + i] /= 3;
    }
}

int main(void) {
  for (long n = 0; n < 200; n += n < 70 ? 1 : 13) {
    // Exactly as long as it is used, so that a tool that watches accesses would see one too many.
    double *x = malloc((size_t)(n * 20 + 1) * sizeof *x), *y = calloc((size_t)(n * 20 + 1), sizeof *y);
    triple *t = malloc((size_t)(n + 1) * sizeof *t);
    for (long i = 0; i < n * 20; i++)
      x[i] = (double)(i * 7919 % 1009);
    for (long i = 0; i < n; i++)
      t[i] = (triple){(double)i, 0, 2};
    scale(t, n);
    smooth(y, x, n, 20);
    printf("%ld %.17g %.17g %.17g %ld %ld\n", n, sum(x, n), sum(y, n * 20), n ? t[n - 1].b : 0, find(x, n, 6), find(x, n, -1));
    free(x);
    free(y);
    free(t);
  }
  return 0;
}
