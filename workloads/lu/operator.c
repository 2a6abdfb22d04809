/* The steady state operator: differences of fluxes, of stresses, and of dissipation, direction by direction. In each
   direction the fluxes of the whole cube are taken first, and then used: they pass through memory as the field variables
   do. */
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

/* One point of one direction: `s` steps to its next neighbour, place x of n along it. */
static void difference(double *to, const double *v, const double *f, int64_t s, int way)
{
   int m;
   to[0] += SECOND[way] * grid.t1 * (v[-s] - 2 * v[0] + v[s]);
   for (m = 1; m < 5; m++)
      to[m] += grid.t3 * C3 * C4 * (f[s + m] - f[m]) + SECOND[way] * grid.t1 * (v[m - s] - 2 * v[m] + v[m + s]);
}

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

/* The points of one slab: a plane z = s for x and y, a plane y = s for z; x moves fastest. `from` and `until` are along the
   direction. */
struct slab {
   int way, number, from, until;
};

#define EACH_POINT(slab, body)                                                                   \
   do {                                                                                          \
      const int along_x = (slab).way == 0;                                                       \
      int i, y;                                                                                  \
      for (y = along_x ? 1 : (slab).from; y < (along_x ? grid.n - 1 : (slab).until); y++)        \
         for (i = along_x ? (slab).from : 1; i < (along_x ? (slab).until : grid.n - 1); i++) {   \
            const int x = along_x ? i : y;                                                       \
            const int64_t place = (slab).way == 2 ? y * grid.step[2] + (slab).number * grid.step[1] + i * grid.step[0] \
                                                  : (slab).number * grid.step[2] + y * grid.step[1] + i * grid.step[0]; \
            (void)x;                                                                             \
            body;                                                                                \
         }                                                                                       \
   } while (0)

static void take_fluxes(const double *field, int way, int number)
{
   const struct slab all = {way, number, 0, grid.n};
   EACH_POINT(all, inviscid(field + place, flux + place, way));
}

static void use_fluxes(double *to, const double *field, int way, int number)
{
   const int64_t s = grid.step[way];
   const struct slab inside = {way, number, 1, grid.n - 1}, behind = {way, number, 1, grid.n};
   int m;
   EACH_POINT(inside, for (m = 0; m < 5; m++)
              to[place + m] -= grid.t2 * (flux[place + s + m] - flux[place - s + m]));
   EACH_POINT(behind, viscous(field + place, field + place - s, flux + place, way));
   EACH_POINT(inside, difference(to + place, field + place, flux + place, s, way));
   EACH_POINT(inside, dissipate(to + place, field + place, s, x));
}

void apply_operator(int thread, double *to, double *field)
{
   const struct range slabs = interior(thread);
   int way, number;
   for (way = 0; way < 3; way++) {
      for (number = slabs.begin; number < slabs.end; number++)
         take_fluxes(field, way, number);
      /* A slab uses its own fluxes only. */
      for (number = slabs.begin; number < slabs.end; number++)
         use_fluxes(to, field, way, number);
      /* The next direction's slabs lie across. */
#pragma omp barrier
   }
}
