/* Allocates data sets all the time; says at each line of its input how many, and how many could not be. With an argument it
   only takes memory from `grab`, for a plan to place. */
#include <domicile/domicile.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BYTES = 1 << 18, HELD = 8 };

static atomic_long done, failed;
static atomic_int over;
static char said[512];
static domicile_slots *slots;

char *grab(size_t bytes) { return malloc(bytes); }

static int place(char *data) {
  domicile_slot *slot = NULL;
  domicile_data_set *set = NULL;
  int error = domicile_slot_create(slots, 131072, DOMICILE_SLOT_PRIVATE, &slot);
  if (!error) error = domicile_data_set_create(slots, NULL, &set);
  if (!error) error = domicile_data_set_add(set, data, BYTES);
  if (!error) error = domicile_data_set_allocate(set, slot, DOMICILE_OTHERS_ABSENT, NULL);
  if (error) snprintf(said, sizeof said, "%s", domicile_slots_message());
  if (!error && domicile_slots_available(slots) == 0) error = -1;
  if (set) domicile_data_set_destroy(set);
  if (slot && domicile_slot_destroy(slot)) error = -1;
  return error;
}

static void *work(void *argument) {
  char *held[HELD] = {0};
  for (unsigned turn = 0; !over; turn++) {
    if (argument) {
      unsigned at = turn % HELD;
      free(held[at]);
      /* Of so many sizes that few blocks are used again. */
      held[at] = grab(BYTES + turn % 300 * 8192);
      memset(held[at], (int)turn, BYTES);
    } else {
      char *data = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      memset(data, (int)turn | 1, BYTES / 2);
      failed += place(data) != 0 || data[BYTES / 4] != (char)(turn | 1) || data[BYTES - 1] != 0;
      munmap(data, BYTES);
    }
    done++;
  }
  return NULL;
}

int main(int count, char **arguments) {
  pthread_t thread;
  char line[64];
  if (count == 1 && domicile_slots_open(NULL, &slots)) return printf("%s\n", domicile_slots_message()), 1;
  pthread_create(&thread, NULL, work, count > 1 ? arguments : NULL);
  while (fgets(line, sizeof line, stdin)) {
    printf("%ld done, %ld failed %s\n", (long)done, (long)failed, said);
    fflush(stdout);
  }
  over = 1;
  pthread_join(thread, NULL);
  if (slots && domicile_slots_close(slots)) return 2;
  return 0;
}
