/* See cpus.h. Linux lists in /sys which cpus share their last cache and which are one processor. */
#define _GNU_SOURCE
#include "cpus.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define CPUS_MAX 1024

struct cpu {
   int number, cache, processor;
   int pair; /* the how manieth pair of its processor */
};

static struct cpu cpus[CPUS_MAX];
static int count;
static char used[CPUS_MAX];
static pthread_mutex_t marking = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The first number in a file of /sys; -1 where there is none. */
static int number(const char *format, int cpu, int index)
{
   char path[128];
   int value = -1;
   FILE *file;
   snprintf(path, sizeof path, format, cpu, index);
   file = fopen(path, "r");
   if (!file)
      return -1;
   if (fscanf(file, "%d", &value) != 1)
      value = -1;
   fclose(file);
   return value;
}

/* By cache within a processor. */
static int by_place(const void *left, const void *right)
{
   const struct cpu *a = left, *b = right;
   if (a->processor != b->processor)
      return a->processor - b->processor;
   return a->cache != b->cache ? a->cache - b->cache : a->number - b->number;
}

/* The first pair of each processor, then their second pairs, and so on. */
static int by_pair(const void *left, const void *right)
{
   const struct cpu *a = left, *b = right;
   return a->pair != b->pair ? a->pair - b->pair : by_place(a, b);
}

static void look(void)
{
   cpu_set_t allowed;
   int i, at;
   if (sched_getaffinity(0, sizeof allowed, &allowed))
      return;
   for (i = 0; i < CPU_SETSIZE && count < CPUS_MAX; i++)
      if (CPU_ISSET(i, &allowed)) {
         struct cpu *cpu = &cpus[count++];
         int cache;
         cpu->number = i;
         cpu->processor = number("/sys/devices/system/cpu/cpu%d/topology/physical_package_id", i, 0);
         /* The last cache has the highest index, and is named after the first of its cpus. */
         for (at = 0; (cache = number("/sys/devices/system/cpu/cpu%d/cache/index%d/shared_cpu_list", i, at)) >= 0; at++)
            cpu->cache = cache;
      }
   qsort(cpus, (size_t)count, sizeof *cpus, by_place);
   for (i = at = 0; i < count; i++, at++) {
      if (i == 0 || cpus[i].processor != cpus[i - 1].processor)
         at = 0;
      else if (cpus[i].cache != cpus[i - 1].cache)
         at += at % 2; /* a pair shares its cache */
      cpus[i].pair = at / 2;
   }
   qsort(cpus, (size_t)count, sizeof *cpus, by_pair);
}

void cpus_pin(int thread)
{
   cpu_set_t one;
   int cpu;
   pthread_once(&once, look);
   if (!count)
      return;
   cpu = cpus[thread % count].number;
   CPU_ZERO(&one);
   CPU_SET(cpu, &one);
   /* Where it is not allowed, threads run where the kernel puts them. */
   if (sched_setaffinity(0, sizeof one, &one))
      return;
   pthread_mutex_lock(&marking);
   used[cpu] = 1;
   pthread_mutex_unlock(&marking);
}

int cpus_used(void)
{
   int i, sum = 0;
   for (i = 0; i < CPUS_MAX; i++)
      sum += used[i];
   return sum;
}
