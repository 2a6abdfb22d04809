/* The value of a formula, by its tree. */
#include "calc.h"
#include <math.h>

double evaluate(const struct node *node, double x)
{
   const double a = node->left ? evaluate(node->left, x) : 0, b = node->right ? evaluate(node->right, x) : 0;
   switch (node->kind) {
   case NUMBER: return node->number;
   case VARIABLE: return x;
   case SUM: return a + b;
   case DIFFERENCE: return a - b;
   case PRODUCT: return a * b;
   case QUOTIENT: return a / b;
   case POWER: return pow(a, b);
   case SINE: return sin(a);
   case COSINE: return cos(a);
   case EXPONENT: return exp(a);
   }
   return 0;
}
