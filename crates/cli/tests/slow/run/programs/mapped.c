// Memory that the program maps itself, grows, and unmaps in part.
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include "colors.h"

static char *map(size_t bytes) {
  char *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return start;
}

int main(int count, char **words) {
  if (count > 1) colors_file = fopen(words[1], "w");
  char *a = map(1 << 20), *b = map(1 << 20);
  memset(a, 1, 1 << 20);
  memset(b, 2, 1 << 20);
  tell_colors("map", a, 1 << 20);
  munmap(a + (1 << 19), 1 << 19);
  b = mremap(b, 1 << 20, 3 << 20, MREMAP_MAYMOVE);
  long sum = 0;
  for (int i = 0; i < 1 << 19; i++) sum += a[i];
  for (int i = 0; i < 3 << 20; i++) sum += b[i];
  printf("%ld\n", sum);
  return 0;
}
