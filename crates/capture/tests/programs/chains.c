/* Loads whose addresses come from other loads, and loads whose addresses do not. Each function is one of them. */
#include <stdio.h>
#include <stdlib.h>

enum { NODES = 2000, ROUNDS = 20 };

struct node {
   long value;
   struct node *next, *left, *right;
};

static struct node nodes[NODES];
static int indices[NODES];
static long array[NODES];
static struct node links[4 * NODES];
static const struct node *heads[NODES];

__attribute__((noinline)) static long chase(const struct node *p)
{
   long sum = 0;
   for (; p; p = p->next)
      sum += p->value;
   return sum;
}

__attribute__((noinline)) static long search(const struct node *p, long wanted)
{
   while (p && p->value != wanted)
      p = wanted < p->value ? p->left : p->right;
   return p ? p->value : -1;
}

/* By itself: what it saves on the stack comes back from there. */
__attribute__((noinline)) static long depth(const struct node *p)
{
   long left, right;
   if (!p)
      return 0;
   left = depth(p->left);
   right = depth(p->right);
   return 1 + (left > right ? left : right);
}

__attribute__((noinline)) static long sum(const long *a, long n)
{
   long s = 0, i;
   for (i = 0; i < n; i++)
      s += a[i];
   return s;
}

__attribute__((noinline)) static long gather(const long *a, const int *index, long n)
{
   long s = 0, i;
   for (i = 0; i < n; i++)
      s += a[index[i]];
   return s;
}

/* Short lists: the first node of each is found by its head. */
__attribute__((noinline)) static long lists(const struct node *const *heads, long n)
{
   long s = 0, i;
   for (i = 0; i < n; i++) {
      const struct node *p;
      for (p = heads[i]; p; p = p->next)
         s += p->value;
   }
   return s;
}

static struct node *tree(long low, long high)
{
   long middle = (low + high) / 2;
   if (low >= high)
      return NULL;
   nodes[middle].left = tree(low, middle);
   nodes[middle].right = tree(middle + 1, high);
   return &nodes[middle];
}

int main(void)
{
   struct node *root;
   long i, round, total = 0;
   for (i = 0; i < NODES; i++) {
      long other = i * 769 % NODES;
      nodes[i].value = i;
      nodes[other].next = i + 1 < NODES ? &nodes[(i + 1) * 769 % NODES] : NULL;
      indices[i] = other;
      array[i] = i;
   }
   for (i = 0; i < 4 * NODES; i++) {
      links[i].value = i;
      links[i].next = i + NODES < 4 * NODES ? &links[i + NODES] : NULL;
   }
   for (i = 0; i < NODES; i++)
      heads[i] = &links[i * 769 % NODES];
   root = tree(0, NODES);
   for (round = 0; round < ROUNDS; round++) {
      total += chase(nodes) + sum(array, NODES) + gather(array, indices, NODES) + depth(root) + lists(heads, NODES);
      for (i = 0; i < NODES; i++)
         total += search(root, i * 769 % NODES);
   }
   printf("%ld\n", total);
   return 0;
}
