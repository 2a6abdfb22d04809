// Lists of nodes in no order, followed one after the other, or with -DTURN four at a time.
#include <stdio.h>
#include <stdlib.h>

enum { LISTS = 16, NODES = 60000, AGAIN = 4 };

struct node {
    struct node *next;
    long value, rest[6];
};

int main(void) {
    struct node *nodes = malloc(NODES * sizeof *nodes); // allocated
    unsigned *order = malloc(NODES * sizeof *order);
    unsigned long random = 88172645463325252UL;
    for (unsigned i = 0; i < NODES; i++)
        order[i] = i;
    for (unsigned i = NODES - 1; i > 0; i--) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        unsigned other = random % (i + 1), was = order[i];
        order[i] = order[other], order[other] = was;
    }
    struct node *heads[LISTS] = {0};
    for (unsigned i = 0; i < NODES; i++) {
        nodes[order[i]].value = i;
        nodes[order[i]].next = heads[i % LISTS];
        heads[i % LISTS] = &nodes[order[i]];
    }
    long sum = 0;
    for (int again = 0; again < AGAIN; again++) {
#ifdef TURN
        for (int list = 0; list < LISTS; list += 4) {
            struct node *a = heads[list], *b = heads[list + 1], *c = heads[list + 2], *d = heads[list + 3];
            for (; a; a = a->next, b = b->next, c = c->next, d = d->next)
                sum += a->value + b->value + c->value + d->value;
        }
#else
        for (int list = 0; list < LISTS; list++)
            for (struct node *at = heads[list]; at; at = at->next)
                sum += at->value; // here
#endif
    }
    printf("%ld\n", sum);
}
