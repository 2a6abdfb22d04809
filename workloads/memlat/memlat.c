/*
 * memlat: random reads in several regions of memory in turn (Lee and Schwan, "Region Scheduling", ASPLOS 2012, section 3.1).
 *
 * memlat BYTES REGIONS STAY READS [LAST]
 *   BYTES    of each region
 *   REGIONS  how many there are; they take turns
 *   STAY     reads in a region before the next has its turn
 *   READS    in all
 *   LAST     so many of them, at the end, are timed by themselves as well
 *
 * Each region is one cycle of pointers through all its lines in random order: a read waits for the one before. Prints the
 * nanoseconds for each read, and the sum of the lines, counted from their region's first, at which stays ended. With LAST, the
 * nanoseconds for each of the last reads follow; they begin with a stay.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LINE = 64 };

struct line {
    struct line *next;
    char rest[LINE - sizeof(struct line *)];
};

static uint64_t number(const char *text, const char *what)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || *end || *text == '-' || value == 0) {
        fprintf(stderr, "memlat: %s is `%s`; it is a whole number from 1\n", what, text);
        exit(2);
    }
    return value;
}

/* xorshift64, the same each time. */
static uint64_t below(uint64_t bound)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % bound;
}

/* A region whose lines are one cycle (Sattolo's shuffle). */
static struct line *region(uint64_t lines)
{
    struct line *first = aligned_alloc(4096, lines * LINE);
    uint64_t *order = malloc(lines * sizeof *order);
    if (!first || !order) {
        fprintf(stderr, "memlat: there is no memory for %llu lines\n", (unsigned long long)lines);
        exit(1);
    }
    for (uint64_t i = 0; i < lines; i++)
        order[i] = i;
    for (uint64_t i = lines - 1; i > 0; i--) {
        uint64_t other = below(i);
        uint64_t kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (uint64_t i = 0; i < lines; i++)
        first[order[i]].next = &first[order[(i + 1) % lines]];
    free(order);
    return first;
}

/* Nanoseconds. */
static double between(struct timespec begin, struct timespec end)
{
    return (end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec);
}

int main(int argc, char **argv)
{
    if (argc != 5 && argc != 6) {
        fprintf(stderr, "usage: memlat BYTES REGIONS STAY READS [LAST]\n");
        return 2;
    }
    uint64_t bytes = number(argv[1], "BYTES"), regions = number(argv[2], "REGIONS");
    uint64_t stay = number(argv[3], "STAY"), reads = number(argv[4], "READS");
    uint64_t last = argc == 6 ? number(argv[5], "LAST") : 0;
    uint64_t lines = (bytes + 4095) / 4096 * (4096 / LINE);
    struct line **first = malloc(regions * sizeof *first), **at = malloc(regions * sizeof *at);
    if (!first || !at) {
        fprintf(stderr, "memlat: there is no memory for %llu regions\n", (unsigned long long)regions);
        return 1;
    }
    for (uint64_t i = 0; i < regions; i++)
        first[i] = at[i] = region(lines);

    struct timespec begin, late, end;
    uint64_t sum = 0, left = reads, timed = 0;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (uint64_t turn = 0; left > 0; turn++) {
        if (left <= last && !timed) {
            clock_gettime(CLOCK_MONOTONIC, &late);
            timed = left;
        }
        uint64_t now = left < stay ? left : stay;
        struct line *line = at[turn % regions];
        for (uint64_t i = 0; i < now; i++)
            line = line->next;
        at[turn % regions] = line;
        sum += line - first[turn % regions];
        left -= now;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.2f ns a read, sum %llu", between(begin, end) / reads, (unsigned long long)sum);
    if (timed)
        printf("; %.2f ns a read of the last %llu", between(late, end) / timed, (unsigned long long)timed);
    printf("\n");
    return 0;
}
