/* All kinds of references, for comparison with another tool: string instructions, atomics, x87,
   vectors, early exits, masked accesses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile int table[1000];
static volatile long long total;
static volatile long double wide[10];

static int find(const int* in, int n, int what)
{
   int i;
   for (i = 0; i < n; i++)
      if (in[i] == what)
         return i;
   return -1;
}

static int compare(const void* a, const void* b) { return *(const int*)b - *(const int*)a; }

int main(void)
{
   int i;
   char from[300], to[300];
   char* heap = malloc(5000);
   for (i = 0; i < 1000; i++)
      table[i] = i * 7;
   for (i = 0; i < 1000; i++)
      total += table[i];
   for (i = 0; i < 50; i++) {
      __sync_fetch_and_add(&total, 2);
      __atomic_exchange_n(&total, 5, __ATOMIC_SEQ_CST);
      wide[i % 10] = wide[(i + 1) % 10] + i;
   }
   memset(from, 1, sizeof from);
   memcpy(to, from, sizeof from);
   __asm__ volatile("cld; rep movsb" : : "S"(from), "D"(to), "c"(100L) : "memory");
   memcpy(heap, to, 300);
   qsort((void*)table, 1000, sizeof table[0], compare);
   printf("%lld %d %d\n", total, find((const int*)table, 1000, 77), heap[3]);
   free(heap);
   return 0;
}
