/* Whether threads touch exactly the pages that summaries say.

   The program is compiled with the plugin and with clang's coverage of loads and stores, and linked with this. What it
   tells is worked out the plain way, iteration by iteration and piece by piece; what threads do within parallel regions
   is noted page by page. At the end both must be the same, for each thread, reads and writes apart:

     DOMICILE_ORACLE=exact    (default) nothing touched that was not predicted, nothing predicted that is not touched
     DOMICILE_ORACLE=partial  the program has accesses that the plugin refuses: only the second half

   A read of what the thread writes may be left out: compilers keep such values in registers.

   Of arrays on the stack only the second half: other functions' variables come to lie there.

   Only addresses within arrays that the summaries name count: what else lies in their pages is not theirs. */
#define _GNU_SOURCE
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "domicile/summary.h"

enum { READ = 1, WRITTEN = 2, MAY_READ = 4, MAY_WRITE = 8 };
enum { PAGE = 4096, THREADS = 16, ARRAYS = 512 };
#define PAGES ((uintptr_t)1 << 35)

/* A byte for each page of the address space, mapped when it is touched. */
static uint8_t *pages[THREADS];
static struct array {
   uintptr_t start, end;
   char name[40];
} arrays[ARRAYS];
static int count, described;

static uint8_t *page(int thread, uintptr_t address) {
   return &pages[thread][address / PAGE & (PAGES - 1)];
}

static void verdict(void);

static void begin(void) {
   if (pages[0])
      return;
   for (int t = 0; t < THREADS; t++) {
      pages[t] = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (pages[t] == MAP_FAILED) {
         perror("oracle: mmap");
         exit(2);
      }
   }
   atexit(verdict);
}

static void know(const char *name, uintptr_t start, uintptr_t end) {
   for (int i = 0; i < count; i++)
      if (arrays[i].start <= start && end <= arrays[i].end)
         return;
   if (count == ARRAYS) {
      fprintf(stderr, "oracle: more than %d arrays\n", ARRAYS);
      exit(2);
   }
   arrays[count].start = start;
   arrays[count].end = end;
   snprintf(arrays[count++].name, sizeof arrays[0].name, "%s", name);
}

/* What a summary without a size reaches. */
static uintptr_t lowest, highest;

static void predict_piece(const domicile_summary *s, int thread, int64_t at) {
   int64_t from = at, to = at + (int64_t)s->span, end = s->bytes ? (int64_t)s->bytes : INT64_MAX;
   if (from < 0 && s->bytes)
      from = 0;
   if (to > end)
      to = end;
   if (from >= to)
      return;
   uintptr_t start = (uintptr_t)s->start;
   for (uintptr_t a = (start + from) / PAGE; a <= (start + to - 1) / PAGE; a++)
      *page(thread, a * PAGE) |= (s->access & DOMICILE_READS ? MAY_READ : 0) | (s->access & DOMICILE_WRITES ? MAY_WRITE : 0);
   if (start + from < lowest)
      lowest = start + from;
   if (start + to > highest)
      highest = start + to;
}

static void predict(const domicile_loop *loop, const domicile_summary *s, int thread, uint64_t i) {
   int64_t n = (int64_t)loop->iterations, moved = (int64_t)i;
   if (s->communication == DOMICILE_ROTATE)
      moved = ((moved + s->distance) % n + n) % n;
   int64_t at = s->offset + moved * s->unit + (s->communication == DOMICILE_SHIFT ? s->distance : 0);
   uint64_t counts[3];
   for (int k = 0; k < 3; k++)
      counts[k] = s->inner[k].count ? s->inner[k].count : 1;
   for (uint64_t a = 0; a < counts[0]; a++)
      for (uint64_t b = 0; b < counts[1]; b++)
         for (uint64_t c = 0; c < counts[2]; c++)
            predict_piece(s, thread,
                          at + (int64_t)a * s->inner[0].stride + (int64_t)b * s->inner[1].stride +
                             (int64_t)c * s->inner[2].stride);
}

static int owner(const domicile_loop *loop, uint64_t i, uint64_t p) {
   uint64_t n = loop->iterations, small = n / p, more = n % p;
   if (loop->schedule == DOMICILE_CHUNKED)
      return (int)(i / loop->chunk % p);
   if (loop->schedule == DOMICILE_BLOCKED)
      return (int)(i / ((n + p - 1) / p));
   return (int)(i < more * (small + 1) ? i / (small + 1) : more + (i - more * (small + 1)) / small);
}

void domicile_parallel_loop(const domicile_loop *loop) {
   begin();
   described++;
   uint64_t p = loop->threads ? loop->threads : (uint64_t)omp_get_max_threads();
   for (unsigned k = 0; k < loop->count; k++) {
      const domicile_summary *s = &loop->summaries[k];
      if (s->bytes)
         know(s->name, (uintptr_t)s->start, (uintptr_t)s->start + s->bytes);
      lowest = UINTPTR_MAX;
      highest = 0;
      for (uint64_t i = 0; i < loop->iterations; i++)
         if (owner(loop, i, p) < THREADS)
            predict(loop, s, owner(loop, i, p), i);
      if (!s->bytes && lowest < highest)
         know(s->name, lowest, highest);
   }
}

static void touch(const void *address, uint8_t how) {
   if (!pages[0] || !omp_in_parallel() || omp_get_level() != 1)
      return;
   uintptr_t a = (uintptr_t)address;
   static _Thread_local int last;
   if (!(last < count && arrays[last].start <= a && a < arrays[last].end)) {
      for (last = 0; last < count; last++)
         if (arrays[last].start <= a && a < arrays[last].end)
            break;
      if (last == count)
         return;
   }
   *page(omp_get_thread_num(), a) |= how;
}

#define HOOK(bytes)                                                                                                              \
   void __sanitizer_cov_load##bytes(const void *a) { touch(a, READ); }                                                           \
   void __sanitizer_cov_store##bytes(const void *a) { touch(a, WRITTEN); }
HOOK(1) HOOK(2) HOOK(4) HOOK(8) HOOK(16)

static int on_stack(const struct array *array) {
   extern char **environ;
   uintptr_t top = (uintptr_t)environ, most = (uintptr_t)1 << 30;
   return array->end <= top && array->start >= top - most;
}

static unsigned compare(int thread, const struct array *array, uint8_t does, uint8_t may, const char *what, int partial) {
   partial |= on_stack(array);
   unsigned missed = 0, wrong = 0, right = 0;
   for (uintptr_t a = array->start / PAGE * PAGE; a < array->end; a += PAGE) {
      uint8_t flags = *page(thread, a);
      missed += (flags & does) && !(flags & (may | (may == MAY_READ ? MAY_WRITE : 0)));
      wrong += !(flags & does) && (flags & may);
      right += (flags & does) && (flags & may);
   }
   static int lines;
   if ((wrong || (missed && !partial)) && lines++ < 20)
      printf("ORACLE: %s, thread %d: of %u pages that are %s %u were not predicted; %u were predicted and are not\n", array->name,
             thread, right + missed, what, missed, wrong);
   return wrong + (partial ? 0 : missed);
}

static void verdict(void) {
   const char *mode = getenv("DOMICILE_ORACLE");
   int partial = mode && strcmp(mode, "partial") == 0;
   unsigned faults = 0, all = 0;
   for (int t = 0; t < THREADS; t++)
      for (int i = 0; i < count; i++) {
         faults += compare(t, &arrays[i], READ, MAY_READ, "read", partial);
         faults += compare(t, &arrays[i], WRITTEN, MAY_WRITE, "written", partial);
         for (uintptr_t a = arrays[i].start / PAGE * PAGE; a < arrays[i].end; a += PAGE)
            all += *page(t, a) & (READ | WRITTEN) ? 1 : 0;
      }
   printf("ORACLE: %s: %u pages of threads in %d arrays, %d loops described\n", faults ? "DIFFERS" : "EXACT", all, count, described);
   fflush(stdout);
   if (faults)
      _Exit(3);
}
