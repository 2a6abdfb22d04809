/* Finds which colors the whole pages of some memory have: 4 bits of the frames' addresses, from bit 12. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static FILE *colors_file;

static void tell_colors(const char *name, const void *start, size_t bytes) {
  uintptr_t from = ((uintptr_t)start + 4095) / 4096, to = ((uintptr_t)start + bytes) / 4096;
  int seen[16] = {0}, map = open("/proc/self/pagemap", O_RDONLY);
  if (!colors_file) return;
  for (uintptr_t page = from; page < to; page++) {
    uint64_t entry = 0;
    if (pread(map, &entry, 8, (off_t)(page * 8)) == 8 && entry >> 63 && (entry & ((1ull << 55) - 1))) seen[entry & 15]++;
  }
  close(map);
  fprintf(colors_file, "%s:", name);
  for (int color = 0; color < 16; color++)
    if (seen[color]) fprintf(colors_file, " %d", color);
  fprintf(colors_file, "\n");
  fflush(colors_file);
}
