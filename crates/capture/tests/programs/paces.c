/* Loops whose instructions wait for each other for a known number of clocks, on data that the first cache holds. */
#include <stdio.h>

enum { COUNT = 512, ROUNDS = 400 };
double numbers[COUNT];
long from[COUNT], to[COUNT];
struct node {
    struct node *next;
} nodes[COUNT];

__attribute__((noinline)) double sum(void)
{
    double sum = 0;
    for (int i = 0; i < COUNT; i++)
        sum += numbers[i]; /* an addition waits for the one before */
    return sum;
}

__attribute__((noinline)) void copy(void)
{
    for (int i = 0; i < COUNT; i++)
        to[i] = from[i] + 1; /* only the counter waits for itself */
}

__attribute__((noinline)) struct node *chase(void)
{
    struct node *at = nodes;
    for (int i = 0; i < COUNT; i++)
        at = at->next; /* a load waits for the one before */
    return at;
}

unsigned long keys[COUNT];

__attribute__((noinline)) unsigned long hash(void)
{
    unsigned long sum = 0;
    for (int i = 0; i < COUNT; i += 64) {
        unsigned long key = keys[i];
        for (int round = 0; round < 100; round++)
            key = key * 0x9e3779b97f4a7c15ul + sum; /* a multiplication waits for the one before; nothing is read */
        sum += key;
    }
    return sum;
}

volatile long cells[COUNT + 1];

__attribute__((noinline)) void prefix(void)
{
    for (int i = 0; i < COUNT; i++)
        cells[i + 1] = cells[i] + i; /* a load waits for the store before it */
}

int main(void)
{
    double all = 0;
    for (int i = 0; i < COUNT; i++)
        nodes[i].next = &nodes[(i + 37) % COUNT];
    for (int round = 0; round < ROUNDS; round++) {
        all += sum();
        copy();
        prefix();
        all += chase() == nodes;
        all += hash() == 1;
    }
    printf("%g\n", all);
    return 0;
}
