/* From tokens to a tree: sums of products of powers. */
#include "calc.h"
#include <string.h>

static const struct node *sum(struct scanner *scanner);

static int sign(const struct scanner *scanner, char which)
{
   return scanner->token == SIGN && scanner->text[0] == which;
}

static const struct node *in_brackets(struct scanner *scanner)
{
   const struct node *inner;
   if (!sign(scanner, '('))
      return 0;
   scan_next(scanner);
   inner = sum(scanner);
   if (!inner || !sign(scanner, ')'))
      return 0;
   scan_next(scanner);
   return inner;
}

static const struct node *atom(struct scanner *scanner)
{
   static const struct { const char *name; enum kind kind; } functions[] = {{"sin", SINE}, {"cos", COSINE}, {"exp", EXPONENT}};
   size_t i;
   if (scanner->token == DIGITS) {
      const struct node *node = number(scanner->value);
      scan_next(scanner);
      return node;
   }
   if (scanner->token != NAME)
      return in_brackets(scanner);
   if (!strcmp(scanner->text, "x")) {
      scan_next(scanner);
      return variable();
   }
   for (i = 0; i < sizeof functions / sizeof *functions; i++)
      if (!strcmp(scanner->text, functions[i].name)) {
         const struct node *inner;
         scan_next(scanner);
         inner = in_brackets(scanner);
         return inner ? join(functions[i].kind, inner, 0) : 0;
      }
   return 0;
}

static const struct node *power(struct scanner *scanner)
{
   const struct node *base = atom(scanner), *exponent;
   if (!base || !sign(scanner, '^'))
      return base;
   scan_next(scanner);
   exponent = power(scanner);
   return exponent ? join(POWER, base, exponent) : 0;
}

static const struct node *chain(struct scanner *scanner, const struct node *(*part)(struct scanner *), const char *signs,
                                const enum kind *kinds)
{
   const struct node *left = part(scanner), *right;
   while (left && (sign(scanner, signs[0]) || sign(scanner, signs[1]))) {
      const enum kind kind = kinds[!sign(scanner, signs[0])];
      scan_next(scanner);
      right = part(scanner);
      left = right ? join(kind, left, right) : 0;
   }
   return left;
}

static const struct node *product(struct scanner *scanner)
{
   static const enum kind kinds[] = {PRODUCT, QUOTIENT};
   return chain(scanner, power, "*/", kinds);
}

static const struct node *sum(struct scanner *scanner)
{
   static const enum kind kinds[] = {SUM, DIFFERENCE};
   return chain(scanner, product, "+-", kinds);
}

const struct node *parse(const char *text)
{
   struct scanner scanner;
   const struct node *node;
   scan_begin(&scanner, text);
   node = sum(&scanner);
   return scanner.token == END ? node : 0;
}
