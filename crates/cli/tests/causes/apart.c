// Three arrays of their own that are used at one index, in no order; with -DONCE their allocation is one statement's, with
// -DTOGETHER they are one array.
#include <stdio.h>
#include <stdlib.h>

#define N 60000

#ifdef TOGETHER
struct all {
    double x, y, z;
};
#define X(at) all[at].x
#define Y(at) all[at].y
#define Z(at) all[at].z
#else
#define X(at) x[at]
#define Y(at) y[at]
#define Z(at) z[at]
#endif

static double *make(void) {
    return malloc(N * sizeof(double));
}

int main(void) {
#if defined TOGETHER
    struct all *all = malloc(N * sizeof *all);
#elif defined ONCE
    double *x = make(), *y = make(), *z = make();
#else
    double *x = malloc(N * sizeof *x); // allocated
    double *y = malloc(N * sizeof *y);
    double *z = malloc(N * sizeof *z);
#endif
    int *order = malloc(N * sizeof *order);
    srand(5);
    for (int i = 0; i < N; i++) {
        order[i] = ((unsigned)rand() << 8 ^ (unsigned)rand()) % N;
        X(i) = Y(i) = Z(i) = i;
    }
    double sum = 0;
    for (int round = 0; round < 8; round++)
        for (int i = 0; i < N; i++) {
            int at = order[i];
            sum += X(at) * Y(at) + Z(at); // here
        }
    printf("%f\n", sum);
}
