/* The tree of a formula. */
#include "calc.h"

static const struct node *made(struct node what)
{
   struct node *node = arena_take(sizeof *node);
   *node = what;
   return node;
}

const struct node *number(double value) { return made((struct node){NUMBER, value, 0, 0}); }
const struct node *variable(void) { return made((struct node){VARIABLE, 0, 0, 0}); }

const struct node *join(enum kind kind, const struct node *left, const struct node *right)
{
   return made((struct node){kind, 0, left, right});
}
