/* The value of a formula, by a machine with a stack: its tree in the order in which it is computed. */
#include "calc.h"
#include <math.h>

static size_t steps_of(const struct node *node) { return node ? 1 + steps_of(node->left) + steps_of(node->right) : 0; }

static void append(struct program *program, const struct node *node, size_t depth)
{
   if (node->left)
      append(program, node->left, depth);
   if (node->right)
      append(program, node->right, depth + 1);
   if (depth + 1 > program->deepest)
      program->deepest = depth + 1;
   program->steps[program->length++] = (struct step){node->kind, node->number};
}

struct program assemble(const struct node *node)
{
   struct program program = {0, 0, arena_take(steps_of(node) * sizeof(struct step))};
   append(&program, node, 0);
   return program;
}

double run(const struct program *program, double x)
{
   double *top = (double *)arena_take((program->deepest + 1) * sizeof(double));
   const struct step *step = program->steps, *end = step + program->length;
   *top = 0;
   for (; step < end; step++)
      switch (step->kind) {
      case NUMBER: *++top = step->number; break;
      case VARIABLE: *++top = x; break;
      case SUM: top--; *top += top[1]; break;
      case DIFFERENCE: top--; *top -= top[1]; break;
      case PRODUCT: top--; *top *= top[1]; break;
      case QUOTIENT: top--; *top /= top[1]; break;
      case POWER: top--; *top = pow(*top, top[1]); break;
      case SINE: *top = sin(*top); break;
      case COSINE: *top = cos(*top); break;
      case EXPONENT: *top = exp(*top); break;
      }
   return *top;
}
