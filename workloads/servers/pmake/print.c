/* From a tree to characters, with no more brackets than it takes. */
#include "calc.h"
#include <stdio.h>

struct paper { char *to; size_t room, used; };

static void put(struct paper *paper, const char *text)
{
   for (; *text; text++, paper->used++)
      if (paper->used + 1 < paper->room)
         paper->to[paper->used] = *text;
}

static int strength(enum kind kind)
{
   return kind == SUM || kind == DIFFERENCE ? 1 : kind == PRODUCT || kind == QUOTIENT ? 2 : kind == POWER ? 3 : 4;
}

static void write_node(struct paper *paper, const struct node *node, int least)
{
   static const char *const names[] = {"", "x", " + ", " - ", "*", "/", "^", "sin", "cos", "exp"};
   const int own = strength(node->kind), brackets = own < least;
   char digits[32];
   if (brackets)
      put(paper, "(");
   switch (node->kind) {
   case NUMBER:
      snprintf(digits, sizeof digits, "%.6g", node->number);
      put(paper, digits);
      break;
   case VARIABLE:
      put(paper, names[VARIABLE]);
      break;
   case SINE: case COSINE: case EXPONENT:
      put(paper, names[node->kind]);
      put(paper, "(");
      write_node(paper, node->left, 0);
      put(paper, ")");
      break;
   default:
      write_node(paper, node->left, own + (node->kind == POWER));
      put(paper, names[node->kind]);
      write_node(paper, node->right, own + (node->kind == DIFFERENCE || node->kind == QUOTIENT));
   }
   if (brackets)
      put(paper, ")");
}

size_t print(const struct node *node, char *to, size_t room)
{
   struct paper paper = {to, room, 0};
   write_node(&paper, node, 0);
   if (room)
      to[paper.used < room ? paper.used : room - 1] = 0;
   return paper.used;
}
