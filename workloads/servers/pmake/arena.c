/* Memory in blocks that live until the next formula. */
#include "calc.h"
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 1 << 14 };
static struct block { struct block *before; size_t used; char bytes[BLOCK]; } *newest;

void *arena_take(size_t bytes)
{
   bytes = (bytes + 15) & ~(size_t)15;
   if (bytes > BLOCK) {
      fprintf(stderr, "calc: a formula is too large\n");
      exit(1);
   }
   if (!newest || newest->used + bytes > BLOCK) {
      struct block *block = malloc(sizeof *block);
      if (!block) {
         fprintf(stderr, "calc: no memory\n");
         exit(1);
      }
      block->before = newest;
      block->used = 0;
      newest = block;
   }
   newest->used += bytes;
   return newest->bytes + newest->used - bytes;
}

void arena_clear(void)
{
   while (newest) {
      struct block *before = newest->before;
      free(newest);
      newest = before;
   }
}
