/* The steady state operator: differences of fluxes, of stresses, and of dissipation, direction by direction. In each
   direction the fluxes of the whole cube are taken first, and then used line by line: they pass through memory as the field
   variables do. */
#include "lu.h"

#include "team.h"

#include <math.h>

/* Diffusion in each direction, of all five quantities, and the fourth-order dissipation. */
static const double SECOND[3] = {0.75, 0.75, 1.0};
#define FOURTH (1.0 / 4.0)

static void inviscid(const double *v, double *f, int way)
{
   const double inverse = 1 / v[0], speed = v[1 + way] * inverse;
   const double q = 0.5 * (v[1] * v[1] + v[2] * v[2] + v[3] * v[3]) * inverse;
   f[0] = v[1 + way];
   f[1] = v[1] * speed;
   f[2] = v[2] * speed;
   f[3] = v[3] * speed;
   f[1 + way] += C2 * (v[4] - q);
   f[4] = (C1 * v[4] - C2 * q) * speed;
}

/* Of a point and the one before it. */
static void viscous(const double *v, const double *before, double *f, int way)
{
   const double here = 1 / v[0], there = 1 / before[0], t3 = grid.t3;
   double squares = 0, along = 0;
   int m;
   for (m = 0; m < 3; m++) {
      const double now = v[1 + m] * here, then = before[1 + m] * there;
      f[1 + m] = (m == way ? 4.0 / 3.0 : 1.0) * t3 * (now - then);
      squares += now * now - then * then;
      if (m == way)
         along = now * now - then * then;
   }
   f[4] = 0.5 * (1 - C1 * C5) * t3 * squares + t3 / 6 * along + C1 * C5 * t3 * (v[4] * here - before[4] * there);
}

/* One point of one direction: `s` steps to its next neighbour. */
static void difference(double *to, const double *v, const double *f, int64_t s, int way)
{
   int m;
   to[0] += SECOND[way] * grid.t1 * (v[-s] - 2 * v[0] + v[s]);
   for (m = 1; m < 5; m++)
      to[m] += grid.t3 * C3 * C4 * (f[s + m] - f[m]) + SECOND[way] * grid.t1 * (v[m - s] - 2 * v[m] + v[m + s]);
}

/* The same, at place x of n. */
static void dissipate(double *to, const double *v, int64_t s, int x)
{
   const int last = grid.n - 2;
   int m;
   for (m = 0; m < 5; m++) {
      double sum;
      if (x == 1)
         sum = 5 * v[m] - 4 * v[m + s] + v[m + 2 * s];
      else if (x == 2)
         sum = -4 * v[m - s] + 6 * v[m] - 4 * v[m + s] + v[m + 2 * s];
      else if (x == last - 1)
         sum = v[m - 2 * s] - 4 * v[m - s] + 6 * v[m] - 4 * v[m + s];
      else if (x == last)
         sum = v[m - 2 * s] - 4 * v[m - s] + 5 * v[m];
      else
         sum = v[m - 2 * s] - 4 * v[m - s] + 6 * v[m] - 4 * v[m + s] + v[m + 2 * s];
      to[m] -= FOURTH * sum;
   }
}

/* The fluxes of a direction on all lines that are used: the direction's first and last points, and of the others the
   interior. In the order of memory. */
static void take_fluxes(int thread, const double *field, int way)
{
   const int64_t n = grid.n;
   const struct range mine = interior(thread);
   /* The first thread has the first plane, too, and the last the last one. */
   const int64_t begin = way == 0 && mine.begin == 1 ? 0 : mine.begin;
   const int64_t end = way == 0 && mine.end == n - 1 ? n : mine.end;
   int64_t i, j, k;
   for (i = begin; i < end; i++)
      for (j = way != 1; j < n - (way != 1); j++)
         for (k = way != 2; k < n - (way != 2); k++) {
            const int64_t place = i * grid.step[0] + j * grid.step[1] + k * grid.step[2];
            inviscid(field + place, flux + place, way);
         }
}

/* Differences along one line that begins at `to` and so on: `s` steps from point to point. */
static void use_fluxes(double *to, const double *v, double *f, int64_t s, int way)
{
   const int n = grid.n;
   int x, m;
   for (x = 1; x < n - 1; x++)
      for (m = 0; m < 5; m++)
         to[x * s + m] -= grid.t2 * (f[(x + 1) * s + m] - f[(x - 1) * s + m]);
   for (x = 1; x < n; x++)
      viscous(v + x * s, v + (x - 1) * s, f + x * s, way);
   for (x = 1; x < n - 1; x++)
      difference(to + x * s, v + x * s, f + x * s, s, way);
   for (x = 1; x < n - 1; x++)
      dissipate(to + x * s, v + x * s, s, x);
}

void apply_operator(int thread, double *to, double *field)
{
   /* The lines of each direction are gone through in this order, the first divided among the threads: neighbours in memory,
      in either layout, come one after the other. */
   const int OUTER[3] = {grid.planes ? 2 : 1, 0, 0}, INNER[3] = {grid.planes ? 1 : 2, 2, 1};
   const struct range mine = interior(thread);
   int way, outer, inner;
   for (way = 0; way < 3; way++) {
      take_fluxes(thread, field, way);
#pragma omp barrier
      for (outer = mine.begin; outer < mine.end; outer++)
         for (inner = 1; inner < grid.n - 1; inner++) {
            const int64_t line = outer * grid.step[OUTER[way]] + inner * grid.step[INNER[way]];
            use_fluxes(to + line, field + line, flux + line, grid.step[way], way);
         }
#pragma omp barrier
   }
}
