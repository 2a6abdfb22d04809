/* FFTW: transforms of many signals that lie beside each other value by value, and of the same ones each in one piece. */
#include "timed.h"

#include <fftw3.h>

int main(int argc, char **argv)
{
   int apart = !variant(argc, argv, "apart", "dense");
   int n = 1024, many = (int)size_or(argc, argv, 1024);
   int stride = apart ? many : 1, next = apart ? 1 : n;
   fftw_complex *data = fftw_alloc_complex((size_t)n * many);
   fftw_plan plan =
      fftw_plan_many_dft(1, &n, many, data, NULL, stride, next, data, NULL, stride, next, FFTW_FORWARD, FFTW_ESTIMATE);
   for (int signal = 0; signal < many; signal++)
      for (int i = 0; i < n; i++) {
         data[signal * next + i * stride][0] = (signal + i) % 17;
         data[signal * next + i * stride][1] = i % 5;
      }
   double sum = 0;
   work_begins();
   fftw_execute(plan);
   work_ends();
   for (int signal = 0; signal < many; signal++)
      sum += data[signal * next + 3 * stride][0] + data[signal * next + 7 * stride][1];
   printf("%.3f\n", sum);
}
