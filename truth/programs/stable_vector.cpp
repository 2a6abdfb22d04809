// Boost's stable_vector, whose elements are nodes, and its vector: random elements.
#include "timed.h"

#include <boost/container/stable_vector.hpp>
#include <boost/container/vector.hpp>

namespace {

template <typename Vector> uint64_t reads(size_t n)
{
   Vector vector;
   for (size_t i = 0; i < n; i++)
      vector.push_back(i * 3);
   uint64_t state = 97, sum = 0;
   work_begins();
   for (int i = 0; i < 2000000; i++)
      sum += vector[random_next(&state) % n];
   work_ends();
   return sum;
}

} // namespace

int main(int argc, char **argv)
{
   const bool plain = variant(argc, argv, "stable", "plain") != 0;
   const size_t n = size_or(argc, argv, 500000);
   using Stable = boost::container::stable_vector<uint64_t>;
   using Plain = boost::container::vector<uint64_t>;
   printf("%llu\n", static_cast<unsigned long long>(plain ? reads<Plain>(n) : reads<Stable>(n)));
}
