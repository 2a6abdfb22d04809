/* Merge sort of one block, from the bottom up. */
#include "mergesort.h"

/* Runs to begin with are sorted where they lie. */
static void insert(struct element *run, int64_t count)
{
   int64_t i, j;
   for (i = 1; i < count; i++) {
      const struct element one = run[i];
      for (j = i; j > 0 && run[j - 1].key > one.key; j--)
         run[j] = run[j - 1];
      run[j] = one;
   }
}

static void merge(struct element *to, const struct element *a, const struct element *a_end,
                  const struct element *b, const struct element *b_end)
{
   while (a < a_end && b < b_end)
      *to++ = b->key < a->key ? *b++ : *a++;
   while (a < a_end)
      *to++ = *a++;
   while (b < b_end)
      *to++ = *b++;
}

void block_sort(struct element *block, struct element *buffer, int64_t count)
{
   struct element *from = block, *to = buffer, *swap;
   int64_t run = 4, width, at;
   int passes = 0;
   for (width = run; width < count; width *= 2)
      passes++;
   /* After an even number of passes the result is in the block. */
   if (passes % 2)
      run *= 2;
   for (at = 0; at < count; at += run)
      insert(block + at, count - at < run ? count - at : run);
   for (width = run; width < count; width *= 2) {
      for (at = 0; at < count; at += 2 * width) {
         const int64_t middle = count - at < width ? count : at + width;
         const int64_t end = count - at < 2 * width ? count : at + 2 * width;
         merge(to + at, from + at, from + middle, from + middle, from + end);
      }
      swap = from;
      from = to;
      to = swap;
   }
}
