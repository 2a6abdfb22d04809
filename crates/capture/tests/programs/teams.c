/* C++: an allocation by `new`, and a team of three threads. */
#include <omp.h>

volatile int data[300];

__attribute__((noinline)) char* make() { return new char[4321]; }

int main()
{
   char* volatile block = make();
   block[0] = 1;
   delete[] block;
#pragma omp parallel num_threads(3)
   {
      data[omp_get_thread_num()] = 1;
#pragma omp barrier
      data[100 + omp_get_thread_num()] = data[(omp_get_thread_num() + 1) % 3];
   }
   return data[100] + data[101] + data[102] == 3 ? 0 : 1;
}
