/* A library that prints what is described to it: the values of descriptors at run time, for FileCheck. */
#include <stdio.h>

#include "domicile/summary.h"

static const char *const schedules[] = {"even", "blocked", "chunked"};
static const char *const accesses[] = {"none", "read", "write", "read+write"};

void domicile_parallel_loop(const domicile_loop *loop) {
   printf("LOOP %s: %lu iterations, %s", loop->place, loop->iterations, schedules[loop->schedule]);
   if (loop->schedule == DOMICILE_CHUNKED)
      printf(" %lu", loop->chunk);
   printf(", threads %u\n", loop->threads);
   for (unsigned i = 0; i < loop->count; i++) {
      const domicile_summary *s = &loop->summaries[i];
      printf("  %s: %s, bytes %lu, offset %ld, unit %ld, span %lu", s->name, accesses[s->access], s->bytes, s->offset, s->unit,
             s->span);
      for (int k = 0; k < 3; k++)
         if (s->inner[k].count)
            printf(", inner %ld x %lu", s->inner[k].stride, s->inner[k].count);
      if (s->communication)
         printf(", %s %ld", s->communication == DOMICILE_SHIFT ? "shift" : "rotate", s->distance);
      printf("\n");
   }
   fflush(stdout);
}
