/* A calculator of formulas in x: reads one, takes its derivative, makes it shorter, evaluates it in two ways, and compares. It is
   here to be compiled: a dozen small files that share this header, as software under development has. */
#ifndef CALC_H
#define CALC_H

#include <stddef.h>

enum kind { NUMBER, VARIABLE, SUM, DIFFERENCE, PRODUCT, QUOTIENT, POWER, SINE, COSINE, EXPONENT };

struct node {
   enum kind kind;
   double number;
   const struct node *left, *right;
};

/* arena.c: memory that is given back all at once */
void *arena_take(size_t bytes);
void arena_clear(void);

/* nodes.c */
const struct node *number(double value);
const struct node *variable(void);
const struct node *join(enum kind kind, const struct node *left, const struct node *right);

/* tokens.c */
enum token { END, DIGITS, NAME, SIGN, WRONG };
struct scanner {
   const char *rest;
   enum token token;
   double value;
   char text[16];
};
void scan_begin(struct scanner *scanner, const char *text);
void scan_next(struct scanner *scanner);

/* parse.c: 0 where the text is no formula */
const struct node *parse(const char *text);

/* print.c: as much as fits, always with an end; what all of it takes */
size_t print(const struct node *node, char *to, size_t room);

/* simplify.c, derive.c, evaluate.c */
const struct node *simplify(const struct node *node);
const struct node *derive(const struct node *node);
double evaluate(const struct node *node, double x);

/* machine.c: the same value by a machine with a stack */
struct program {
   size_t length, deepest;
   struct step { enum kind kind; double number; } *steps;
};
struct program assemble(const struct node *node);
double run(const struct program *program, double x);

/* compare.c: 1 where two numbers agree but for rounding */
int same(double a, double b);

/* samples.c */
struct sample { const char *formula; const char *derivative; };
extern const struct sample samples[];
extern const size_t sample_count;

#endif
