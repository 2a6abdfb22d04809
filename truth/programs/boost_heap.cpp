// Boost's heaps: a queue of events as a Fibonacci heap of nodes, and as a heap in an array.
#include "timed.h"

#include <boost/heap/d_ary_heap.hpp>
#include <boost/heap/fibonacci_heap.hpp>

namespace {

template <typename Heap> uint64_t events(size_t n)
{
   Heap heap;
   uint64_t state = 89, sum = 0;
   for (size_t i = 0; i < n; i++)
      heap.push(random_next(&state) >> 20);
   heap.pop();
   work_begins();
   for (int i = 0; i < 100000; i++) {
      const uint64_t now = heap.top();
      heap.pop();
      sum += now;
      heap.push(now - (random_next(&state) >> 24));
   }
   work_ends();
   return sum;
}

} // namespace

int main(int argc, char **argv)
{
   const bool array = variant(argc, argv, "nodes", "array") != 0;
   const size_t n = size_or(argc, argv, 200000);
   using Nodes = boost::heap::fibonacci_heap<uint64_t>;
   using Array = boost::heap::d_ary_heap<uint64_t, boost::heap::arity<4>>;
   printf("%llu\n", static_cast<unsigned long long>(array ? events<Array>(n) : events<Nodes>(n)));
}
