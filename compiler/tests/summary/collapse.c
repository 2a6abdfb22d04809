// collapse(2) over all of an array's rows is one long loop; over a part of each row it has no one unit.
//
// RUN: %clang -O2 -g %s %print -o %t -Rpass-missed=domicile 2>&1 | FileCheck %s --check-prefix=MISSED
// RUN: env OMP_NUM_THREADS=3 %t | FileCheck %s

// CHECK: LOOP whole {{.*}}: 4000 iterations, even, threads 0
// CHECK-NEXT: x: write, bytes 32000, offset 0, unit 8, span 8
// CHECK: LOOP whole {{.*}}: 400 iterations, even
// CHECK-NEXT: x: write, bytes 32000, offset 0, unit 80, span 80
// CHECK: LOOP rows {{.*}}: 30 iterations, even
// CHECK-NEXT: v: write, bytes 0, offset 0, unit 8, span 8
// Rows of five in an array of rows of six: nothing.
// CHECK-NOT: LOOP rows
// MISSED: collapse.c:[[#@LINE+20]]:{{.*}} write of x not summarised: {{.*}}(collapse)

double x[40][100];

void whole() {
#pragma omp parallel for collapse(2) schedule(static)
  for (int i = 0; i < 40; i++)
    for (int j = 0; j < 100; j++)
      x[i][j] = i;
#pragma omp parallel for collapse(2) schedule(static)
  for (int i = 0; i < 40; i++)
    for (int j = 0; j < 10; j++)
      for (int k = 0; k < 10; k++)
        x[i][10 * j + k] = i;
}

void part() {
#pragma omp parallel for collapse(2) schedule(static)
  for (int i = 0; i < 40; i++)
    for (int j = 1; j < 99; j++)
      x[i][j] = i;
}

void rows(int n, int m, double *v, int wide) {
#pragma omp parallel for collapse(2) schedule(static)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      v[i * wide + j] = i;
}

int main() {
  double v[36];
  whole();
  part();
  rows(6, 5, v, 5);
  rows(6, 5, v, 6);
}
