/* A two-level cache simulator as one writes it in an afternoon: the peer that a faster one has to beat.
 *
 * usage: plain_loop RAW
 *
 * RAW holds 8 bytes a reference, little-endian: the address, with bit 0 set for a write. Caches: 32 KiB in
 * 8 ways and 1 MiB in 16 ways, lines of 64 bytes, LRU by moving to the front, write-back, a line
 * allocated on every miss. Prints references, misses and writebacks of each level.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
    uint64_t number;
    int dirty;
};

struct cache {
    unsigned sets, ways;
    struct line *lines; /* ways of a set together, the most recent first; number 0: free */
    uint64_t accesses, misses, writebacks;
};

static struct cache make(unsigned bytes, unsigned ways)
{
    struct cache cache = {bytes / 64 / ways, ways, NULL, 0, 0, 0};
    cache.lines = calloc(bytes / 64, sizeof *cache.lines);
    if (!cache.lines)
        exit(1);
    return cache;
}

/* Looks a line up and makes it the most recent one; on a miss the victim is left in *victim. */
static int look_up(struct cache *cache, uint64_t number, int write, struct line *victim)
{
    struct line *set = cache->lines + (size_t)(number % cache->sets) * cache->ways;
    struct line line = {number, write};
    unsigned way;

    cache->accesses++;
    for (way = 0; way < cache->ways; way++)
        if (set[way].number == number)
            break;
    int hit = way < cache->ways;
    if (hit)
        line.dirty |= set[way].dirty;
    else {
        way = cache->ways - 1;
        *victim = set[way];
        cache->misses++;
        cache->writebacks += set[way].number && set[way].dirty;
    }
    memmove(set + 1, set, way * sizeof *set);
    set[0] = line;
    return hit;
}

/* A line that L1 wrote back becomes dirty in L2, if it is there. */
static void write_back(struct cache *cache, uint64_t number)
{
    struct line *set = cache->lines + (size_t)(number % cache->sets) * cache->ways;

    for (unsigned way = 0; way < cache->ways; way++)
        if (set[way].number == number)
            set[way].dirty = 1;
}

int main(int argc, char **argv)
{
    static uint64_t buffer[1 << 16];
    struct cache l1 = make(32 << 10, 8), l2 = make(1 << 20, 16);
    struct line victim, gone;
    size_t count;
    FILE *raw = argc == 2 ? fopen(argv[1], "rb") : NULL;

    if (!raw) {
        fprintf(stderr, "usage: plain_loop RAW\n");
        return 2;
    }
    while ((count = fread(buffer, sizeof *buffer, sizeof buffer / sizeof *buffer, raw)) > 0)
        for (size_t i = 0; i < count; i++) {
            uint64_t number = buffer[i] / 64;
            int write = buffer[i] & 1;
            if (look_up(&l1, number, write, &victim))
                continue;
            look_up(&l2, number, 0, &gone);
            if (victim.number && victim.dirty)
                write_back(&l2, victim.number);
        }
    printf("{\"references\": %llu, \"misses\": [%llu, %llu], \"writebacks\": [%llu, %llu]}\n",
           (unsigned long long)l1.accesses, (unsigned long long)l1.misses, (unsigned long long)l2.misses,
           (unsigned long long)l1.writebacks, (unsigned long long)l2.writebacks);
    return 0;
}
