/* Says which signals arrive, a line each, and ends with 7 at SIGTERM. With `send PROCESS NUMBER VALUE` it sends one. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t over;

static void say(int number, siginfo_t *about, void *context) {
  char line[64];
  (void)context;
  int bytes = about->si_code == SI_QUEUE ? snprintf(line, sizeof line, "%d with %d\n", number, about->si_value.sival_int)
                                         : snprintf(line, sizeof line, "%d\n", number);
  if (write(1, line, (size_t)bytes) != bytes) _exit(9);
  over |= number == SIGTERM;
}

int main(int count, char **arguments) {
  if (count > 4 && strcmp(arguments[1], "send") == 0) {
    union sigval value = {.sival_int = atoi(arguments[4])};
    return sigqueue(atoi(arguments[2]), atoi(arguments[3]), value);
  }
  struct sigaction action = {.sa_sigaction = say, .sa_flags = SA_SIGINFO};
  sigset_t all, old;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &old);
  for (int number = 1; number <= SIGRTMAX; number++) {
    struct sigaction before;
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(number, &action, NULL);
  }
  /* It stops as others do. */
  signal(SIGTSTP, SIG_DFL);
  printf("process %d\n", (int)getpid());
  fflush(stdout);
  while (!over) sigsuspend(&old);
  return 7;
}
