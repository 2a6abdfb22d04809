/* Every body pulls every other: no approximation, n * n steps. What the tree is checked against. */
#include "nbody.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void move_all(struct system *system, const struct options *options, struct outcome *outcome)
{
   size_t bytes = (size_t)system->count * sizeof(struct body);
   struct body *old = malloc(bytes);
   int64_t i, j;
   int d;
   if (!old)
      frame_fail("not enough memory for a second vector of bodies");
   memcpy(old, system->bodies, bytes);
   for (i = 0; i < system->count; i++) {
      struct body *body = &system->bodies[i];
      double pull[3] = {0, 0, 0};
      for (j = 0; j < system->count; j++) {
         double apart[3], squared = SOFTENING * SOFTENING;
         for (d = 0; d < 3; d++) {
            apart[d] = old[j].position[d] - old[i].position[d];
            squared += apart[d] * apart[d];
         }
         for (d = 0; d < 3; d++)
            pull[d] += old[j].mass * apart[d] / (squared * sqrt(squared));
      }
      for (d = 0; d < 3; d++) {
         body->velocity[d] += TIME_STEP * pull[d];
         body->position[d] += TIME_STEP * body->velocity[d];
      }
   }
   free(old);
   (void)options;
   (void)outcome;
}
