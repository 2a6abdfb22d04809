// Pointers, arrays of variable length and allocated blocks; what swaps its places is described once for each place.
//
// RUN: %clang -O2 -g %s %print -o %t
// RUN: env OMP_NUM_THREADS=3 %t | FileCheck %s

// CHECK: LOOP step {{.*}}: 18 iterations, even, threads 3
// CHECK-NEXT: from: read, bytes 0, offset 8, unit 240, span 232
// CHECK-NEXT: v: read, bytes 0, offset 248, unit 240, span 232
// CHECK-NEXT: to: write, bytes 0, offset 248, unit 240, span 232
// CHECK: LOOP step
// CHECK: LOOP main
// CHECK-NEXT: a: write, bytes 4800, offset 0, unit 8, span 8
// CHECK-NEXT: own: write, bytes 1600, offset 0, unit 8, span 8
// CHECK-NOT: LOOP

#include <stdlib.h>

static void step(int n, int m, double *to, double *from, double v[n][m]) {
#pragma omp parallel for schedule(static)
  for (int i = 1; i < n - 1; i++)
    for (int j = 1; j < m; j++)
      to[i * m + j] = from[(i - 1) * m + j] + v[i][j];
}

int main() {
  int n = atoi("20"), m = 30;
  double *a = calloc(n * m, sizeof *a), *b = calloc(n * m, sizeof *b), *v = calloc(n * m, sizeof *v);
  for (int t = 0; t < 10; t++) {
    double *to = t % 2 ? a : b, *from = t % 2 ? b : a;
    step(n, m, to, from, (void *)v);
  }
  double own[n * 10];
#pragma omp parallel for
  for (int i = 0; i < n * 10; i++)
    own[i] = a[i] = 1;
  return own[3] != 1;
}
