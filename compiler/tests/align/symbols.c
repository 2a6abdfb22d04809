// A symbol keeps its name and size and begins at its array's first element; the arrays begin on lines and at
// different places of the on-chip cache, whatever the optimisation.
//
// RUN: env DOMICILE_COMPILER=line=128,way=16384 %clang -O0 -g %s -o %t.0 && %t.0
// RUN: env DOMICILE_COMPILER=line=128,way=16384 %clang -O2 -g %s -o %t.2 && %t.2
// RUN: env DOMICILE_COMPILER=line=128,way=16384 %clang -O2 -fdata-sections -ffunction-sections -Wl,--gc-sections %s -o %t.g && %t.g
// RUN: env DOMICILE_COMPILER=line=128,way=16384 clang-19 -fpass-plugin=%plugin -O2 -static %s -o %t.s && %t.s
// RUN: llvm-nm-19 -S %t.2 | FileCheck %s
// RUN: llvm-dwarfdump-19 --name=b %t.2 | FileCheck --check-prefix=DEBUG %s

// CHECK-NOT: padded
// CHECK-DAG: {{^[0-9a-f]+ 0*8000 B a$}}
// CHECK-DAG: {{^[0-9a-f]+ 0*8000 b b$}}
// CHECK-DAG: {{^[0-9a-f]+ 0*8000 D c$}}
// DEBUG: DW_AT_location (DW_OP_addrx {{.*}}, DW_OP_plus_uconst 0x{{[0-9a-f]+}})

#include <stdint.h>

double a[4096];
static double b[4096];
double c[4096] = {1};

int main(int count, char **unused) {
  (void)unused;
  for (int i = 0; i < 4096; i++) {
    a[i] = i;
    b[i] = 2 * i + count;
    c[i] += a[i] + b[i];
  }
  uintptr_t at[3] = {(uintptr_t)a, (uintptr_t)b, (uintptr_t)c};
  for (int i = 0; i < 3; i++) {
    if (at[i] % 128)
      return 1;
    for (int j = 0; j < i; j++)
      if (at[i] % 16384 == at[j] % 16384)
        return 2;
  }
  return c[10] != 10 + 20 + count;
}
