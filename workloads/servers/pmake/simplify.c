/* Numbers that can be computed are, and what changes nothing goes. */
#include "calc.h"

static int is(const struct node *node, double value) { return node->kind == NUMBER && node->number == value; }

const struct node *simplify(const struct node *node)
{
   const struct node *left, *right;
   if (!node->left)
      return node;
   left = simplify(node->left);
   right = node->right ? simplify(node->right) : 0;
   if (left->kind == NUMBER && (!right || right->kind == NUMBER))
      return number(evaluate(join(node->kind, left, right), 0));
   switch (node->kind) {
   case SUM:
      if (is(left, 0)) return right;
      if (is(right, 0)) return left;
      break;
   case DIFFERENCE:
      if (is(right, 0)) return left;
      break;
   case PRODUCT:
      if (is(left, 0) || is(right, 0)) return number(0);
      if (is(left, 1)) return right;
      if (is(right, 1)) return left;
      if (right->kind == NUMBER) return join(PRODUCT, right, left);
      break;
   case QUOTIENT:
      if (is(left, 0)) return number(0);
      if (is(right, 1)) return left;
      break;
   case POWER:
      if (is(right, 0)) return number(1);
      if (is(right, 1)) return left;
      break;
   default:
      break;
   }
   return join(node->kind, left, right);
}
