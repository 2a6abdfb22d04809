/* Closes all files that it did not open, as daemons do, and opens its own: the library, which has had some of these
   numbers, finds new ones. `kept closefrom|loop` */
#define _GNU_SOURCE
#include <domicile/domicile.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAIRS = 12, PAGES = 64, PAGE = 4096 };

static void place(domicile_slots *slots, domicile_slot *slot, const char *when) {
  domicile_data_set *set = NULL;
  char *data = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  /* Half of them are in use. */
  for (size_t at = 0; at < PAGES / 2 * PAGE; at++) data[at] = (char)at;
  if (domicile_data_set_create(slots, NULL, &set) || domicile_data_set_add(set, data, PAGES * PAGE) ||
      domicile_data_set_allocate(set, slot, DOMICILE_OTHERS_ABSENT, NULL)) {
    printf("%s: %s\n", when, domicile_slots_message());
    exit(1);
  }
  domicile_census census = {.size = sizeof census};
  if (domicile_data_set_census(set, &census)) {
    printf("%s: %s\n", when, domicile_slots_message());
    exit(1);
  }
  if (census.other) printf("%s: %d pages have other colors\n", when, (int)census.other);
  for (size_t at = 0; at < PAGES * PAGE; at++)
    if (data[at] != (at < PAGES / 2 * PAGE ? (char)at : 0)) {
      printf("%s: byte %zu is another one\n", when, at);
      exit(1);
    }
  domicile_data_set_destroy(set);
  munmap(data, PAGES * PAGE);
}

int main(int count, char **arguments) {
  domicile_slots *slots = NULL;
  domicile_slot *slot = NULL;
  if (count < 2 || domicile_slots_open(NULL, &slots) || domicile_slot_create(slots, 131072, DOMICILE_SLOT_PRIVATE, &slot)) {
    printf("%s\n", domicile_slots_message());
    return 1;
  }
  place(slots, slot, "before");
  if (strcmp(arguments[1], "closefrom") == 0) closefrom(3);
  else
    for (int file = 3; file < 1024; file++) close(file);
  /* Sockets of ours and a file, with numbers that the library's files had. */
  int pairs[PAIRS][2], file = open("/tmp", O_TMPFILE | O_RDWR, 0600), map = open("/proc/self/pagemap", O_RDONLY);
  struct stat before[PAIRS][2], now;
  if (file < 0 || map < 0 || write(file, "ours", 4) != 4) return 9;
  for (int at = 0; at < PAIRS; at++) {
    if (socketpair(AF_UNIX, at % 2 ? SOCK_STREAM : SOCK_SEQPACKET, 0, pairs[at])) return 9;
    for (int side = 0; side < 2; side++) {
      fstat(pairs[at][side], &before[at][side]);
      if (send(pairs[at][side], "mine", 4, 0) != 4) return 9;
    }
  }
  for (int turn = 0; turn < 3; turn++) place(slots, slot, "afterwards");
  domicile_slot_destroy(slot);
  domicile_slots_close(slots);
  for (int at = 0; at < PAIRS; at++)
    for (int side = 0; side < 2; side++) {
      char text[64];
      if (fstat(pairs[at][side], &now) || now.st_ino != before[at][side].st_ino) return printf("socket %d is closed\n", at), 2;
      long bytes = recv(pairs[at][side], text, sizeof text, MSG_DONTWAIT);
      if (bytes != 4 || memcmp(text, "mine", 4)) return printf("socket %d has %ld bytes\n", at, bytes), 2;
      if (recv(pairs[at][side], text, sizeof text, MSG_DONTWAIT) != -1 || errno != EAGAIN)
        return printf("socket %d has more\n", at), 2;
    }
  if (fstat(file, &now) || now.st_size != 4) return printf("the file has %ld bytes\n", (long)now.st_size), 2;
  if (fstat(map, &now)) return printf("the page map is closed\n"), 2;
  printf("done\n");
  return 0;
}
