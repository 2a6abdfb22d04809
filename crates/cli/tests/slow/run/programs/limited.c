/* Forbids its address space to grow, describes loops, and allocates. limited as|data SPARE PAGES: the limit is SPARE bytes above
   what is in use, 0 for none at all. */
#include <domicile/summary.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

static void describe(const char *place, char *array, size_t pages, uint32_t threads) {
  domicile_summary summary = {.name = "array", .start = array, .bytes = pages * 4096, .unit = 4096, .span = 4096,
                              .access = DOMICILE_READS | DOMICILE_WRITES};
  domicile_loop loop = {.version = DOMICILE_SUMMARY_VERSION, .count = 1, .place = place, .iterations = pages,
                        .schedule = DOMICILE_EVEN, .threads = threads, .summaries = &summary};
  domicile_parallel_loop(&loop);
}

static size_t used(const char *field) {
  char line[256];
  size_t kilobytes = 0;
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status))
    if (!strncmp(line, field, strlen(field)))
      kilobytes = strtoul(line + strlen(field), NULL, 10);
  fclose(status);
  return kilobytes << 10;
}

int main(int count, char **words) {
  if (count < 4)
    return 2;
  int all = !strcmp(words[1], "as");
  size_t spare = strtoul(words[2], NULL, 10), pages = strtoul(words[3], NULL, 10);
  char *array = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (array == MAP_FAILED)
    return 3;
  for (size_t page = 0; page < pages; page++)
    memcpy(array + page * 4096, &page, sizeof page);
  size_t most = spare ? used(all ? "VmSize:" : "VmData:") + spare : 0;
  struct rlimit limit = {most, most};
  if (setrlimit(all ? RLIMIT_AS : RLIMIT_DATA, &limit))
    return 4;
  for (uint32_t turn = 0; turn < 6; turn++)
    describe(turn & 1 ? "even" : "odd", array, pages, 2 + turn);
  for (uint32_t turn = 0; turn < 100; turn++)
    describe("even", array, pages, 3);
  void *volatile block = malloc(1 << 20);
  if (block)
    memset(block, 1, 1 << 20);
  for (size_t page = 0; page < pages; page++)
    if (memcmp(array + page * 4096, &page, sizeof page))
      return 5;
  free(block);
  puts("good");
  return 42;
}
