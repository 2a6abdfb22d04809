// A child of fork uses and frees what its parent has; the parent goes on.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define N 50000

static int table[N];

static int *block(int fill) {
  int *all = malloc(N * sizeof *all);
  for (int i = 0; i < N; i++) all[i] = fill + i;
  return all;
}

static long sum(const int *all) {
  long total = 0;
  for (int i = 0; i < N; i++) total += all[i];
  return total;
}

int main(void) {
  // As daemons do: what is open and not ours is none of our business.
  for (int file = 3; file < 1024; file++) close(file);
  closefrom(3);
  int *mine = block(1), status = 0, bad = 0;
  for (int i = 0; i < N; i++) table[i] = i;
  for (int child = 0; child < 8; child++) {
    pid_t number = fork();
    if (number == 0) {
      long before = sum(mine) + sum(table);
      int *own = block(child);
      mine[5] += 1;
      table[5] += 1;
      long after = sum(mine) + sum(table) + sum(own) - sum(own);
      mine = realloc(mine, 2 * N * sizeof *mine);
      mine[2 * N - 1] = 1;
      free(mine);
      free(own);
      exit(after - before == 2 ? 0 : 1);
    }
    mine[child] += 100;
    waitpid(number, &status, 0);
    bad |= status;
  }
  printf("%ld %ld %d\n", sum(mine), sum(table), bad);
  fflush(stdout);
  free(mine);
  // Another program, which is not concerned: the run-time is not in its environment.
  execlp("sh", "sh", "-c", "echo ${LD_PRELOAD:-none} ${DOMICILE_INSTRUCTIONS:-none}", (char *)NULL);
  return 1;
}
