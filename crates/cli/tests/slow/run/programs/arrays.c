// Static arrays of every kind, and blocks of equal size from several places.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "colors.h"

#define N 40000

static double zeros[N];
double filled[N] = {1, 2, 3, 4};
const double fixed[N] = {5, 6, 7, 8};
static char small[64];

static double *first(void) { return malloc(N * sizeof(double)); }

static double *second(void) { return malloc(N * sizeof(double)); }

static double *cleared(void) { return calloc(N, sizeof(double)); }

static double *resized(double *old, size_t n) { return realloc(old, n * sizeof(double)); }

static double *my_alloc(size_t bytes) {
  double *block = malloc(bytes);
  return block;
}

static double *wrapped(void) {
  double *block = my_alloc(N * sizeof(double));
  return block;
}

static double *aligned(void) {
  void *block = NULL;
  return posix_memalign(&block, 65536, N * sizeof(double)) ? NULL : block;
}

static void *work(void *argument) {
  double *mine = first(), *sum = argument;
  for (int i = 0; i < N; i++) mine[i] = i % 7;
  for (int i = 0; i < N; i++) *sum += mine[i] * filled[i % 5];
  free(mine);
  return NULL;
}

int main(int count, char **words) {
  double *a = first(), *b = second(), *c = cleared(), *d = wrapped(), *e = aligned(), *g = NULL, sum = 0, sums[4] = {0};
  if (count > 1) colors_file = fopen(words[1], "w");
  for (int i = 0; i < N; i++) sum += c[i] + zeros[i] + filled[i] + fixed[i];
  for (int i = 0; i < N; i++) {
    a[i] = i;
    b[i] = 2 * i;
    c[i] = d[i] = e[i] = i % 11;
    zeros[i] = i % 13;
    filled[i] += i % 3;
  }
  // Grows and shrinks, many times its first size.
  size_t had = 0;
  for (size_t n = 100; n < N; n = n * 3 / 2) {
    g = resized(g, n);
    for (size_t i = had; i < n; i++) g[i] = i % 5;
    had = n;
  }
  for (int i = 0; i < 10000; i++) sum += g[i];
  g = resized(g, 1000);
  for (int i = 0; i < 500; i++) sum += g[i];
  for (int i = 0; i < N; i++) sum += a[i] * 3 + b[i] + c[i] * d[i] + e[i] + zeros[i] + filled[i] + fixed[i] + small[i % 64];
  tell_colors("zeros", zeros, sizeof zeros);
  tell_colors("filled", filled, sizeof filled);
  tell_colors("fixed", fixed, sizeof fixed);
  tell_colors("first", a, N * sizeof *a);
  tell_colors("second", b, N * sizeof *b);
  tell_colors("cleared", c, N * sizeof *c);
  tell_colors("wrapped", d, N * sizeof *d);
  tell_colors("aligned", e, N * sizeof *e);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, &sums[i]);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 4; i++) sum += sums[i];
  printf("%.1f %d\n", sum, (int)((uintptr_t)e % 65536));
  free(a);
  a = first();
  for (int i = 0; i < N; i++) a[i] = i;
  free(b);
  free(d);
  free(g);
  // c, e and the second a are left for the end.
  return 3;
}
