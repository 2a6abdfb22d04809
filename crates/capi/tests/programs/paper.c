/* The paper's example (section 2.4): a 4x4 matrix product, blocks of two vectors a side. Prints the
 * threads in the order in which they run, as the paper numbers them. */
#include <domicile/th.h>
#include <stdint.h>
#include <stdio.h>

enum { N = 4 };
static double a[N][N], b[N][N], c[N][N];

static void dot_product(void *i_, void *j_)
{
    intptr_t i = (intptr_t)i_, j = (intptr_t)j_;
    c[i][j] = 0;
    for (int k = 0; k < N; k++)
        c[i][j] += a[i][k] * b[j][k];
    printf(" t%d", (int)(i * N + j + 1));
}

int main(void)
{
    /* Addresses of an imaginary memory: vectors of 32 bytes, so that a block's side holds two. */
    const char *at_a = (const char *)0x10000, *at_b = (const char *)0x20000;
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {
            a[i][k] = i + k;
            b[i][k] = i - k;
        }
    th_init(64, 0);
    for (intptr_t i = 0; i < N; i++)
        for (intptr_t j = 0; j < N; j++)
            th_fork(dot_product, (void *)i, (void *)j, at_a + 32 * i, at_b + 32 * j, 0);
    for (int keep = 2; keep >= 0; keep--) {
        th_run(keep);
        printf("\n");
    }
    double sum = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            sum += c[i][j];
    printf("sum %.1f\n", sum);
    return 0;
}
