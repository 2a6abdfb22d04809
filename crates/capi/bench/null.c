/* Nanoseconds of cpu time to fork and run a null thread through C (Philbin et al. 1996, table 1): 1,048,576
 * of them over 1024 bins, with hints in order and at random, nine passes each, the first of which is cold.
 *
 * gcc -O2 crates/capi/bench/null.c -o null $(pkg-config --cflags --libs domicile) -Wl,-rpath,PREFIX/lib && ./null
 */
#define _POSIX_C_SOURCE 200809L
#include <domicile/th.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void null(void *a, void *b) { (void)a; (void)b; }
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}
int main(void)
{
    enum { N = 1 << 20 };
    uint32_t *h = malloc(N * sizeof *h);
    th_init(4096, 1024);
    for (int random = 0; random < 2; random++) {
        uint64_t x = 88172645463325252ull;
        for (int i = 0; i < N; i++) {
            x ^= x << 13; x ^= x >> 7; x ^= x << 17;
            h[i] = random ? x % 1024 : (uint64_t)i / 1024;
        }
        for (int round = 0; round < 9; round++) {
            double start = now();
            for (int i = 0; i < N; i++)
                th_fork(null, 0, 0, (char *)(intptr_t)(0x100000 + h[i] % 32 * 4096), (char *)(intptr_t)(0x800000 + h[i] / 32 * 4096), 0);
            double forked = now();
            th_run(0);
            double end = now();
            printf("%s fork %.2f run %.2f total %.2f\n", random ? "random" : "order", (forked - start) / N, (end - forked) / N, (end - start) / N);
        }
    }
    free(h);
    return 0;
}
