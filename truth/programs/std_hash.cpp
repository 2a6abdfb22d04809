// Lookups in the C++ library's unordered_map, and in Abseil's flat_hash_map.
#include "timed.h"

#include <absl/container/flat_hash_map.h>
#include <unordered_map>

namespace {

template <typename Map> uint64_t lookups(size_t n)
{
   Map map;
   map.reserve(n);
   uint32_t *order = shuffled(n, 31);
   for (size_t i = 0; i < n; i++)
      map.emplace(order[i] * 7ull, order[i]);
   uint64_t state = 37, sum = 0;
   work_begins();
   for (int i = 0; i < 1500000; i++)
      sum += map.find(random_next(&state) % n * 7)->second;
   work_ends();
   return sum;
}

} // namespace

int main(int argc, char **argv)
{
   const bool flat = variant(argc, argv, "nodes", "flat") != 0;
   const size_t n = size_or(argc, argv, 1000000);
   using Nodes = std::unordered_map<uint64_t, uint64_t>;
   using Flat = absl::flat_hash_map<uint64_t, uint64_t>;
   printf("%llu\n", static_cast<unsigned long long>(flat ? lookups<Flat>(n) : lookups<Nodes>(n)));
}
