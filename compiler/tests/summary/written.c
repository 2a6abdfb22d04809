// Where an array's elements are is not known before the region if the region writes that down itself: by itself, by a
// callee that has a body here, by one that has not and is given the address, or by copying.
//
// RUN: %clang -O1 -g1 -c %s -o /dev/null -Rpass=domicile -Rpass-missed=domicile 2>&1 | grep remark: | FileCheck %s \
// RUN:   --implicit-check-not="x: written"
#include <string.h>

enum { N = 100 };
double x[2 * N], y[N];
int at[N];
void next(int *);
int look(const int *) __attribute__((pure));

static void step(int *number) { *number += 1; }

void changes(int first, const int *from) {
  int here = first, there = first, table[4] = {first}, left = first;

  // CHECK-DAG: written.c:[[#@LINE+4]]:{{.*}} write of x not summarised: its index is read from memory
#pragma omp parallel for
  for (int i = 0; i < N; i++) {
    at[i] = i;
    x[at[0] + i] = 1;
  }

  // CHECK-DAG: written.c:[[#@LINE+4]]:{{.*}} write of x not summarised: its index is read from memory
#pragma omp parallel for
  for (int i = 0; i < N; i++) {
    step(&here);
    x[here + i] = 1;
  }

  // CHECK-DAG: written.c:[[#@LINE+5]]:{{.*}} write of x not summarised: its index is read from memory
  // CHECK-DAG: written.c:[[#@LINE+3]]:{{.*}} call of next: what it touches is not known
#pragma omp parallel for
  for (int i = 0; i < N; i++) {
    next(&there);
    x[there + i] = 1;
  }

  // CHECK-DAG: written.c:[[#@LINE+4]]:{{.*}} write of x not summarised: its index is read from memory
#pragma omp parallel for
  for (int i = 0; i < N; i++) {
    memcpy(table, from, sizeof table);
    x[table[2] + i] = 1;
  }

  // Left alone, it is known.
  // CHECK-DAG: written.c:[[#@LINE+3]]:{{.*}} y: written, unit 8, offset known at run time, span 8
#pragma omp parallel for
  for (int i = 0; i < N / 2; i++)
    y[left + i] = look(&left);
}
