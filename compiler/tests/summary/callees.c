// Functions of the C library print, and touch what they are given: numbers, a thread's own variables, constant text are
// nobody else's. Given an array, or without a body here, they are not known.
//
// RUN: %clang -O1 -g1 -c %s -o /dev/null -Rpass=domicile -Rpass-missed=domicile 2>&1 | grep remark: | FileCheck %s
#include <omp.h>
#include <stdio.h>
#include <string.h>

enum { N = 100 };
double x[N][N];
char text[N][N];
void fill(double *);
void count(int);

void prints(double limit) {
  // CHECK-NOT: printf
  // CHECK-NOT: snprintf
  // CHECK-NOT: puts
  // CHECK: callees.c:[[#@LINE+1]]:{{.*}} loop summarised: 1 of 1 accesses in 1 summaries
#pragma omp parallel for
  for (int i = 0; i < N; i++) {
    char line[80];
    snprintf(line, sizeof line, "%d of %d", i, N);
    puts(line);
    fprintf(stderr, "%d: %g\n", i, limit);
    printf("%g s\n", omp_get_wtime());
    x[i][0] = limit;
  }
}

void given(void) {
  // CHECK-DAG: callees.c:[[#@LINE+4]]:{{.*}} call of printf: what it touches is not known
  // CHECK-DAG: callees.c:[[#@LINE+4]]:{{.*}} call of puts: what it touches is not known
#pragma omp parallel for
  for (int i = 0; i < N; i++) {
    printf("%d: %s\n", i, text[i]);
    puts(text[N - 1 - i]);
  }

  // CHECK-DAG: callees.c:[[#@LINE+5]]:{{.*}} call of fill: what it touches is not known
  // CHECK-DAG: callees.c:[[#@LINE+5]]:{{.*}} call of count: what it touches is not known
  // CHECK-DAG: callees.c:[[#@LINE+5]]:{{.*}} x: written, unit 800, offset 8, span 8
#pragma omp parallel for
  for (int i = 0; i < N; i++) {
    fill(x[i]);
    count(i);
    x[i][1] = 1;
  }
}
