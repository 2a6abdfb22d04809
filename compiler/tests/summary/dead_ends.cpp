// Checks that end the program, and calls that may throw out of the region (which ends it, too): what stands behind
// them runs in any case. What a check looks at is read.
//
// RUN: %clangxx -O2 -g1 -c %s -o /dev/null -Rpass=domicile -Rpass-missed=domicile 2>&1 | FileCheck %s \
// RUN:   --implicit-check-not=condition --implicit-check-not=printf --implicit-check-not=exit --implicit-check-not=abort
#include <cstdio>
#include <cstdlib>
#include <omp.h>

enum { N = 100 };
static double x[N][N], y[N][N], z[N][N];
extern bool timed;
void start(int), stop(int);
extern int mode;

void timers() {
  // CHECK-DAG: dead_ends.cpp:[[#@LINE+8]]:{{.*}} loop summarised: 1 of 1 accesses
  // CHECK-DAG: dead_ends.cpp:[[#@LINE+9]]:{{.*}} x: written, unit 800, offset 0, span 8
  // CHECK-DAG: dead_ends.cpp:[[#@LINE+5]]:{{.*}} call of start(int): what it touches is not known
#pragma omp parallel
  {
    int me = omp_get_thread_num();
    if (timed && me == 0)
      start(1);
#pragma omp for
    for (int i = 0; i < N; i++)
      x[i][0] = i;
    if (timed && me == 0)
      stop(1);
  }
}

// What the check reads is described, and what stands behind it; nothing of what it does on its way out.
void checks() {
  // CHECK-DAG: dead_ends.cpp:[[#@LINE+5]]:{{.*}} y: read, unit 800, offset 8, span 8
  // CHECK-DAG: dead_ends.cpp:[[#@LINE+8]]:{{.*}} x: written, unit 800, offset 0, span 8
  // CHECK-DAG: dead_ends.cpp:[[#@LINE+1]]:{{.*}} loop summarised: 2 of 2 accesses in 2 summaries, iterations 100
#pragma omp parallel for
  for (int i = 0; i < N; i++) {
    if (y[i][1] < 0) {
      std::printf("%g\n", z[i][1]);
      std::exit(1);
    }
    x[i][0] = i;
  }
}

// One case of a switch ends the program, and so does whatever has no case: two ways are left, and both write.
void cases() {
  // CHECK-DAG: dead_ends.cpp:[[#@LINE+1]]:{{.*}} loop summarised: 1 of 1 accesses in 1 summaries, iterations 100
#pragma omp parallel for
  for (int i = 0; i < N; i++) {
    switch (mode) {
    case 3:
      std::abort();
    case 4:
      break;
    default:
      std::abort();
    }
    x[i][0] = i;
  }
}
