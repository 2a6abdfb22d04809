// A sanitizer lays globals out by itself, with red zones behind them: nothing is touched.
//
// RUN: %clang -fsanitize=address -S -emit-llvm %s -o - | FileCheck %s

// CHECK-NOT: padded
double x[1024];
double first(void) { return x[0]; }
