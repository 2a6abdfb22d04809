// One region with several loops, time steps around them, work of every thread, clauses.
//
// RUN: %clang -O2 -g %s %print -o %t -Rpass-missed=domicile 2>&1 | FileCheck %s --check-prefix=MISSED
// RUN: env OMP_NUM_THREADS=3 %t >%t.described
// RUN: FileCheck %s <%t.described
// RUN: FileCheck %s --check-prefix=FIRST <%t.described

// CHECK: LOOP steps (region.c:{{[0-9]+}}): 98 iterations, even, threads 3
// CHECK-NEXT: x: read, {{.*}}offset 0, unit 8, span 8
// CHECK-NEXT: x: read, {{.*}}offset 0, unit 8, span 8, shift 16
// CHECK-NEXT: y: write, {{.*}}offset 8, unit 8, span 8
// CHECK: LOOP steps (region.c:{{[0-9]+}}): 98 iterations, even, threads 3
// CHECK-NEXT: y: read, {{.*}}offset 8, unit 8, span 8
// CHECK-NEXT: x: write, {{.*}}offset 8, unit 8, span 8
// Described before main begins:
// FIRST: LOOP everyone (region.c:{{[0-9]+}}): 128 iterations, chunked 1, threads 0
// FIRST-NEXT: y: read, {{.*}}offset 0, unit 0, span 800
// CHECK: LOOP everyone (region.c:{{[0-9]+}}): 128 iterations, chunked 1, threads 3
// CHECK-NEXT: y: read, {{.*}}offset 0, unit 0, span 800
// CHECK: LOOP clause {{.*}}: 100 iterations, even, threads 5
// CHECK: LOOP clause {{.*}}: 100 iterations, even, threads 2
// MISSED: region.c:[[#@LINE+29]]:{{.*}} write of y not summarised: only one thread

double x[100], y[100];

void steps(int n) {
#pragma omp parallel
  for (int t = 0; t < n; t++) {
#pragma omp for schedule(static)
    for (int i = 1; i < 99; i++)
      y[i] = x[i - 1] + x[i + 1];
#pragma omp for schedule(static)
    for (int i = 1; i < 99; i++)
      x[i] = y[i];
  }
}

double everyone() {
  double most = 0;
#pragma omp parallel reduction(max : most)
  for (int i = 0; i < 100; i++)
    most = y[i] > most ? y[i] : most;
  return most;
}

void single() {
#pragma omp parallel
  {
#pragma omp single
    for (int i = 0; i < 100; i++)
      y[i] = 2;
  }
}

void clause(int threads) {
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (int i = 0; i < 100; i++)
    y[i] = 2;
}

int main() {
  steps(3);
  everyone();
  single();
  clause(5);
  clause(1);
  clause(2);
}
