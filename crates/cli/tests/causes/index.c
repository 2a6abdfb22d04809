// Three arrays in one block that are used at one index, in no order.
#include <stdio.h>
#include <stdlib.h>

#define N 60000

int main(void) {
    float *x = malloc(3 * N * sizeof *x), *y = x + N, *z = y + N;
    int *order = malloc(N * sizeof *order);
    srand(5);
    for (int i = 0; i < N; i++) {
        order[i] = ((unsigned)rand() << 8 ^ (unsigned)rand()) % N;
        x[i] = y[i] = z[i] = i;
    }
    double sum = 0;
    for (int round = 0; round < 8; round++)
        for (int i = 0; i < N; i++) {
            int at = order[i];
            sum += x[at] * y[at] + z[at]; // here
        }
    printf("%f\n", sum);
}
