// The C++ library's list and vector, of the same numbers in the same order. The list was sorted, so that its nodes lie
// in random order.
#include "timed.h"

#include <list>
#include <numeric>
#include <vector>

int main(int argc, char **argv)
{
   const bool vector = variant(argc, argv, "list", "vector") != 0;
   const size_t n = size_or(argc, argv, 1000000);
   std::list<uint64_t> list;
   uint64_t state = 19;
   for (size_t i = 0; i < n; i++)
      list.push_back(random_next(&state) >> 8);
   list.sort();
   const std::vector<uint64_t> values(list.begin(), list.end());
   work_begins();
   const uint64_t sum = vector ? std::accumulate(values.begin(), values.end(), uint64_t(0))
                               : std::accumulate(list.begin(), list.end(), uint64_t(0));
   work_ends();
   printf("%llu\n", static_cast<unsigned long long>(sum));
}
