// Arrays and bounds that are all known: described by a constructor, and at the fork for the team that it has.
//
// RUN: %clang -O1 -S -emit-llvm %s -o - | FileCheck %s --check-prefix=IR
// RUN: %clang -O2 -g %s %print -o %t
// RUN: env OMP_NUM_THREADS=3 %t | FileCheck %s

// IR: @llvm.global_ctors = {{.*}}@domicile.summaries
// IR: define internal void @domicile.summaries
// IR: icmp {{.*}}@domicile_parallel_loop
// IR: call void @domicile_parallel_loop(ptr {{.*}}@domicile.data
// IR: declare extern_weak {{.*}}@domicile_parallel_loop

// CHECK: LOOP main (constants.c:[[#@LINE+16]]): 511 iterations, even, threads 0
// CHECK-NEXT: u: read, bytes 2105352, offset 4112, unit 4104, span 4088, shift -4104
// CHECK-NEXT: u: read, bytes 2105352, offset 4112, unit 4104, span 4088, shift 4104
// CHECK-NEXT: u: read, bytes 2105352, offset 4104, unit 4104, span 4104
// CHECK-NEXT: u: write, bytes 2105352, offset 4112, unit 4104, span 4088
// CHECK: LOOP main (constants.c:[[#@LINE+11]]): 511 iterations, even, threads 3
// CHECK-NEXT: u: read
// CHECK-NOT: LOOP
// CHECK: 1

#include <stdio.h>
enum { N = 513 };
double u[N][N];

int main() {
  u[1][1] = 1;
#pragma omp parallel for schedule(static)
  for (int i = 1; i < N - 1; i++)
    for (int j = 1; j < N - 1; j++)
      u[i][j] += 0 * (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]);
  printf("%g\n", u[1][1]);
}
