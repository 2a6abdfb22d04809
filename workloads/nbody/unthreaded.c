/* "Unthreaded": a loop over the vector of bodies. */
#include "nbody.h"

void move_all(struct system *system, const struct options *options, struct outcome *outcome)
{
   int64_t i;
   for (i = 0; i < system->count; i++) {
      struct body *body = &system->bodies[i];
      if (options->mark) {
         const void *hints[3];
         place(system, options, body, hints);
         frame_item_begin(hints[0], hints[1], hints[2]);
      }
      tree_move(system, body);
      if (options->mark)
         frame_item_end();
   }
   (void)outcome;
}
