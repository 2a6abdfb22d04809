// A large body is not copied: its prefetches stand behind a count of the iterations, one in 128 / 8 = 16, and
// one in 4 for what moves by 32 bytes.
//
// RUN: env DOMICILE_COMPILER=prefetch,line=128,clock=400,latency=500,issue=1 \
// RUN:   %clang -O2 -fno-vectorize -fno-unroll-loops -S -emit-llvm %s -o - -Rpass=domicile-prefetch 2>%t.said | FileCheck %s
// RUN: FileCheck --check-prefix=SAID %s <%t.said
// SAID: 2 of {{.*}} references prefetched {{.*}}, once for each line, by counting

#define TIMES(X) X X X X X X X X X X X X X X X X X X X X

// CHECK-LABEL: @large(
// CHECK: [[COUNT:%.*]] = phi i32 [ {{.*}} ], [ {{.*}} ]
// CHECK: and i32 [[COUNT]], 15
// CHECK: icmp eq i32 {{.*}}, 0
// CHECK: call void @llvm.prefetch.p0
// CHECK: and i32 [[COUNT]], 3
// CHECK: icmp eq i32 {{.*}}, 0
// CHECK: call void @llvm.prefetch.p0
// CHECK-NOT: call {{.*}}llvm.prefetch
double large(const double *restrict a, const double *restrict b, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) {
    double t = a[i], u = b[4 * i];
    TIMES(t = t * u + 1; u = u * t - 2; t += u / (t + 3);)
    s += t + u;
  }
  return s;
}
