/* Two threads that count side by side in one line, arrays that are walked against each other, blocks of a list, work
   that can be done in any order: a little of everything that a result is about. */
#include <pthread.h>
#include <stdlib.h>
#include "domicile-trace.h"

enum { SIDE = 24, COLUMNS = 1024 };
static double table[64][COLUMNS];
static volatile struct { long hits, misses; } counters[2];
struct item { struct item *next; long key[5]; };

static void *count(void *which) {
    long at = (long)which;
    for (int i = 0; i < 1500; i++) {
        counters[at].hits++;
        counters[at].misses += i & 1;
    }
    return 0;
}

static double sum(void) {
    double all = 0;
    for (int column = 0; column < 96; column++)
        for (int row = 0; row < 64; row++) all += table[row][column * 8];
    return all;
}

int main(void) {
    struct item *list = 0;
    for (int i = 0; i < 400; i++) {
        struct item *item = malloc(sizeof *item);
        item->key[0] = i;
        item->next = list;
        list = item;
    }
    double *big = malloc(64 * 4096);
    for (int i = 0; i < 64 * 512; i += 16) big[i] = i;
    DOMICILE_SLOT(1, 64 << 10, 1);
    DOMICILE_DATA_RANGE(1, table, sizeof table);
    DOMICILE_ALLOCATE(1, 1);
    double all = sum();
    for (int round = 0; round < 3; round++)
        for (struct item *item = list; item; item = item->next) all += item->key[0];
    for (int i = 0; i < SIDE; i++)
        for (int k = 0; k < SIDE; k++) {
            DOMICILE_WORK_BEGIN(2, ((unsigned long[]){(unsigned long)&big[i * 512], (unsigned long)&big[k * 1024]}));
            for (int n = 0; n < 16; n++) all += big[i * 512 + n] * big[k * 1024 + n];
            DOMICILE_WORK_END();
        }
    pthread_t threads[2];
    for (long at = 0; at < 2; at++) pthread_create(&threads[at], 0, count, (void *)at);
    for (int at = 0; at < 2; at++) pthread_join(threads[at], 0);
    return all < 0;
}
