/* NAS CG's matrix: the sum of outer products of sparse random vectors, of geometrically falling weight, plus a diagonal. */
#include "cg.h"

#include "team.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RCOND 0.1

/* NAS's numbers: x' = 5^13 x mod 2^46, as fractions of 2^46. */
static uint64_t seed;
static double next_random(void)
{
   seed = seed * 1220703125u & (((uint64_t)1 << 46) - 1);
   return (double)seed * 0x1p-46;
}

/* A sparse vector: `count` different places with a value each. */
struct vector {
   int32_t *place;
   double *value;
};

/* Places and values of a row's vector, the row itself set to one half; how many there are. */
static int64_t random_vector(const struct problem *problem, int64_t row, struct vector v)
{
   int64_t range = 1, count = 0, i;
   while (range < problem->n)
      range *= 2;
   while (count < problem->nonzer) {
      const double value = next_random();
      const int64_t place = (int64_t)((double)range * next_random());
      if (place >= problem->n)
         continue;
      for (i = 0; i < count && v.place[i] != place; i++)
         ;
      if (i < count)
         continue;
      v.place[count] = (int32_t)place;
      v.value[count++] = value;
   }
   for (i = 0; i < count && v.place[i] != row; i++)
      ;
   v.place[i] = (int32_t)row;
   v.value[i] = 0.5;
   return i == count ? count + 1 : count;
}

static void *scratch(size_t bytes)
{
   void *memory = calloc(1, bytes);
   if (!memory)
      frame_fail("not enough memory");
   return memory;
}

struct sparse make_matrix(const struct problem *problem)
{
   const int64_t n = problem->n, most = problem->nonzer + 1;
   const double ratio = pow(RCOND, 1.0 / (double)n);
   struct vector all = {scratch((size_t)(n * most) * sizeof(int32_t)), scratch((size_t)(n * most) * sizeof(double))};
   /* Which vectors have an element in a row: `who` and, of each, its value there, from `where[row]` on. */
   int64_t *count = scratch((size_t)n * sizeof *count), *where = scratch((size_t)(n + 1) * sizeof *where);
   int32_t *who;
   double *value, *weight = scratch((size_t)n * sizeof *weight), *sum = scratch((size_t)n * sizeof *sum);
   int32_t *row_places = scratch((size_t)n * sizeof *row_places);
   char *mark = scratch((size_t)n);
   struct sparse m = {n, 0, 0, 0};
   double size = 1;
   int64_t i, k, at, row, total, elements = 0, room = 0;

   seed = 314159265;
   next_random();
   for (i = 0; i < n; i++) {
      struct vector v = {all.place + i * most, all.value + i * most};
      count[i] = random_vector(problem, i, v);
      weight[i] = size;
      size *= ratio;
      room += count[i] * count[i];
      for (k = 0; k < count[i]; k++)
         where[v.place[k] + 1]++;
   }
   for (i = 0; i < n; i++)
      where[i + 1] += where[i];
   total = where[n];
   who = scratch((size_t)total * sizeof *who);
   value = scratch((size_t)total * sizeof *value);
   for (i = n - 1; i >= 0; i--)
      for (k = 0; k < count[i]; k++) {
         const int32_t place = all.place[i * most + k];
         /* Filled from the back: where[row + 1] ends as where the row begins. */
         at = --where[place + 1];
         who[at] = (int32_t)i;
         value[at] = all.value[i * most + k];
      }
   memmove(where, where + 1, (size_t)n * sizeof *where);

   m.first = team_memory("rowstr", (size_t)(n + 1) * sizeof *m.first);
   m.a = team_memory("a", (size_t)room * sizeof *m.a);
   m.colidx = team_memory("colidx", (size_t)room * sizeof *m.colidx);
   for (row = 0; row < n; row++) {
      const int64_t end = row + 1 < n ? where[row + 1] : total;
      int64_t places = 0;
      for (at = where[row]; at < end; at++) {
         const int64_t v = who[at];
         const double scale = weight[v] * value[at];
         for (k = 0; k < count[v]; k++) {
            const int32_t place = all.place[v * most + k];
            if (!mark[place]) {
               mark[place] = 1;
               row_places[places++] = place;
            }
            sum[place] += all.value[v * most + k] * scale;
         }
      }
      sum[row] += RCOND - problem->shift;
      for (k = 0; k < places; k++) {
         const int32_t place = row_places[k];
         m.a[elements] = sum[place];
         m.colidx[elements++] = place;
         sum[place] = 0;
         mark[place] = 0;
      }
      m.first[row + 1] = elements;
   }
   free(all.place), free(all.value), free(count), free(where), free(who), free(value);
   free(weight), free(sum), free(row_places), free(mark);
   return m;
}
