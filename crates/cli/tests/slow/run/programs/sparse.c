/* A block of the heap of which little is touched, and what becomes of it: `sparse MIB` or, moved on the way, `sparse MIB again`. */
#include <stdio.h>
#include <stdlib.h>

char *grab(size_t bytes) { return malloc(bytes); }

static long resident(void) {
  long size = 0, pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld %ld", &size, &pages) != 2) exit(9);
  fclose(file);
  return pages / 256;
}

int main(int count, char **arguments) {
  size_t bytes = (size_t)atol(arguments[1]) << 20;
  char *block = grab(bytes);
  if (!block) {
    printf("there is no such block\n");
    return 4;
  }
  for (size_t at = 0; at < bytes; at += bytes / 16) block[at] = (char)(at / (bytes / 16) + 1);
  if (count > 2) {
    /* Another block of the same kind, for the first to be moved. */
    char *behind = grab(1 << 16);
    behind[0] = 1;
    block = realloc(block, bytes + (1 << 20));
  }
  int good = block != NULL;
  for (size_t at = 0; good && at < bytes; at += bytes / 16) good = block[at] == (char)(at / (bytes / 16) + 1);
  printf("%s\n", good ? "good" : "wrong");
  fprintf(stderr, "resident %ld\n", resident());
  return 5;
}
