// A list of the C++ library that is walked: its nodes from the allocator, among the other data of the program, and from
// a pool of Boost.
#include "timed.h"

#include <boost/pool/pool_alloc.hpp>
#include <list>
#include <vector>

namespace {

template <typename List> uint64_t walk(size_t n)
{
   List list;
   std::vector<std::vector<char>> others;
   uint64_t state = 109, sum = 0;
   for (size_t i = 0; i < n; i++) {
      list.push_back(i);
      others.emplace_back(random_next(&state) % 200 + 1);
   }
   work_begins();
   for (int k = 0; k < 20; k++)
      for (const uint64_t value : list)
         sum += value;
   work_ends();
   return sum + others.size();
}

} // namespace

int main(int argc, char **argv)
{
   const bool pool = variant(argc, argv, "malloc", "pool") != 0;
   const size_t n = size_or(argc, argv, 200000);
   using Pool = boost::fast_pool_allocator<uint64_t>;
   const uint64_t sum = pool ? walk<std::list<uint64_t, Pool>>(n) : walk<std::list<uint64_t>>(n);
   printf("%llu\n", static_cast<unsigned long long>(sum));
}
