/* Blocks of the heap of all sizes, by all who give and take them: prints where in a page the large ones begin, and whether all
   of them held what was written. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 40, BYTES = 200000 };

static int holds(const unsigned char *block, size_t bytes, int seed) {
  for (size_t at = 0; at < bytes; at++)
    if (block[at] != (unsigned char)(at * 7 + (size_t)seed)) return 0;
  return 1;
}

static void *fill(void *to, size_t bytes, int seed) {
  unsigned char *block = to;
  for (size_t at = 0; at < bytes; at++) block[at] = (unsigned char)(at * 7 + (size_t)seed);
  return to;
}

/* Allocates, resizes and frees at random; whether all held. */
static void *torture(void *argument) {
  unsigned state = (unsigned)(uintptr_t)argument * 2654435761u + 1;
  unsigned char *blocks[64] = {0};
  size_t bytes[64] = {0};
  int good = 1;
  for (int turn = 0; turn < 4000; turn++) {
    state = state * 1103515245u + 12345u;
    int at = state >> 16 & 63, seed = at;
    size_t wanted = (state >> 4) % (turn % 3 ? 90000 : 600) + 1;
    if (blocks[at]) {
      good &= holds(blocks[at], bytes[at] < 64 ? bytes[at] : 64, seed);
      good &= blocks[at][bytes[at] - 1] == (unsigned char)((bytes[at] - 1) * 7 + (size_t)seed);
      good &= malloc_usable_size(blocks[at]) >= bytes[at];
    }
    if (blocks[at] && turn % 2) {
      size_t kept = bytes[at] < wanted ? bytes[at] : wanted;
      blocks[at] = realloc(blocks[at], wanted);
      good &= holds(blocks[at], kept, seed);
    } else {
      free(blocks[at]);
      void *aligned = NULL;
      switch (turn % 5) {
        case 0: blocks[at] = calloc(1, wanted); good &= blocks[at][wanted - 1] == 0 && blocks[at][wanted / 2] == 0; break;
        case 1: posix_memalign(&aligned, 64, wanted); blocks[at] = aligned; good &= (uintptr_t)aligned % 64 == 0; break;
        case 2: blocks[at] = memalign(4096, wanted); good &= (uintptr_t)blocks[at] % 4096 == 0; break;
        default: blocks[at] = malloc(wanted);
      }
    }
    bytes[at] = wanted;
    fill(blocks[at], wanted, seed);
  }
  for (int at = 0; at < 64; at++) free(blocks[at]);
  return (void *)(uintptr_t)good;
}

int main(void) {
  void *blocks[BLOCKS];
  int good = 1;
  for (int at = 0; at < BLOCKS; at++) {
    blocks[at] = at % 2 ? malloc(BYTES) : calloc(BYTES, 1);
    fill(blocks[at], BYTES, at);
    printf("%s%d", at ? " " : "", (int)((uintptr_t)blocks[at] % 4096));
  }
  printf("\n");
  for (int at = 0; at < BLOCKS; at++) {
    blocks[at] = realloc(blocks[at], at % 3 ? 3 * BYTES : BYTES / 2);
    good &= holds(blocks[at], BYTES / 2, at);
    printf("%s%d", at ? " " : "", (int)((uintptr_t)blocks[at] % 4096));
  }
  printf("\n");
  for (int at = 0; at < BLOCKS; at++) free(blocks[at]);
  pthread_t threads[4];
  for (int at = 0; at < 4; at++) pthread_create(&threads[at], NULL, torture, (void *)(uintptr_t)at);
  for (int at = 0; at < 4; at++) {
    void *result;
    pthread_join(threads[at], &result);
    good &= (int)(uintptr_t)result;
  }
  char *line = NULL;
  size_t room = 0;
  FILE *self = fopen("/proc/self/maps", "r");
  while (getline(&line, &room, self) > 0) {}
  free(line);
  fclose(self);
  printf("good %d\n", good);
  return 0;
}
