/* Threads that are cancelled while they are in calls for slots: each ends so between two calls, and so does nothing else. */
#define _GNU_SOURCE
#include <domicile/domicile.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 80, BYTES = 1 << 17 };

static domicile_slots *slots;
static domicile_slot *slot;
static volatile int begun;

static void give_back(void *memory) { domicile_slot_memory_free(*(void **)memory); }

static void *allocate(void *argument) {
  void *memory = NULL;
  (void)argument;
  pthread_cleanup_push(give_back, &memory);
  for (;;) {
    if (domicile_slot_memory(slots, slot, NULL, BYTES, &memory)) break;
    memset(memory, 1, BYTES);
    begun = 1;
    pthread_testcancel();
    if (domicile_slot_memory_free(memory)) break;
    memory = NULL;
  }
  pthread_cleanup_pop(1);
  return NULL;
}

int main(void) {
  int cancelled = 0;
  if (domicile_slots_open(NULL, &slots) || domicile_slot_create(slots, BYTES, DOMICILE_SLOT_PRIVATE, &slot))
    return printf("%s\n", domicile_slots_message()), 1;
  for (int round = 0; round < ROUNDS; round++) {
    pthread_t thread;
    void *end = NULL;
    begun = 0;
    if (pthread_create(&thread, NULL, allocate, NULL)) return 8;
    while (!begun) usleep(100);
    usleep((unsigned)(round * 37 % 500));
    pthread_cancel(thread);
    pthread_join(thread, &end);
    cancelled += end == PTHREAD_CANCELED;
  }
  /* No call of theirs has left anything behind that holds others up. */
  if (domicile_slot_destroy(slot) || domicile_slots_close(slots)) return printf("%s\n", domicile_slots_message()), 2;
  printf("%d of %d were cancelled\n", cancelled, ROUNDS);
  return 6;
}
