// A sum over values in the order of an array of indices.
#include <stdio.h>
#include <stdlib.h>

#define N 100000

static int order[N];
static double values[N];

int main(void) {
    srand(7);
    for (int i = 0; i < N; i++)
        order[i] = rand() % N, values[i] = i;
    double sum = 0;
    for (int round = 0; round < 15; round++)
        for (int i = 0; i < N; i++)
            sum += values[order[i]]; // here
    printf("%f\n", sum);
}
