// Downward loops, strides, a counter in steps of two, atomics, copies of blocks.
//
// RUN: %clang -O2 -g %s %print -o %t
// RUN: env OMP_NUM_THREADS=3 %t | FileCheck %s

// CHECK: LOOP down {{.*}}: 100 iterations
// CHECK-NEXT: x: write, bytes 8000, offset 7920, unit -80, span 80
// CHECK: LOOP odd {{.*}}: 50 iterations
// CHECK-NEXT: x: write, bytes 8000, offset 80, unit 160, span 8, inner 24 x 4
// CHECK: LOOP copy {{.*}}: 100 iterations
// CHECK-DAG: x: read, bytes 8000, offset 0, unit 80, span 80
// CHECK-DAG: y: write, bytes 8000, offset 0, unit 80, span 80
// CHECK: LOOP count {{.*}}: 100 iterations
// CHECK-NEXT: n: read+write, bytes 400, offset 0, unit 4, span 4

#include <string.h>
double x[100][10], y[100][10];
int n[100];

void down() {
#pragma omp parallel for
  for (int i = 99; i >= 0; i--)
    for (int j = 9; j >= 0; j--)
      x[i][j] = 1;
}

void odd() {
#pragma omp parallel for
  for (int i = 1; i < 100; i += 2)
    for (int j = 0; j < 10; j += 3)
      x[i][j] = 1;
}

void copy() {
#pragma omp parallel for
  for (int i = 0; i < 100; i++)
    memcpy(y[i], x[i], sizeof x[i]);
}

void count() {
#pragma omp parallel for
  for (int i = 0; i < 100; i++)
#pragma omp atomic
    n[i]++;
}

int main() {
  down();
  odd();
  copy();
  count();
}
