// A team of another size, and forks within regions: the first is described again, the second is not described.
//
// RUN: %clang -O2 -g %s %print -o %t
// RUN: env OMP_NUM_THREADS=3 %t | FileCheck %s

// CHECK: LOOP fill {{.*}}: 100 iterations, even, threads 0
// CHECK: LOOP fill {{.*}}: 100 iterations, even, threads 3
// CHECK: LOOP fill {{.*}}: 100 iterations, even, threads 2
// CHECK-NOT: LOOP
// CHECK: done

#include <omp.h>
#include <stdio.h>
double x[100];

__attribute__((noinline)) void fill() {
#pragma omp parallel for
  for (int i = 0; i < 100; i++)
    x[i] = i;
}

int main() {
  fill();
  fill();
  omp_set_num_threads(2);
  fill();
  fill();
  omp_set_num_threads(4);
#pragma omp parallel
  fill();
  puts("done");
}
