// A walk through the C++ library's set, and through Abseil's btree_set, both filled in random order.
#include "timed.h"

#include <absl/container/btree_set.h>
#include <set>

namespace {

template <typename Set> uint64_t walk(size_t n)
{
   Set set;
   uint32_t *order = shuffled(n, 41);
   for (size_t i = 0; i < n; i++)
      set.insert(order[i]);
   uint64_t sum = 0, place = 0;
   work_begins();
   for (const uint64_t key : set)
      sum += key * ++place;
   work_ends();
   return sum;
}

} // namespace

int main(int argc, char **argv)
{
   const bool btree = variant(argc, argv, "tree", "btree") != 0;
   const size_t n = size_or(argc, argv, 1000000);
   const uint64_t sum = btree ? walk<absl::btree_set<uint64_t>>(n) : walk<std::set<uint64_t>>(n);
   printf("%llu\n", static_cast<unsigned long long>(sum));
}
