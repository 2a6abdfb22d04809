// Bounds under min() and max(), conditions that are the same for the whole region, loops that may not run.
//
// RUN: %clang -O2 -g %s %print -o %t
// RUN: env OMP_NUM_THREADS=3 %t | FileCheck %s

// CHECK: LOOP smaller {{.*}}: 40 iterations, even, threads 3
// CHECK-NEXT: x: write, bytes 8000, offset 0, unit 80, span 56
// CHECK: LOOP flagged {{.*}}: 100 iterations
// CHECK-NEXT: x: write
// CHECK-NEXT: y: write
// CHECK: LOOP flagged {{.*}}: 100 iterations
// CHECK-NEXT: x: write
// CHECK-NOT: y:
// CHECK: LOOP both {{.*}}: 100 iterations
// CHECK-NEXT: x: read
// CHECK-NEXT: y: write, {{.*}}offset 0, unit 80, span 8
// Nothing of a loop without iterations.
// CHECK-NOT: LOOP

#include <stdio.h>
double x[100][10], y[100][10];

static int least(int a, int b) { return a < b ? a : b; }

void smaller(int n, int m) {
#pragma omp parallel for
  for (int i = 0; i < least(n, 40); i++)
    for (int j = 0; j < least(m, 7); j++)
      x[i][j] = 1;
}

void flagged(int flag) {
#pragma omp parallel for
  for (int i = 0; i < 100; i++) {
    x[i][0] = 1;
    if (flag)
      y[i][0] = 1;
  }
}

// Whichever way it goes, it writes.
void both(int argc) {
#pragma omp parallel for
  for (int i = 0; i < 100; i++)
    if (x[i][0] > argc)
      y[i][0] = 1;
    else
      y[i][0] = argc;
}

int main(int argc, char **argv) {
  (void)argv;
  smaller(60, 9);
  flagged(argc);
  flagged(argc - 1);
  both(argc);
  smaller(argc - 1, 9);
  smaller(60, argc - 1);
}
