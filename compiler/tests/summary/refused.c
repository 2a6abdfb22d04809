// What cannot be described exactly is refused where it stands, with the reason, and spoils nothing else.
//
// RUN: %clang -O1 -g -c %s -o /dev/null -Rpass=domicile -Rpass-missed=domicile 2>&1 | FileCheck %s

enum { N = 100 };
double x[N][N], y[N][N];
int at[N];
double *rows[N];
double own[N];
#pragma omp threadprivate(own)
double look(double);
void change(double *);

void refused(int n) {
  // CHECK-DAG: refused.c:[[#@LINE+5]]:{{.*}} write of y not summarised: its index is read from memory
  // CHECK-DAG: refused.c:[[#@LINE+4]]:{{.*}} at: read, unit 4, offset 0, span 4
#pragma omp parallel for
  for (int i = 0; i < N; i++) {
    own[i] = i;
    y[at[i]][0] = 1;
  }

  // CHECK-DAG: refused.c:[[#@LINE+4]]:{{.*}} write of an array not summarised: its address is read from memory
  // CHECK-DAG: refused.c:[[#@LINE+3]]:{{.*}} rows: read, unit 8, offset 0, span 8
#pragma omp parallel for
  for (int i = 0; i < N; i++)
    rows[i][0] = 1;

  // CHECK-DAG: refused.c:[[#@LINE+5]]:{{.*}} write of y not summarised: it runs under a condition
  // CHECK-DAG: refused.c:[[#@LINE+3]]:{{.*}} x: read, unit 800, offset 0, span 8
#pragma omp parallel for
  for (int i = 0; i < N; i++)
    if (x[i][0] > 0)
      y[i][0] = 1;

  // CHECK-DAG: refused.c:[[#@LINE+4]]:{{.*}} write of y not summarised: the bounds of a loop around it change
#pragma omp parallel for
  for (int i = 0; i < N; i++)
    for (int j = 0; j < i; j++)
      y[i][j] = 1;

  // CHECK-DAG: refused.c:[[#@LINE+5]]:{{.*}} read of x not summarised: a loop around it may be left early
  // CHECK-DAG: refused.c:[[#@LINE+6]]:{{.*}} y: written, unit 800, offset 0, span 8
#pragma omp parallel for
  for (int i = 0; i < N; i++) {
    int j;
    for (j = 0; j < n && x[i][j] > 0; j++)
      ;
    y[i][0] = j;
  }

  // CHECK-DAG: refused.c:[[#@LINE+3]]:{{.*}} write of y not summarised: its index is not linear
#pragma omp parallel for
  for (int i = 0; i < 10; i++)
    y[0][i * i] = 1;

  // CHECK-DAG: refused.c:[[#@LINE+3]]:{{.*}} call of change: what it touches is not known
#pragma omp parallel for
  for (int i = 0; i < N; i++)
    change(x[i]);

  // CHECK-DAG: refused.c:[[#@LINE+2]]:{{.*}} loop not summarised: its iterations are dealt while it runs
#pragma omp parallel for schedule(dynamic)
  for (int i = 0; i < N; i++)
    y[i][0] = 1;
  // CHECK-DAG: refused.c:[[#@LINE+2]]:{{.*}} loop not summarised: its iterations are dealt while it runs
#pragma omp parallel for schedule(guided)
  for (int i = 0; i < N; i++)
    y[i][0] = 1;
  // CHECK-DAG: refused.c:[[#@LINE+2]]:{{.*}} loop not summarised: its iterations are dealt while it runs
#pragma omp parallel for schedule(runtime)
  for (int i = 0; i < N; i++)
    y[i][0] = 1;

#pragma omp parallel
  {
    // CHECK-DAG: refused.c:[[#@LINE+1]]:{{.*}} a parallel region within a parallel region
#pragma omp parallel for
    for (int i = 0; i < N; i++)
      y[i][0] = 1;
  }

  // CHECK-DAG: refused.c:[[#@LINE+4]]:{{.*}} tasks are not summarised
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < N; i++)
#pragma omp task
    y[i][0] = 1;

  // CHECK-DAG: refused.c:[[#@LINE+3]]:{{.*}} one case of several
#pragma omp parallel sections
  {
    y[0][0] = 1;
#pragma omp section
    y[1][0] = 1;
#pragma omp section
    y[2][0] = 1;
  }

  // A function of numbers touches nothing.
  // CHECK-DAG: refused.c:[[#@LINE+1]]:{{.*}} loop summarised: 1 of 1 accesses
#pragma omp parallel for
  for (int i = 0; i < N; i++)
    y[i][0] = __builtin_sin(i);
}
