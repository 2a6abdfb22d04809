/* The frame of the programs whose threads share caches: settings in, one line of JSON out, threads each on a cpu of its
   own, and cache slots for their data. A program supplies `settings` and `workload`; the frame supplies `main`. */
#ifndef WORKLOADS_TEAM_H
#define WORKLOADS_TEAM_H

#include "measured.h"

#include <stddef.h>
#include <stdint.h>

#define THREADS_MAX 256

/* One option of the command line, `--name VALUE`: a whole number, or, where there are `words`, one of them. */
struct setting {
   const char *name;
   const char *help;
   int64_t least, most;
   int64_t value;            /* the default, until the command line says another; of words, which one */
   const char *const *words; /* the last one is 0; then least and most mean nothing */
};

/* The program's own options, after which comes one without a name. */
extern struct setting settings[];
int64_t setting(const char *name);

/* Does the work and reports a "checksum". */
void workload(void);

/* Threads, numbered from 0, of the command line. */
int team_threads(void);
/* Bytes of a shared cache that sizes are chosen by (`--cache`), and how many of the threads share each
   (`--sharing`): two of several, on the paper's machine. */
int64_t team_cache(void);
int team_sharing(void);

/* Puts the calling thread, number `thread`, on its cpu: two threads on two cpus that share a cache, four on such a pair on
   each of two processors if there are two (Ding11, section 4.1). Every thread calls it once, before it uses slots. */
void team_enter(int thread);

/* POSIX threads: runs `body` in all threads, of which the calling one is number 0. */
void team_run(void (*body)(int thread));
/* Waits for all threads of team_run. */
void team_barrier(void);

/* Zeroed memory at the beginning of a page, never freed; `name` is for whoever reads a recording. */
void *team_memory(const char *name, size_t bytes);

/* A piece of memory. Pages that begin in it belong to it, so that pieces side by side share none. */
struct piece {
   const void *start;
   size_t bytes;
};

/* Whether data gets slots in this run. The following calls do nothing where it does not. */
int slots_on(void);
enum { SLOT_SHARED, SLOT_PRIVATE };
/* Defines a slot of so many bytes in each cache; of a color that is not whole it gets nothing. */
int slot_define(int64_t bytes, int kind);
#define NOT_CACHED (-1)
/* Bytes of whole colors (`--colors`) that hold so many. */
int64_t slot_bytes(int64_t bytes);
/* Gives a slot (or NOT_CACHED) to a data set, which the threads first to last use. */
void slot_give(int slot, const struct piece *pieces, int count, int first, int last);
#define EVERYONE 0, team_threads() - 1

#endif
