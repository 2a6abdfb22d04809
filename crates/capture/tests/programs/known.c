/* References that are known exactly: each of two threads writes its own array forwards and reads
   it backwards, and adds to a counter under a mutex, between barriers. */
#include <pthread.h>

#define COUNT 1000

volatile long array_a[COUNT];
volatile int array_b[COUNT];
volatile long shared;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

static void* work_a(void* unused)
{
   long i;
   for (i = 0; i < COUNT; i++)
      array_a[i] = i;
   pthread_barrier_wait(&barrier);
   for (i = COUNT - 1; i >= 0; i--)
      (void)array_a[i];
   pthread_mutex_lock(&mutex);
   shared += 2;
   pthread_mutex_unlock(&mutex);
   return unused;
}

static void* work_b(void* unused)
{
   int i;
   for (i = 0; i < COUNT; i += 2)
      array_b[i]++;
   pthread_barrier_wait(&barrier);
   pthread_mutex_lock(&mutex);
   shared += 3;
   pthread_mutex_unlock(&mutex);
   return unused;
}

int main(void)
{
   pthread_t a, b;
   pthread_barrier_init(&barrier, 0, 2);
   pthread_create(&a, 0, work_a, 0);
   pthread_create(&b, 0, work_b, 0);
   pthread_join(a, 0);
   pthread_join(b, 0);
   return shared == 5 ? 0 : 1;
}
