/* A program of many phases, some of which come again: sweeps, rows and columns of a matrix, a list, a table that is looked up
   at random, a sort, text. It allocates and initialises as it goes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    struct node *next;
    long value;
};

static uint64_t state = 1;

static uint64_t chance(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static long sweep(double *data, int count, int times) {
    double sum = 0;
    for (int t = 0; t < times; t++)
        for (int i = 0; i < count; i++)
            sum += data[i] *= 1.0001;
    return (long)sum;
}

static long columns(double *data, int side) {
    double sum = 0;
    for (int column = 0; column < side; column++)
        for (int row = 0; row < side; row++)
            sum += data[row * side + column];
    return (long)sum;
}

static long walk(struct node *list, int steps) {
    long sum = 0;
    for (; steps > 0; steps--, list = list->next)
        sum += list->value;
    return sum;
}

static long look_up(long *table, int bits, int times) {
    long sum = 0;
    for (int i = 0; i < times; i++)
        sum += table[chance() >> (64 - bits)]++;
    return sum;
}

static int compare(const void *a, const void *b) {
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

static struct node *shuffled(int count) {
    struct node *nodes = malloc(count * sizeof *nodes);
    int *order = malloc(count * sizeof *order);
    for (int i = 0; i < count; i++)
        order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        int other = chance() % (i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (int i = 0; i < count; i++) {
        nodes[order[i]].value = i;
        nodes[order[i]].next = &nodes[order[(i + 1) % count]];
    }
    free(order);
    return nodes;
}

int main(void) {
    enum { SIDE = 400, NODES = 20000, BITS = 17, KEYS = 20000 };
    double *matrix = calloc(SIDE * SIDE, sizeof *matrix);
    long *table = calloc(1 << BITS, sizeof *table);
    struct node *list = shuffled(NODES);
    char *text = malloc(1 << 16);
    long sum = 0;
    for (int round = 0; round < 2; round++) {
        sum += sweep(matrix, SIDE * SIDE, 2);
        sum += walk(list, 6 * NODES);
        sum += columns(matrix, SIDE);
        long *keys = malloc(KEYS * sizeof *keys);
        for (int i = 0; i < KEYS; i++)
            keys[i] = chance() >> 8;
        qsort(keys, KEYS, sizeof *keys, compare);
        sum += keys[KEYS / 2];
        free(keys);
        sum += look_up(table, BITS, 120000);
        for (int i = 0; i < 20; i++) {
            memset(text, 'a' + i, (1 << 16) - 1);
            text[(1 << 16) - 1] = 0;
            sum += strlen(text);
        }
        sum += look_up(table, 10, 100000);
    }
    printf("%ld\n", sum);
    return 0;
}
