/* A plain matrix multiply, n x n doubles: what the recorder is measured on. Usage: matmul [n] */
#include <stdio.h>
#include <stdlib.h>

#define MOST 384

static double a[MOST][MOST], b[MOST][MOST], c[MOST][MOST];

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : MOST;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            a[i][j] = i + j;
            b[i][j] = i - j;
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < n; k++)
                sum += a[i][k] * b[k][j];
            c[i][j] = sum;
        }
    printf("%g\n", c[n / 2][n / 3]);
    return 0;
}
