/* C = A x B, one dot product a work item (Philbin96, section 2.1). Vectors are contiguous: A is kept transposed.

   multiply [N] [plain]: N by N, 48 unless given; `plain` leaves the marks out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "domicile-trace.h"

static double dot(const double* a, const double* b, int n)
{
   double sum = 0;
   int k;
   for (k = 0; k < n; k++)
      sum += a[k] * b[k];
   return sum;
}

int main(int count, char** arguments)
{
   int n = count > 1 ? atoi(arguments[1]) : 48;
   int marked = count < 3 || strcmp(arguments[2], "plain") != 0;
   double* a = aligned_alloc(4096, sizeof(double) * n * n);
   double* b = aligned_alloc(4096, sizeof(double) * n * n);
   double* c = aligned_alloc(4096, sizeof(double) * n * n);
   double trace = 0;
   int i, j;
   DOMICILE_RECORD_STOP();
   for (i = 0; i < n * n; i++) {
      a[i] = i % 7;
      b[i] = i % 5;
   }
   DOMICILE_RECORD_START();
   DOMICILE_PHASE("multiply");
   for (i = 0; i < n; i++)
      for (j = 0; j < n; j++) {
         unsigned long long hints[2] = {(unsigned long long)(a + i * n), (unsigned long long)(b + j * n)};
         if (marked)
            DOMICILE_WORK_BEGIN(2, hints);
         c[i * n + j] = dot(a + i * n, b + j * n, n);
         if (marked)
            DOMICILE_WORK_END();
      }
   DOMICILE_PHASE("sum");
   for (i = 0; i < n; i++)
      trace += c[i * n + i];
   printf("%.0f\n", trace);
   return 0;
}
