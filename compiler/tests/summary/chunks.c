// schedule(static, c), with a constant and with a chunk that is known at run time.
//
// RUN: %clang -O2 -g %s %print -o %t
// RUN: env OMP_NUM_THREADS=3 %t | FileCheck %s

// CHECK: LOOP constant {{.*}}: 100 iterations, chunked 8, threads 0
// CHECK-NEXT: x: write, bytes 8000, offset 0, unit 80, span 80
// CHECK: LOOP constant {{.*}}: 100 iterations, chunked 8, threads 3
// CHECK: LOOP variable {{.*}}: 100 iterations, chunked 5, threads 3
// CHECK-NEXT: x: write, bytes 8000, offset 0, unit 80, span 80
// CHECK: LOOP variable {{.*}}: 100 iterations, chunked 1, threads 3

double x[100][10];

void constant() {
#pragma omp parallel for schedule(static, 8)
  for (int i = 0; i < 100; i++)
    for (int j = 0; j < 10; j++)
      x[i][j] = i;
}

void variable(int chunk) {
#pragma omp parallel for schedule(static, chunk)
  for (int i = 0; i < 100; i++)
    for (int j = 0; j < 10; j++)
      x[i][j] = i;
}

int main(int argc, char **argv) {
  (void)argv;
  constant();
  variable(4 + argc);
  variable(argc);
}
