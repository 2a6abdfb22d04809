// Twelve arrays of which each begins at the same place of a page: the first cache has eight ways.
#include <stdio.h>

#define N 2048

#define ARRAY __attribute__((aligned(4096))) static double
ARRAY a0[N];
ARRAY a1[N];
ARRAY a2[N];
ARRAY a3[N];
ARRAY a4[N];
ARRAY a5[N];
ARRAY a6[N];
ARRAY a7[N];
ARRAY a8[N];
ARRAY a9[N];
ARRAY a10[N];
ARRAY a11[N];

int main(int count, char **arguments) {
    (void)arguments;
    double *all[] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11};
    for (int at = 0; at < 12; at++)
        for (int i = 0; i < N; i++)
            all[at][i] = count;
    double sum = 0;
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < N; i++)
            sum += a0[i] * a1[i] + a2[i] * a3[i] + a4[i] * a5[i] + a6[i] * a7[i] + a8[i] * a9[i] + a10[i] * a11[i]; // here
    printf("%f\n", sum);
}
