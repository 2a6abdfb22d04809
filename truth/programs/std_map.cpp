// Lookups in the C++ library's map, and in Boost's flat_map.
#include "timed.h"

#include <boost/container/flat_map.hpp>
#include <map>

namespace {

template <typename Map> uint64_t lookups(const Map &map, size_t n)
{
   uint64_t state = 23, sum = 0;
   work_begins();
   for (int i = 0; i < 300000; i++)
      sum += map.find(random_next(&state) % n * 3)->second;
   work_ends();
   return sum;
}

} // namespace

int main(int argc, char **argv)
{
   const bool flat = variant(argc, argv, "map", "flat") != 0;
   const size_t n = size_or(argc, argv, 500000);
   std::map<uint64_t, uint64_t> map;
   uint32_t *order = shuffled(n, 29);
   for (size_t i = 0; i < n; i++)
      map.emplace(order[i] * 3ull, order[i]);
   const boost::container::flat_map<uint64_t, uint64_t> array(boost::container::ordered_unique_range, map.begin(), map.end());
   printf("%llu\n", static_cast<unsigned long long>(flat ? lookups(array, n) : lookups(map, n)));
}
