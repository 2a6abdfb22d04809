/* Each sample's derivative, found and by hand, in three ways at several places. */
#include "calc.h"
#include <stdio.h>

static int check(const struct sample *sample)
{
   char found[256];
   const struct node *formula = parse(sample->formula), *expected = parse(sample->derivative), *derivative, *again;
   struct program program;
   int wrong = 0, i;
   if (!formula || !expected) {
      printf("%s: not understood\n", sample->formula);
      return 1;
   }
   derivative = simplify(derive(formula));
   print(derivative, found, sizeof found);
   again = parse(found);
   program = assemble(derivative);
   for (i = 1; i <= 8; i++) {
      const double x = i * .25, is = evaluate(derivative, x), slope = (evaluate(formula, x + 1e-6) - evaluate(formula, x - 1e-6)) / 2e-6;
      if (!same(is, evaluate(expected, x)) || !same(is, run(&program, x)))
         wrong++;
      /* A printed -1 is no number to the parser. */
      if (again && !same(is, evaluate(again, x)))
         wrong++;
      if (slope - is > 1e-3 * (1 + is * is) || is - slope > 1e-3 * (1 + is * is))
         wrong++;
   }
   printf("%s -> %s\n", sample->formula, found);
   arena_clear();
   return wrong;
}

int main(void)
{
   int wrong = 0;
   size_t i;
   for (i = 0; i < sample_count; i++)
      wrong += check(&samples[i]);
   printf("calc: %zu formulas, %d wrong\n", sample_count, wrong);
   return wrong != 0;
}
