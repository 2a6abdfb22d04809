/* A team of three, two of which wait at a barrier while the third kills the program. */
#include <omp.h>
#include <signal.h>
#include <unistd.h>

volatile int data[3 * 64];

int main(void)
{
#pragma omp parallel num_threads(3)
   {
      int me = omp_get_thread_num(), i;
      for (i = 0; i < 64; i++)
         data[64 * me + i] = me;
      if (me == 2) {
         usleep(200000);
         raise(SIGKILL);
      }
#pragma omp barrier
      data[0] = 1;
   }
   return 0;
}
