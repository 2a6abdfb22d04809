/*
 * neighbor BYTES: reads lines of so much memory in random order, each after the one before, until SIGTERM. Then it prints the
 * reads of a second of clock time.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LINE = 64, LOOK = 1 << 16 };

static volatile sig_atomic_t ends;

static void end(int signal)
{
    (void)signal;
    ends = 1;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

int main(int count, char **arguments)
{
    uint32_t lines = count > 1 ? strtoull(arguments[1], NULL, 10) / LINE : 0;
    if (lines < 2) {
        fprintf(stderr, "usage: neighbor BYTES\n");
        return 2;
    }
    uint32_t (*memory)[LINE / sizeof(uint32_t)] = aligned_alloc(4096, (size_t)lines * LINE);
    uint32_t *order = malloc(lines * sizeof *order);
    if (!memory || !order)
        return 1;
    for (uint32_t line = 0; line < lines; line++)
        order[line] = line;
    /* Sattolo's shuffle: one cycle. */
    for (uint32_t line = lines - 1; line > 0; line--) {
        uint32_t other = (uint32_t)(rand() % line), kept = order[line];
        order[line] = order[other];
        order[other] = kept;
    }
    for (uint32_t at = 0; at < lines; at++)
        memory[order[at]][0] = order[(at + 1) % lines];
    signal(SIGTERM, end);
    uint64_t reads = 0;
    uint32_t at = 0;
    double began = now();
    for (; !ends; reads += LOOK)
        for (int look = 0; look < LOOK; look++)
            at = memory[at][0];
    printf("%.0f %u\n", reads / (now() - began), at);
    return 0;
}
