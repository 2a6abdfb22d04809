/* Threads that wait by running, or only seem to. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static _Atomic int turn;
static _Atomic long counter;
static atomic_flag lock = ATOMIC_FLAG_INIT;
static long work[1 << 16];

static void busy(int rounds)
{
   for (int r = 0; r < rounds; r++)
      for (int i = 0; i < 1 << 16; i++)
         work[i] += i * r;
}

static void read_until(int wanted)
{
   while (atomic_load_explicit(&turn, memory_order_acquire) != wanted)
      ;
}

static void take(void)
{
   while (atomic_flag_test_and_set(&lock))
      ;
}

static void* reads(void* unused)
{
   for (int i = 0; i < 5; i++) {
      read_until(2 * i + 1);
      atomic_store(&turn, 2 * i + 2);
   }
   return unused;
}

static void* takes(void* unused)
{
   take();
   atomic_flag_clear(&lock);
   return unused;
}

/* The same places again and again, and another thread writes there too: but nobody waits. */
static void* counts(void* unused)
{
   for (int i = 0; i < 700000; i++)
      atomic_fetch_add(&counter, 1);
   return unused;
}

static void* computes(void* unused)
{
   static volatile double step = 1e-9;
   double sum = 0;
   for (int i = 0; i < 700000; i++)
      sum += step;
   counter = sum > 0;
   return unused;
}

static pthread_t start(void* (*what)(void*))
{
   pthread_t thread;
   if (pthread_create(&thread, NULL, what, NULL))
      abort();
   return thread;
}

int main(int count, char** given)
{
   const char* how = count > 1 ? given[1] : "";
   pthread_t thread;
   if (!strcmp(how, "reads")) {
      thread = start(reads);
      for (int i = 0; i < 5; i++) {
         busy(10);
         atomic_store(&turn, 2 * i + 1);
         read_until(2 * i + 2);
      }
   } else if (!strcmp(how, "takes")) {
      take();
      thread = start(takes);
      busy(60); /* several turns of both threads */
      atomic_flag_clear(&lock);
   } else if (!strcmp(how, "counts")) {
      thread = start(counts);
      counts(NULL);
   } else if (!strcmp(how, "computes")) {
      thread = start(computes);
      computes(NULL);
   } else if (!strcmp(how, "limit")) {
      struct rlimit limit;
      getrlimit(RLIMIT_NOFILE, &limit);
      limit.rlim_cur = limit.rlim_max = limit.rlim_max + 1024;
      return setrlimit(RLIMIT_NOFILE, &limit) ? 71 : 0;
   } else {
      return 2;
   }
   pthread_join(thread, NULL);
   return 0;
}
