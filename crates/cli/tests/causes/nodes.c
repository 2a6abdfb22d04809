// Eight threads, a node each: an array that main touches first and each thread uses a part of, one of which each touches its
// part first, and one that all read.
#include <pthread.h>
#include <stdlib.h>

#define THREADS 8
#define DOUBLES ((64 << 10) / sizeof(double))

double *apart, *own, *table;
static double sum[THREADS * 8];

static void *work(void *argument) {
    long self = (long)argument;
    double *mine = own + self * DOUBLES, *given = apart + self * DOUBLES;
    for (size_t at = 0; at < DOUBLES; at++)
        mine[at] = (double)at;
    for (int round = 0; round < 20; round++) {
        for (size_t at = 0; at < DOUBLES; at += 8)
            given[at] += mine[at];
        for (size_t at = 0; at < DOUBLES; at += 8)
            sum[self * 8] += table[at];
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    apart = aligned_alloc(4096, THREADS * DOUBLES * sizeof(double));
    own = aligned_alloc(4096, THREADS * DOUBLES * sizeof(double));
    table = aligned_alloc(4096, DOUBLES * sizeof(double));
    for (size_t at = 0; at < THREADS * DOUBLES; at++)
        ((volatile double *)apart)[at] = 1; // here
    for (size_t at = 0; at < DOUBLES; at++)
        ((volatile double *)table)[at] = 2;
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}
