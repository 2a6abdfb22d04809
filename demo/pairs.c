/* Two pairs of threads. Each pair works on one table in turns: one thread fills it, the other one adds it up. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef ROUNDS
#define ROUNDS 100
#endif

#ifndef BYTES
#define BYTES (192 << 10)
#endif

enum { WORDS = BYTES / sizeof(long) };

static struct pair {
    sem_t full, empty;
    long *table;
    long sum;
} pairs[2];

static void *fill(void *argument) {
    struct pair *pair = argument;
    for (long round = 0; round < ROUNDS; round++) {
        sem_wait(&pair->empty);
        for (long at = 0; at < WORDS; at++)
            pair->table[at * 1297 % WORDS] += round + at;
        sem_post(&pair->full);
    }
    return NULL;
}

static void *add(void *argument) {
    struct pair *pair = argument;
    for (long round = 0; round < ROUNDS; round++) {
        sem_wait(&pair->full);
        for (long at = 0; at < WORDS; at++)
            pair->sum += pair->table[at * 1297 % WORDS];
        sem_post(&pair->empty);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    for (int of = 0; of < 2; of++) {
        sem_init(&pairs[of].full, 0, 0);
        sem_init(&pairs[of].empty, 0, 1);
        pairs[of].table = calloc(WORDS, sizeof(long));
        pthread_create(&threads[of], NULL, fill, &pairs[of]);
        pthread_create(&threads[2 + of], NULL, add, &pairs[of]);
    }
    for (int of = 0; of < 4; of++)
        pthread_join(threads[of], NULL);
    printf("%ld %ld\n", pairs[0].sum, pairs[1].sum);
    return 0;
}
