// Which references get a prefetch, and how many: Mowry's reuse classes, one function each. The machine: lines of
// 128 bytes, 400 MHz, 500 ns = 200 cycles.
//
// RUN: env DOMICILE_COMPILER=prefetch,line=128,cache=1048576,chip=32768,clock=400,latency=500,issue=1 \
// RUN:   %clang -O2 -fno-vectorize -fno-unroll-loops -S -emit-llvm %s -o %t.ll \
// RUN:   -g1 -Rpass=domicile-prefetch -Rpass-missed=domicile-prefetch 2>%t.said
// RUN: FileCheck %s <%t.ll
// RUN: FileCheck --check-prefix=SAID %s <%t.said
// RUN: clang-19 -O2 -S %t.ll -o - | FileCheck --check-prefix=X86 %s
// RUN: %clang -O2 -S -emit-llvm %s -o - | FileCheck --check-prefix=OFF %s
// RUN: env DOMICILE_COMPILER=prefetch %clang -O0 -S -emit-llvm %s -o - | FileCheck --check-prefix=OFF %s

// X86: prefetcht0
// X86-NOT: prefetchw
// OFF-NOT: call {{.*}}llvm.prefetch

#define N 1024
double x[N][N], y[N][N], r[N][N], few[64];
extern int there[];

// Spatial reuse: 128 / 8 = 16 iterations share a line and a prefetch.
// CHECK-LABEL: @unit_stride(
// CHECK-COUNT-1: call void @llvm.prefetch.p0(ptr {{.*}}, i32 0, i32 3, i32 1)
// CHECK-NOT: call {{.*}}llvm.prefetch
// SAID: reuse.c:[[#@LINE+3]]:{{.*}}1 of 1 references prefetched {{.*}}once for each line, by unrolling; 0 hit
double unit_stride(double *a, long n) {
  double s = 0;
  for (long i = 0; i < n; i++)
    s += a[i];
  return s;
}

// Backwards it is the lines before. What is written is fetched to be written.
// CHECK-LABEL: @backwards(
// CHECK: getelementptr {{.*}}, i64 -{{[0-9]+}}
// CHECK: call void @llvm.prefetch.p0(ptr {{.*}}, i32 1, i32 3, i32 1)
// CHECK-NOT: call {{.*}}llvm.prefetch
void backwards(double *a, long n) {
  for (long i = n - 1; i >= 0; i--)
    a[i] = a[i] * 3;
}

// No spatial reuse: each iteration touches a line of its own.
// CHECK-LABEL: @big_stride(
// CHECK-COUNT-1: call void @llvm.prefetch.p0
// CHECK-NOT: call {{.*}}llvm.prefetch
// SAID: reuse.c:[[#@LINE+3]]:{{.*}}1 of 1 references prefetched {{.*}}in each iteration
double big_stride(long column) {
  double s = 0;
  for (int j = 0; j < N; j++)
    s += x[j][column];
  return s;
}

// A stride that is known at run time only: so is how far ahead, computed once before the loop.
// CHECK-LABEL: @some_stride(
// CHECK: [[AHEAD:%.*]] = mul i64
// CHECK: getelementptr i8, ptr {{.*}}, i64 [[AHEAD]]
// CHECK-COUNT-1: call void @llvm.prefetch.p0
// CHECK-NOT: call {{.*}}llvm.prefetch
double some_stride(double *a, long n, long stride) {
  double s = 0;
  for (long j = 0; j < n; j++)
    s += a[j * stride];
  return s;
}

// Group reuse: of five points of x the one that comes first leads, x[j + 1][i], because three rows fit the cache.
// CHECK-LABEL: @stencil(
// CHECK-COUNT-2: call void @llvm.prefetch.p0
// CHECK-NOT: call {{.*}}llvm.prefetch
// SAID: reuse.c:[[#@LINE+3]]:{{.*}}2 of 5 references prefetched {{.*}}; 3 hit
void stencil(void) {
  for (int j = 1; j < N - 1; j++)
    for (int i = 1; i < N - 1; i++)
      r[j][i] = x[j][i] + x[j][i - 1] + x[j][i + 1] + x[j - 1][i] + x[j + 1][i];
}

// The same with dimensions known at run time only.
// CHECK-LABEL: @stencil_of_n(
// CHECK-COUNT-2: call void @llvm.prefetch.p0
// CHECK-NOT: call {{.*}}llvm.prefetch
void stencil_of_n(long n, double a[restrict n][n], double b[restrict n][n]) {
  for (long j = 1; j < n - 1; j++)
    for (long i = 1; i < n - 1; i++)
      b[j][i] = a[j][i - 1] + a[j][i + 1] + a[j - 1][i] + a[j + 1][i];
}

// Temporal reuse in the loop itself (a[3]) and by the loop around (a row of r, which stays while k runs): only y
// is fetched from afar.
// CHECK-LABEL: @product(
// CHECK-COUNT-1: call void @llvm.prefetch.p0
// CHECK-NOT: call {{.*}}llvm.prefetch
void product(void) {
  for (int i = 0; i < N; i++)
    for (int k = 0; k < N; k++)
      for (int j = 0; j < N; j++)
        r[i][j] += x[i][k] * y[k][j];
}

// CHECK-LABEL: @invariant(
// CHECK-NOT: call {{.*}}llvm.prefetch
double invariant(volatile int *go, double *restrict a) {
  double s = 1;
  while (*go)
    s = s * a[3] + 1;
  return s;
}

// Smaller than the on-chip cache: it stays there.
// CHECK-LABEL: @table(
// CHECK-NOT: call {{.*}}llvm.prefetch
double table(int n) {
  double s = 0;
  for (int i = 0; i < n; i++)
    s = s * 0.5 + few[i & 63] + few[n & 63];
  return s;
}

// Over before what it prefetches would have come.
// CHECK-LABEL: @short_loop(
// CHECK-NOT: call {{.*}}llvm.prefetch
// SAID: reuse.c:[[#@LINE+3]]:{{.*}}not prefetched: at most 20 iterations
void short_loop(double *a) {
#pragma clang loop unroll(disable)
  for (int i = 0; i < 20; i++)
    a[i] += 1;
}

// Where a gather goes is not known before.
// CHECK-LABEL: @gather(
// CHECK-COUNT-1: call void @llvm.prefetch.p0
// CHECK-NOT: call {{.*}}llvm.prefetch
// SAID: reuse.c:[[#@LINE+4]]:{{.*}}not prefetched: its address is loaded in the loop
double gather(const double *a, long n) {
  double s = 0;
  for (long i = 0; i < n; i++)
    s += a[there[i]];
  return s;
}

// A store that only some iterations reach is no reason to fetch its line; the load that decides is.
// CHECK-LABEL: @sometimes(
// CHECK-COUNT-1: call void @llvm.prefetch.p0(ptr {{.*}}, i32 0
// CHECK-NOT: call {{.*}}llvm.prefetch
// SAID: reuse.c:[[#@LINE+4]]:{{.*}}not prefetched: only some iterations reach it
void sometimes(double *restrict a, const double *restrict b, long n) {
  for (long i = 0; i < n; i++)
    if (b[i] > 0)
      a[i] = 1;
}
