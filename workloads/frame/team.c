/* See team.h. Compiled once for each program and version: PROGRAM and VERSION are strings. */
#define _GNU_SOURCE
#include "team.h"

#include "cpus.h"
#include "size.h"
#include "slots.h"

#include <domicile-trace.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const char *const SWITCH[] = {"off", "on", 0};
static struct setting common[] = {
   {"threads", "each on a cpu of its own, as far as there are cpus", 1, THREADS_MAX, 1, 0},
   {"cache", "bytes of a shared cache, by which sizes are chosen", 1 << 16, (int64_t)1 << 32, 4 << 20, 0},
   {"colors", "of such a cache, by which slots are rounded", 1, 1 << 16, 64, 0},
   {"sharing", "threads that share such a cache; 0: two, where there are several", 0, THREADS_MAX, 0, 0},
#ifdef SLOTS
   {"slots", "cache slots for data sets", 0, 0, 1, SWITCH},
#else
   {"slots", "means nothing in this version: there are none", 0, 0, 0, SWITCH},
#endif
   {0, 0, 0, 0, 0, 0},
};
static pthread_barrier_t barrier;
static void (*team_body)(int);

static struct setting *find(const char *name)
{
   struct setting *lists[] = {common, settings}, *at;
   int i;
   for (i = 0; i < 2; i++)
      for (at = lists[i]; at->name; at++)
         if (!strcmp(at->name, name))
            return at;
   return 0;
}

int64_t setting(const char *name) { return find(name)->value; }
int team_threads(void) { return (int)setting("threads"); }
int64_t team_cache(void) { return setting("cache"); }

int team_sharing(void)
{
   const int asked = (int)setting("sharing"), usual = team_threads() > 1 ? 2 : 1;
   return asked == 0 ? usual : asked < team_threads() ? asked : team_threads();
}

int slots_on(void) { return (int)setting("slots"); }

int64_t slot_bytes(int64_t bytes)
{
   const int64_t color = team_cache() / setting("colors");
   return (bytes + color - 1) / color * color;
}

static void print(FILE *to, const struct setting *at)
{
   int i;
   if (!at->words)
      fprintf(to, "  --%s N: %s [%lld]\n", at->name, at->help, (long long)at->value);
   else {
      fprintf(to, "  --%s ", at->name);
      for (i = 0; at->words[i]; i++)
         fprintf(to, "%s%s", i ? "|" : "", at->words[i]);
      fprintf(to, ": %s [%s]\n", at->help, at->words[at->value]);
   }
}

static void usage(FILE *to)
{
   const struct setting *at;
   fprintf(to, "usage: " PROGRAM "-" VERSION " [--OPTION VALUE]...\n");
   for (at = settings; at->name; at++)
      print(to, at);
   for (at = common; at->name; at++)
      print(to, at);
   fprintf(to, "numbers may end in k, m or g (powers of 1024)\n");
}

static void refuse(const char *option, const char *why)
{
   fprintf(stderr, PROGRAM "-" VERSION ": %s %s\n", option, why);
   usage(stderr);
   exit(2);
}

static void put(struct setting *at, const char *option, const char *text)
{
   char why[128];
   int i;
   if (!at->words) {
      if (size_read(text, at->least, at->most, &at->value))
         return;
      snprintf(why, sizeof why, "takes a whole number from %lld to %lld%s%.40s", (long long)at->least,
               (long long)at->most, text ? ", not " : "", text ? text : "");
      refuse(option, why);
   }
   for (i = 0; text && at->words[i]; i++)
      if (!strcmp(text, at->words[i])) {
         at->value = i;
         return;
      }
   refuse(option, "takes one of the words below");
}

static void parse(int argc, char **argv)
{
   int i;
   for (i = 1; i < argc; i += 2) {
      struct setting *at = strncmp(argv[i], "--", 2) ? 0 : find(argv[i] + 2);
      if (!strcmp(argv[i], "--help")) {
         usage(stdout);
         exit(0);
      }
      if (!at)
         refuse(argv[i], "is not an option of this program");
      put(at, argv[i], i + 1 < argc ? argv[i + 1] : 0);
   }
#ifndef SLOTS
   if (slots_on())
      refuse("--slots on", "is for the version " PROGRAM "-slots");
#endif
}

void team_enter(int thread)
{
   cpus_pin(thread);
   slots_enter(thread);
}

static void *member(void *number)
{
   team_enter((int)(intptr_t)number);
   team_barrier();
   team_body((int)(intptr_t)number);
   return 0;
}

void team_barrier(void) { pthread_barrier_wait(&barrier); }

void team_run(void (*body)(int))
{
   pthread_t threads[THREADS_MAX];
   int i, count = team_threads();
   team_body = body;
   pthread_barrier_init(&barrier, 0, (unsigned)count);
   for (i = 1; i < count; i++)
      if (pthread_create(&threads[i], 0, member, (void *)(intptr_t)i))
         frame_fail("cannot start so many threads");
   member(0);
   for (i = 1; i < count; i++)
      pthread_join(threads[i], 0);
   pthread_barrier_destroy(&barrier);
}

void *team_memory(const char *name, size_t bytes)
{
   void *memory = mmap(0, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
   if (memory == MAP_FAILED)
      frame_fail("not enough memory");
   DOMICILE_ARRAY(name, memory, bytes);
   return memory;
}

int main(int argc, char **argv)
{
   const struct setting *at;
   parse(argc, argv);
   if (team_cache() < setting("colors"))
      refuse("--colors", "takes no more than the cache has bytes");
   if (slots_on())
      slots_open();
   workload();
   if (slots_on())
      slots_close();

   printf("{\"program\":\"" PROGRAM "\",\"version\":\"" VERSION "\"");
   for (at = settings; at->name; at++)
      if (at->words)
         printf(",\"%s\":\"%s\"", at->name, at->words[at->value]);
      else
         printf(",\"%s\":%lld", at->name, (long long)at->value);
   printf(",\"threads\":%d,\"cpus\":%d,\"cache\":%lld,\"slots\":%s", team_threads(), cpus_used(),
          (long long)team_cache(), slots_on() ? "true" : "false");
   printf(",\"seconds\":%.6f,\"cpu_seconds\":%.6f,\"slot_seconds\":%.6f", frame_seconds(), frame_cpu_seconds(),
          slots_seconds());
   frame_print_reports();
   printf("}\n");
   return fflush(stdout) ? 1 : 0;
}
