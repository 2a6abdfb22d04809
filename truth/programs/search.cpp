// Binary searches: in a sorted array, and in the same keys in the order of a breadth-first walk of the tree (Eytzinger).
#include "timed.h"

#include <vector>

namespace {

void lay_out(std::vector<uint32_t> &tree, const std::vector<uint32_t> &keys, size_t node, size_t &next)
{
   if (node >= tree.size())
      return;
   lay_out(tree, keys, 2 * node, next);
   tree[node] = keys[next++];
   lay_out(tree, keys, 2 * node + 1, next);
}

} // namespace

int main(int argc, char **argv)
{
   const bool breadth = variant(argc, argv, "sorted", "breadth") != 0;
   const size_t levels = size_or(argc, argv, 22), n = (size_t(1) << levels) - 1;
   std::vector<uint32_t> keys(n), tree(n + 1);
   for (size_t i = 0; i < n; i++)
      keys[i] = static_cast<uint32_t>(2 * i + 1);
   size_t next = 0;
   lay_out(tree, keys, 1, next);
   uint64_t state = 17, sum = 0;
   work_begins();
   for (int i = 0; i < 400000; i++) {
      const uint32_t wanted = static_cast<uint32_t>(random_next(&state) % n * 2);
      // Both walk all levels without a jump that depends on the keys; the place found is the number of smaller keys.
      if (breadth) {
         size_t node = 1;
         for (size_t level = 0; level < levels; level++)
            node = 2 * node + (tree[node] < wanted);
         sum += node - (size_t(1) << levels);
      } else {
         const uint32_t *base = keys.data();
         size_t found = 0;
         for (size_t half = (n + 1) / 2; half > 0; half /= 2)
            found += base[found + half - 1] < wanted ? half : 0;
         sum += found;
      }
   }
   work_ends();
   printf("%llu\n", static_cast<unsigned long long>(sum));
}
