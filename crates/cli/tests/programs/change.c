/* Programs as they are and as they are really written with a change: SHAPE says which, WRITTEN whether. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define N 128

#if SHAPE == 1 /* A column walk over rows of a power of two; written: rows padded by 64 bytes. */
static double data[N][N + (WRITTEN ? 8 : 0)] __attribute__((aligned(4096)));

static double work(void) {
    double sum = 0;
    for (int round = 0; round < 3; round++)
        for (int c = 0; c < N; c++)
            for (int r = 0; r < N; r++) sum += data[r][c] += 1;
    return sum;
}
#elif SHAPE == 2 /* A walk against the order of the array; written: the array the other way round. */
static double data[N][N] __attribute__((aligned(4096)));

static double work(void) {
    double sum = 0;
    for (int round = 0; round < 3; round++)
        for (int c = 0; c < N; c++)
            for (int r = 0; r < N; r++) sum += *(WRITTEN ? &data[c][r] : &data[r][c]) += 1;
    return sum;
}
#elif SHAPE == 3 /* Structs of which one field is walked; written: that field in an array of its own. */
#if WRITTEN
static struct {
    long key[4096];
    char rest[4096][56];
} data __attribute__((aligned(4096)));
#define KEY(i) data.key[i]
#define REST(i) data.rest[i]
#else
static struct {
    long key;
    char rest[56];
} data[4096] __attribute__((aligned(4096)));
#define KEY(i) data[i].key
#define REST(i) data[i].rest
#endif

static double work(void) {
    double sum = 0;
    for (int i = 0; i < 4096; i += 16) REST(i)[8] = (char)i;
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < 4096; i++) sum += (double)(KEY(i) += i);
    return sum;
}
#elif SHAPE == 4 /* A walk across the rows, which is filled along them; written: the loops interchanged. */
static double data[N][N] __attribute__((aligned(4096)));

static double work(void) {
    double sum = 0;
    for (int r = 0; r < N; r++)
        for (int c = 0; c < N; c++) data[r][c] = r;
    for (int round = 0; round < 3; round++)
        for (int a = 0; a < N; a++)
            for (int b = 0; b < N; b++) sum += *(WRITTEN ? &data[a][b] : &data[b][a]) += 1; /* WALK */
    return sum;
}
#endif

int main(void) {
    printf("%g\n", work());
    return 0;
}
