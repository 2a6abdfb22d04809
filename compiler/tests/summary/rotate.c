// Neighbours around the edge: remainders and choices that are a rotation by one.
//
// RUN: %clang -O2 -g %s %print -o %t
// RUN: env OMP_NUM_THREADS=3 %t | FileCheck %s

// CHECK: LOOP remainders {{.*}}: 100 iterations
// CHECK-NEXT: x: read, {{.*}}unit 80, span 80, rotate -1
// CHECK-NEXT: x: read, {{.*}}unit 80, span 80, rotate 1
// CHECK-NEXT: y: write, {{.*}}unit 80, span 80
// CHECK: LOOP variable {{.*}}: 90 iterations
// CHECK-NEXT: x: read, {{.*}}unit 80, span 8, rotate -1
// CHECK-NEXT: y: write
// CHECK: LOOP choice {{.*}}: 90 iterations
// CHECK-NEXT: x: read, {{.*}}unit 80, span 8, rotate -1
// CHECK-NEXT: x: read, {{.*}}unit 80, span 8, rotate 1
// CHECK-NEXT: y: write
// The remainder is by another number than there are iterations: only what is written.
// CHECK: LOOP other {{.*}}: 50 iterations
// CHECK-NEXT: y: write
// CHECK-NEXT: LOOP

double x[100][10], y[100][10];

void remainders() {
#pragma omp parallel for
  for (int i = 0; i < 100; i++)
    for (int j = 0; j < 10; j++)
      y[i][j] = x[(i + 99) % 100][j] + x[(i + 1) % 100][j];
}

void variable(int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++)
    y[i][0] = x[(i + n - 1) % n][0];
}

void choice(int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++)
    y[i][0] = x[i == 0 ? n - 1 : i - 1][0] + x[i == n - 1 ? 0 : i + 1][0];
}

void other(int n) {
#pragma omp parallel for
  for (int i = 0; i < 50; i++)
    y[i][0] = x[(i + 1) % n][0];
}

int main(int argc, char **argv) {
  (void)argv;
  variable(89 + argc);
  choice(89 + argc);
  other(89 + argc);
  remainders();
}
