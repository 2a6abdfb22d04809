/* The part of a program that is compared: `work_begins` to `work_ends`.

   `work_ends` prints its processor and wall time on standard error, for the runner. Both are phases of the trace
   ("work", "rest"), so that the simulator counts the same window. timed.c has the bodies; Fortran and Rust call them. */
#ifndef TIMED_H
#define TIMED_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

void work_begins(void);
void work_ends(void);

#ifdef __cplusplus
}
#endif

/* Is the variant asked for (the first argument) `name`? Any but the two of the pair ends the program. */
static inline int variant(int argc, char **argv, const char *before, const char *after)
{
   if (argc > 1 && strcmp(argv[1], before) == 0)
      return 0;
   if (argc > 1 && strcmp(argv[1], after) == 0)
      return 1;
   fprintf(stderr, "usage: %s %s|%s [size]\n", argv[0], before, after);
   exit(2);
}

/* The second argument, or what the pair uses. */
static inline size_t size_or(int argc, char **argv, size_t usual)
{
   return argc > 2 ? strtoull(argv[2], NULL, 10) : usual;
}

/* SplitMix64: the same numbers everywhere. */
static inline uint64_t random_next(uint64_t *state)
{
   uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
   z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
   z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
   return z ^ (z >> 31);
}

/* 0 to count - 1 in random order. */
static inline uint32_t *shuffled(size_t count, uint64_t seed)
{
   uint32_t *order = (uint32_t *)malloc(count * sizeof *order);
   for (size_t i = 0; i < count; i++)
      order[i] = (uint32_t)i;
   for (size_t i = count - 1; i > 0; i--) {
      size_t other = random_next(&seed) % (i + 1);
      uint32_t kept = order[i];
      order[i] = order[other];
      order[other] = kept;
   }
   return order;
}

#endif
