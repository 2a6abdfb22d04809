/* What all versions share: the bodies at the start, the time steps, the checksum. */
#include "nbody.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

/* SplitMix64, as numbers in [0, 1). */
static double uniform(void)
{
   static uint64_t state = 1996;
   uint64_t z = state += 0x9e3779b97f4a7c15u;
   z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
   z = (z ^ z >> 27) * 0x94d049bb133111ebu;
   return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static void direction(double length, double vector[3])
{
   double z = 2 * uniform() - 1, angle = 2 * M_PI * uniform(), across = sqrt(1 - z * z);
   vector[0] = length * across * cos(angle);
   vector[1] = length * across * sin(angle);
   vector[2] = length * z;
}

/* The first `count` bodies, as a star cluster after Plummer's model (Aarseth, Henon and Wielen 1974) without its outermost
   ones. They come in no order of place. */
static void plummer(struct system *system, int64_t count)
{
   const double scale = 9 * M_PI / 16, outermost = 9;
   int64_t i;
   for (i = 0; i < count; i++) {
      struct body *body = &system->bodies[i];
      double inside, radius, part, chance;
      do {
         inside = 0.999 * uniform();
         radius = 1 / sqrt(pow(inside, -2.0 / 3) - 1);
      } while (inside == 0 || radius > outermost);
      do { /* the part of the escape velocity, by rejection */
         part = uniform();
         chance = 0.1 * uniform();
      } while (chance > part * part * pow(1 - part * part, 3.5));
      direction(scale * radius, body->position);
      direction(part * sqrt(2) * pow(1 + radius * radius, -0.25) / sqrt(scale), body->velocity);
      body->mass = 1.0 / (double)system->count;
   }
}

/* The start of the SPLASH program (Singh, Hennessy and Gupta 1993, which the paper cites beside Barnes and Hut): such a
   cluster, and the same once more beside it. */
static void two_clusters(struct system *system)
{
   const double apart = 4;
   const int64_t half = (system->count + 1) / 2;
   int64_t i;
   int d;
   plummer(system, half);
   for (i = half; i < system->count; i++) {
      system->bodies[i] = system->bodies[i - half];
      for (d = 0; d < 3; d++)
         system->bodies[i].position[d] += apart;
   }
}

/* Evenly in a cube, at rest. */
static void even(struct system *system)
{
   int64_t i;
   int d;
   for (i = 0; i < system->count; i++) {
      struct body *body = &system->bodies[i];
      for (d = 0; d < 3; d++)
         body->position[d] = uniform();
      body->mass = 1.0 / (double)system->count;
   }
}

static void place_bodies(struct system *system, int32_t bodies)
{
   switch (bodies) {
   case PLUMMER: plummer(system, system->count); break;
   case UNIFORM: even(system); break;
   default: two_clusters(system);
   }
}

/* The bodies' cube is scaled to the scheduling cube, whose side is an eighth of the bytes of bodies and
   tree unless the command line says otherwise. (With the paper's 64,000 bodies and 2 MB of cache
   that is about four blocks of a third of the cache.) */
void place(const struct system *system, const struct options *options, const struct body *body,
           const void *hints[3])
{
   double plane = options->plane ? (double)options->plane
                                 : (double)(system->count * (int64_t)sizeof(struct body) +
                                            system->nodes * (int64_t)sizeof(struct node)) / 8;
   int d;
   for (d = 0; d < 3; d++) {
      double part = system->side > 0 ? (body->position[d] - system->low[d]) / system->side : 0;
      hints[d] = (const void *)((uintptr_t)(part * (plane - 1)) + 1);
   }
}

static double now(void)
{
   struct timespec time;
   clock_gettime(CLOCK_MONOTONIC, &time);
   return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

void workload(const struct options *options, struct outcome *outcome)
{
   struct system system = {0};
   double energy = 0, tree_seconds = 0;
   int64_t step, i;
   int d;
   system.count = options->n;
   system.theta = options->theta;
   system.bodies = calloc((size_t)system.count, sizeof *system.bodies);
   if (!system.bodies)
      frame_fail("not enough memory for so many bodies");
   place_bodies(&system, options->bodies);

   for (step = 0; step < options->iterations; step++) {
      frame_begin();
      double begun = now();
      tree_build(&system);
      tree_seconds += now() - begun;
      move_all(&system, options, outcome);
      frame_end();
   }

   for (i = 0; i < system.count; i++)
      for (d = 0; d < 3; d++) {
         const struct body *body = &system.bodies[i];
         energy += 0.5 * body->mass * body->velocity[d] * body->velocity[d];
         outcome->checksum += body->position[d] * (double)((i + 7 * d) % 101 + 1);
      }
   frame_report("kinetic_energy", energy);
   /* The part that one worker does, however many there are. */
   frame_report("tree_seconds", tree_seconds);
   frame_report("tree_nodes", (double)system.nodes);
}
