/* Merging many runs in one pass: a full binary tree whose leaves are the runs' next keys and whose inner nodes are the
   smaller of the two below. */
#include "mergesort.h"

/* No key is as great. */
#define ENDED INT32_MAX

static int64_t leaves(int64_t runs)
{
   int64_t count = 1;
   while (count < runs)
      count *= 2;
   return count;
}

int64_t tree_nodes(int64_t runs) { return 2 * leaves(runs); }

/* Equal keys: the earlier run's first, so that their order is kept. */
static struct node smaller(struct node left, struct node right) { return right.key < left.key ? right : left; }

void runs_merge(struct element *to, const struct element *from, int64_t count, int64_t run, struct node *tree)
{
   const int64_t runs = (count + run - 1) / run, width = leaves(runs);
   struct node *leaf = tree + width;
   int64_t i, at;

   for (i = 0; i < width; i++) {
      leaf[i].at = i * run;
      leaf[i].run = (int32_t)i;
      leaf[i].key = i < runs ? from[i * run].key : ENDED;
   }
   for (at = width - 1; at >= 1; at--)
      tree[at] = smaller(tree[2 * at], tree[2 * at + 1]);
   for (i = 0; i < count; i++) {
      const int64_t first = tree[1].run, next = leaf[first].at + 1;
      to[i] = from[next - 1];
      leaf[first].at = next;
      leaf[first].key = next % run && next < count ? from[next].key : ENDED;
      for (at = (width + first) / 2; at >= 1; at /= 2)
         tree[at] = smaller(tree[2 * at], tree[2 * at + 1]);
   }
}
