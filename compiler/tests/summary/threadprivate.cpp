// A thread's own arrays of another file: C++ sets them up before each use, by a function that has no body here. It touches
// nothing that threads share; the arrays themselves are each thread's own, and are not described. Arrays beside them are.
//
// RUN: %clangxx -O2 -g1 -c %s -o /dev/null -Rpass=domicile -Rpass-missed=domicile 2>&1 | grep remark: | FileCheck %s
// CHECK-NOT: thread-local
// CHECK-NOT: own
// CHECK: loop summarised: 1 of 1 accesses in 1 summaries
// CHECK-NEXT: shared: written, unit 64, offset 0, span 64
// CHECK-NOT: own
// CHECK: loop summarised: 1 of 1 accesses in 1 summaries
// CHECK-NEXT: shared: written, unit 64, offset 0, span 64
// CHECK-NOT: thread-local
// CHECK-NOT: own
extern double own[100][8];
#pragma omp threadprivate(own)
extern thread_local double ownToo[100][8];
extern double shared[100][8];

void f(int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < 8; j++)
      own[i][j] = i + j;
    for (int j = 0; j < 8; j++)
      shared[i][j] = own[i][j] * 2;
  }
}

void g(int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < 8; j++)
      ownToo[i][j] = i + j;
    for (int j = 0; j < 8; j++)
      shared[i][j] = ownToo[i][j] * 2;
  }
}
