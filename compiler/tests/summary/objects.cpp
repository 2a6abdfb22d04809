// Vectors, members, lambdas, references, iterators.
//
// RUN: %clangxx -O2 -g -std=c++17 %s %print -o %t
// RUN: env OMP_NUM_THREADS=2 %t | FileCheck %s
// RUN: %clangxx -O0 -g -std=c++17 %s %print -o %t
// RUN: env OMP_NUM_THREADS=2 %t | FileCheck %s

// CHECK: LOOP {{.*}}: 1000 iterations, even, threads 2
// CHECK-DAG: write, {{.*}}offset 0, unit 8, span 8
// CHECK-DAG: read, {{.*}}offset 0, unit 8, span 8
// CHECK: LOOP {{.*}}: 500 iterations, even, threads 2
// CHECK-NEXT: write, {{.*}}offset 0, unit 4, span 4
// CHECK: LOOP {{.*}}: 1000 iterations, even, threads 2
// CHECK-NEXT: read+write, {{.*}}offset 0, unit 8, span 8
// CHECK: LOOP {{.*}}: 1000 iterations, even, threads 2
// CHECK-NEXT: read+write, {{.*}}offset 0, unit 8, span 8

#include <cstdio>
#include <vector>

struct Field {
  float *data;
  int n;
  void fill(float x) {
#pragma omp parallel for
    for (int i = 0; i < n; i++)
      data[i] = x;
  }
};

template <class Body> static void forAll(std::size_t n, const Body &body) {
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < n; i++)
    body(i);
}

int main() {
  std::vector<double> a(1000), b(1000, 2.0);
#pragma omp parallel for
  for (std::size_t i = 0; i < a.size(); i++)
    a[i] = b[i];
  Field field{new float[500], 500};
  field.fill(3);
  forAll(a.size(), [&](std::size_t i) { a[i] += 1; });
#pragma omp parallel for
  for (auto it = a.begin(); it < a.end(); ++it)
    *it += 1;
  std::printf("%g\n", a[999] + field.data[499]);
}
