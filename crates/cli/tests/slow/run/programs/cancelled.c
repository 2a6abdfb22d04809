/* Threads that are cancelled while they allocate: each ends so, and so does nothing else. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 150, HELD = 24 };

char *grab(size_t bytes) { return malloc(bytes); }

static volatile int begun;

static void give_up(void *held) {
  for (int at = 0; at < HELD; at++) free(((void **)held)[at]);
}

static void *allocate(void *argument) {
  void *held[HELD] = {0};
  (void)argument;
  pthread_cleanup_push(give_up, held);
  for (unsigned turn = 0;; turn++) {
    free(held[turn % HELD]);
    held[turn % HELD] = NULL;
    /* Of ever other sizes: each gets pages of its own. */
    size_t bytes = (turn * 7919 % 97 + 1) * 8192;
    char *block = grab(bytes);
    if (block) memset(block, 1, bytes);
    held[turn % HELD] = block;
    begun = 1;
    pthread_testcancel();
  }
  pthread_cleanup_pop(1);
  return NULL;
}

int main(void) {
  int cancelled = 0;
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
  printf("%d of %d were cancelled\n", cancelled, ROUNDS);
  return 6;
}
