// Eight threads, a node each, and an array that main clears and each thread uses a part of, larger than its cache.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 8
#define DOUBLES ((1280 << 10) / sizeof(double))

static double *cleared;

static void *work(void *argument) {
    double *given = cleared + (long)argument * DOUBLES;
    for (int round = 0; round < 3; round++)
        for (size_t at = 0; at < DOUBLES; at += 8)
            given[at] += 1;
    return NULL;
}

__attribute__((noinline)) static void clear(double *all, size_t bytes) {
    memset(all, 0, bytes); // here
    __asm__ volatile("" : : "r"(all) : "memory");
}

int main(void) {
    pthread_t threads[THREADS];
    cleared = aligned_alloc(4096, THREADS * DOUBLES * sizeof(double));
    clear(cleared, THREADS * DOUBLES * sizeof(double));
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}
