/* In the place of a paper's program: three arrays, time steps in the phases that `reproduce` counts. Takes their arguments
   and needs none. */
#include <stdio.h>
#include "domicile-trace.h"

enum { LENGTH = 4096 };
static double a[LENGTH], b[LENGTH], c[LENGTH];

static void step(void) {
  for (int i = 0; i < LENGTH; i++) c[i] = a[i] + b[i];
}

int main(void) {
  DOMICILE_PHASE("initialize");
  for (int i = 0; i < LENGTH; i++) a[i] = b[i] = i;
  DOMICILE_PHASE("warm");
  step();
  DOMICILE_PHASE("steady");
  step();
  DOMICILE_PHASE("done");
  printf("%g\n", c[LENGTH - 1]);
  return 0;
}
