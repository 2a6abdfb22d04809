// Lookups in sparsehash's sparse_hash_map, and in its dense_hash_map.
#include "timed.h"

#include <sparsehash/dense_hash_map>
#include <sparsehash/sparse_hash_map>

namespace {

template <typename Map> uint64_t lookups(Map &map, size_t n)
{
   uint32_t *order = shuffled(n, 67);
   for (size_t i = 0; i < n; i++)
      map[order[i] * 7ull] = order[i];
   uint64_t state = 71, sum = 0;
   work_begins();
   for (int i = 0; i < 1000000; i++)
      sum += map.find(random_next(&state) % n * 7)->second;
   work_ends();
   return sum;
}

} // namespace

int main(int argc, char **argv)
{
   const bool dense = variant(argc, argv, "sparse", "dense") != 0;
   const size_t n = size_or(argc, argv, 200000);
   google::dense_hash_map<uint64_t, uint64_t> array;
   array.set_empty_key(~0ull);
   google::sparse_hash_map<uint64_t, uint64_t> groups;
   printf("%llu\n", static_cast<unsigned long long>(dense ? lookups(array, n) : lookups(groups, n)));
}
