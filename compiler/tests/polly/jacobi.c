// Sequential loops that Polly runs in parallel are summarised, and the program computes the same.
//
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: clang-19 -shared -fPIC -I%S/../../../crates/capi/headers -Wl,-soname,libdomicile.so.0 -x c %S/described.inc -o libdomicile.so.0
// RUN: ln -s libdomicile.so.0 libdomicile.so
// RUN: clang-19 -O2 %s -o plain && ./plain >expected
// RUN: env DOMICILE_LIBRARY=%t %commands/domicile-cc -O2 --domicile-polly %s -o parallel
// RUN: env OMP_NUM_THREADS=2 ./parallel 2>described | diff - expected
// RUN: sort described | uniq -c | FileCheck %s

// The matrix product: rows of C and A by row, all of B; the iterations are the rows. Jacobi: rows of A with their
// neighbours, rows of B.
// CHECK-DAG: 300: {{.*}} C bytes 720000 unit 2400 span {{.*}} written
// CHECK-DAG: 300: {{.*}} A bytes 720000 unit 2400 span {{.*}} read
// CHECK-DAG: 300: {{.*}} B bytes 720000 unit 0 span {{.*}} read
// CHECK-DAG: 298: {{.*}} A bytes 720000 unit 2400 span {{.*}} read, shift
// CHECK-DAG: 298: {{.*}} B bytes 720000 unit 2400 span {{.*}} written

#include <stdio.h>

#define N 300
static double A[N][N], B[N][N], C[N][N];

__attribute__((noinline)) static void fill(void) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      A[i][j] = i % 7 + j;
      B[i][j] = i - j % 5;
    }
}

__attribute__((noinline)) static void product(void) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      for (int k = 0; k < N; k++)
        C[i][j] += A[i][k] * B[k][j];
}

__attribute__((noinline)) static void jacobi(void) {
  for (int i = 1; i < N - 1; i++)
    for (int j = 1; j < N - 1; j++)
      B[i][j] = 0.25 * (A[i - 1][j] + A[i + 1][j] + A[i][j - 1] + A[i][j + 1]);
}

int main(void) {
  fill();
  product();
  jacobi();
  double c = 0, b = 0;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      c = c * 0.5 + C[i][j];
      b = b * 0.5 + B[i][j];
    }
  printf("%.17g %.17g\n", c, b);
  return 0;
}
