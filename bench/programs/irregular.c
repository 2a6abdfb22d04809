// Accesses in no order: `gather N ROUNDS` through indices, `hash N LOOKUPS` in chains, `list N ROUNDS` of nodes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    struct node *next;
    unsigned long key, value;
};

static unsigned long random_number(void) {
    static unsigned long state = 88172645463325252UL;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

static unsigned long gather(long count, long rounds) {
    double *values = malloc(count * sizeof *values), sum = 0;
    int *indices = malloc(count * sizeof *indices);
    for (long i = 0; i < count; i++)
        values[i] = i, indices[i] = random_number() % count;
    for (long round = 0; round < rounds; round++)
        for (long i = 0; i < count; i++)
            sum += values[indices[i]];
    return sum;
}

static unsigned long hash(long count, long lookups) {
    struct node **table = calloc(count, sizeof *table), *nodes = malloc(count * sizeof *nodes);
    unsigned long sum = 0;
    for (long i = 0; i < count; i++) {
        nodes[i].key = random_number(), nodes[i].value = i;
        struct node **bucket = &table[nodes[i].key % count];
        nodes[i].next = *bucket, *bucket = &nodes[i];
    }
    for (long i = 0; i < lookups; i++) {
        unsigned long key = nodes[i * 7919 % count].key;
        struct node *at = table[key % count];
        while (at && at->key != key)
            at = at->next;
        sum += at ? at->value : 0;
    }
    return sum;
}

static unsigned long list(long count, long rounds) {
    struct node *nodes = malloc(count * sizeof *nodes), *first = NULL;
    long *order = malloc(count * sizeof *order);
    unsigned long sum = 0;
    for (long i = 0; i < count; i++) {
        long other = random_number() % (i + 1);
        order[i] = order[other], order[other] = i;
    }
    for (long i = 0; i < count; i++) {
        struct node *node = &nodes[order[i]];
        node->value = i, node->next = first, first = node;
    }
    for (long round = 0; round < rounds; round++)
        for (struct node *at = first; at; at = at->next)
            sum += at->value;
    return sum;
}

int main(int count, char **arguments) {
    if (count != 4)
        return 2;
    long size = atol(arguments[2]), times = atol(arguments[3]);
    unsigned long sum = !strcmp(arguments[1], "gather") ? gather(size, times)
                        : !strcmp(arguments[1], "hash") ? hash(size, times)
                                                        : list(size, times);
    printf("%lu\n", sum);
}
