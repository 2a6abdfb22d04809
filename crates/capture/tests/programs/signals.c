/* Threads that wait for each other by condition variable and semaphore. */
#include <pthread.h>
#include <semaphore.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static volatile int waiting, ready;

static void* wait_for_it(void* unused)
{
   pthread_mutex_lock(&mutex);
   waiting = 1;
   while (!ready)
      pthread_cond_wait(&cond, &mutex);
   pthread_mutex_unlock(&mutex);
   sem_post(&semaphore);
   return unused;
}

int main(void)
{
   pthread_t thread;
   int seen = 0;
   sem_init(&semaphore, 0, 0);
   pthread_create(&thread, 0, wait_for_it, 0);
   while (!seen) {
      pthread_mutex_lock(&mutex);
      seen = waiting;
      pthread_mutex_unlock(&mutex);
   }
   pthread_mutex_lock(&mutex);
   ready = 1;
   pthread_cond_signal(&cond);
   pthread_mutex_unlock(&mutex);
   sem_wait(&semaphore);
   pthread_join(thread, 0);
   return 0;
}
