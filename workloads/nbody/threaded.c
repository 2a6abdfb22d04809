/* "Threaded": a thread for each body, whose hints are its place in the scheduling cube. A body's new
   position depends on the tree and on itself only, so that any order gives the same answer. */
#include "nbody.h"
#include "order.h"

#include <domicile/th.h>

static void move(void *system, void *body) { tree_move(system, body); }

void move_all(struct system *system, const struct options *options, struct outcome *outcome)
{
   int64_t i;
   order_begin(options);
   for (i = 0; i < system->count; i++) {
      struct body *body = &system->bodies[i];
      const void *hints[3];
      place(system, options, body, hints);
      th_fork(move, system, body, hints[0], hints[1], hints[2]);
   }
   th_run(0);
   order_end(outcome);
}
