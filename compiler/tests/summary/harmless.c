// Programs that end before the first fork, and values that only look as if they could be read before it: nothing faults,
// the output is the same with the plugin and without, with the library and without.
//
// RUN: clang-19 -fopenmp -O2 %s -o %t.plain
// RUN: %clang -O2 %s -o %t.alone
// RUN: %clang -O2 %s %print -o %t
// RUN: %clang -O0 %s %print -o %t.0
// RUN: %t.plain >%t.expected
// RUN: %t.alone | diff - %t.expected
// RUN: %t | grep -v LOOP | grep -v '^  ' | diff - %t.expected
// RUN: %t.0 | grep -v LOOP | grep -v '^  ' | diff - %t.expected
// RUN: %t.plain early >%t.expected; %t early | grep -v LOOP | grep -v '^  ' | diff - %t.expected

#include <stdio.h>
#include <stdlib.h>

struct field {
  double *data;
  int rows, wide, step;
};

__attribute__((noinline)) static double sum(int n, struct field *field, int flag) {
  double all = 0;
#pragma omp parallel for reduction(+ : all)
  for (int i = 0; i < n; i++) {
    if (flag)
      for (int j = 0; j < field->wide; j += 1)
        all += field->data[i * field->wide + j];
  }
  return all;
}

__attribute__((noinline)) static void divided(int n, int by, double *x) {
#pragma omp parallel for
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n / by; j++)
      x[i * (n / by) + j] += 1;
}

int main(int argc, char **argv) {
  if (argc > 1)
    return puts(argv[1]), 0;
  double x[100] = {1, 2, 3};
  struct field field = {x, 10, 10, 1};
  printf("%g\n", sum(10, &field, 1));
  // Neither of these reads the structure.
  printf("%g\n", sum(0, NULL, 1));
  printf("%g\n", sum(10, NULL, 0));
  printf("%g\n", sum(10, (struct field *)8, 0));
  // Nor does this divide.
  divided(0, 0, x);
  divided(10, 1, x);
  printf("%g\n", x[99]);
}
