// What the summaries say is what threads touch, to the page, for teams that divide the loops evenly and teams that do not.
//
// RUN: %clang -O0 -g -fsanitize-coverage=edge,trace-loads,trace-stores %s %oracle -o %t
// RUN: env OMP_NUM_THREADS=2 %t | FileCheck %s
// RUN: env OMP_NUM_THREADS=4 %t | FileCheck %s
// RUN: env OMP_NUM_THREADS=7 %t | FileCheck %s
// CHECK: ORACLE: EXACT: {{[1-9][0-9]+}} pages

#include <stdlib.h>

enum { N = 301, M = 150 };
static double a[N][N], b[N][N], c[N], r[M][600], t[M][600], packed[N * N];
static double cube[40][40][40], next[40][40][40];

static void stencil(void) {
#pragma omp parallel for schedule(static)
  for (int i = 1; i < N - 1; i++)
    for (int j = 1; j < N - 1; j++)
      b[i][j] = a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1];
}

// Each thread has a band of columns: a piece of every row.
static void columns(void) {
#pragma omp parallel for schedule(static)
  for (int j = 0; j < N; j++)
    for (int i = N - 1; i > 0; i--)
      b[i][j] += a[i - 1][j];
}

static void chunks(int chunk) {
#pragma omp parallel for schedule(static, chunk)
  for (int i = 2; i < M - 1; i++)
    for (int j = 0; j < 600; j++)
      t[i][j] = r[i - 2][j] * c[j / 2];
}

static void around(int n) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < 600; j++)
      t[i][j] = r[(i + n - 1) % n][j] + r[i == n - 1 ? 0 : i + 1][j];
}

static void inSpace(void) {
#pragma omp parallel
  for (int step = 0; step < 2; step++) {
#pragma omp for schedule(static)
    for (int k = 1; k < 39; k++)
      for (int j = 1; j < 39; j++)
        for (int i = 1; i < 39; i++)
          next[k][j][i] = cube[k - 1][j][i] + cube[k + 1][j][i] + cube[k][j - 1][i] + cube[k][j + 1][i];
#pragma omp for schedule(static) collapse(2)
    for (int k = 0; k < 40; k++)
      for (int j = 0; j < 40; j++)
        for (int i = 3; i < 37; i += 2)
          cube[k][j][i] = next[k][j][i];
  }
}

static void blocks(int n, int m, double (*v)[m], double *w, int flag) {
#pragma omp parallel for schedule(static)
  for (int i = n - 1; i >= 0; i -= 2) {
    for (int j = 0; j < m; j++)
      v[i][j] = w[i * m + j];
    if (flag)
      packed[(i + 1) * N / 2] = 1;
  }
}

static double everyone(void) {
  double all = 0;
#pragma omp parallel reduction(+ : all)
  for (int i = 0; i < N; i++)
    all += c[i];
  return all;
}

// Where a loop ended is where the next element is; how far it comes is known before.
static void ended(int n, double (*v)[N]) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < n; i++) {
    int j;
    for (j = 0; j < n - 1; j++)
      v[i][j] = c[j];
    v[i][j + 100] = v[i][j] + c[j + 30];
  }
}

// Steps until it is good enough: each loop of a step runs at least once.
static double limit = 2.5, low = -1;
static void converges(double (*v)[N]) {
  static double worst;
#pragma omp parallel
  for (int step = 0; step < 9; step++) {
#pragma omp for schedule(static)
    for (int i = 0; i < 40; i++)
      v[i][0] += 1;
#pragma omp single
    worst = step;
    if (worst > limit)
      break;
#pragma omp for schedule(static, 3)
    for (int i = 0; i < 40; i++)
      v[i][200] += 1;
  }
}

// A check that ends the program looks at what it looks at; a bound that is no whole number decides for all.
static void checked(double (*v)[N], double (*w)[N]) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < 200; i++) {
    if (v[i][1] < low)
      exit(4);
    if (limit > 2)
      w[i][100] = 1;
    if (limit > 3)
      w[i][250] = 1;
  }
}

int main(void) {
  int n = 120, m = 333;
  double *v = malloc(sizeof(double) * n * m), *w = calloc(sizeof(double), n * m);
  stencil();
  columns();
  chunks(1);
  chunks(5);
  around(M);
  inSpace();
  blocks(n, m, (void *)v, w, 0);
  blocks(n / 2, m, (void *)w, v + 7 * m, 1);
  double(*x)[N] = calloc(sizeof *x, N), (*y)[N] = calloc(sizeof *y, N), (*z)[N] = calloc(sizeof *z, N);
  double(*u)[N] = calloc(sizeof *u, N);
  ended(150, x);
  converges(y);
  checked(z, u);
  return everyone() < 0;
}
