/* The derivative by x. An exponent must be a number. */
#include "calc.h"
#include <stdio.h>
#include <stdlib.h>

static const struct node *times(const struct node *a, const struct node *b) { return join(PRODUCT, a, b); }

const struct node *derive(const struct node *node)
{
   const struct node *a = node->left, *b = node->right;
   switch (node->kind) {
   case NUMBER: return number(0);
   case VARIABLE: return number(1);
   case SUM: case DIFFERENCE: return join(node->kind, derive(a), derive(b));
   case PRODUCT: return join(SUM, times(derive(a), b), times(a, derive(b)));
   case QUOTIENT:
      return join(QUOTIENT, join(DIFFERENCE, times(derive(a), b), times(a, derive(b))), join(POWER, b, number(2)));
   case POWER:
      if (b->kind != NUMBER)
         break;
      return times(times(b, join(POWER, a, number(b->number - 1))), derive(a));
   case SINE: return times(join(COSINE, a, 0), derive(a));
   case COSINE: return times(times(number(-1), join(SINE, a, 0)), derive(a));
   case EXPONENT: return times(node, derive(a));
   }
   fprintf(stderr, "calc: only powers by a number have a derivative here\n");
   exit(1);
}
