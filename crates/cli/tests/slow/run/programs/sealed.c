/* Forbids itself system calls, and goes on with the memory that it has: `sealed strict|filter|call`. */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

char *grab(size_t bytes) { return malloc(bytes); }

/* Whatever is not writing or ending ends the process. */
static struct sock_filter rules[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

int main(int count, char **arguments) {
  const char *how = count > 1 ? arguments[1] : "";
  /* The C library's heap has room from here on, and gives none of it back. */
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  char *volatile room = malloc(16 << 20);
  free(room);
  char *kept = grab(100000), *grown = grab(70000), *small = grab(100);
  memset(kept, 1, 100000);
  memset(grown, 2, 70000);
  memset(small, 3, 100);
  struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
  long done = -1;
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (strcmp(how, "strict") == 0) done = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
  if (strcmp(how, "filter") == 0) done = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
  if (strcmp(how, "call") == 0) done = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
  if (done) return 9;
  int good = 1;
  for (int turn = 0; turn < 100; turn++) {
    char *block = grab(50000 + (size_t)turn * 1000);
    good &= block != NULL;
    memset(block, turn, 50000);
    free(block);
  }
  grown = realloc(grown, 200000);
  for (int at = 0; at < 70000; at++) good &= grown[at] == 2;
  good &= malloc_usable_size(kept) >= 100000 && kept[99999] == 1 && small[99] == 3;
  free(kept);
  free(grown);
  free(small);
  if (write(1, good ? "good\n" : "wrong\n", 5) != 5) good = 0;
  syscall(SYS_exit, 7);
  return 0;
}
