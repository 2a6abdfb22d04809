// Boost's breadth-first search: of a graph as lists of edges, and as compressed sparse rows.
#include "timed.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <utility>
#include <vector>

namespace {

struct Counted : boost::default_bfs_visitor {
   uint64_t *sum;
   template <typename Edge, typename Graph> void examine_edge(Edge edge, const Graph &graph) const
   {
      *sum += target(edge, graph);
   }
};

template <typename Graph> uint64_t search(const Graph &graph, size_t n)
{
   std::vector<boost::default_color_type> colors(n);
   uint64_t sum = 0;
   Counted counted;
   counted.sum = &sum;
   auto index = get(boost::vertex_index, graph);
   work_begins();
   breadth_first_search(graph, vertex(0, graph),
                        boost::visitor(counted).color_map(make_iterator_property_map(colors.begin(), index)));
   work_ends();
   return sum;
}

} // namespace

int main(int argc, char **argv)
{
   const bool rows = variant(argc, argv, "lists", "rows") != 0;
   const size_t n = size_or(argc, argv, 200000), edges = 6 * n;
   std::vector<std::pair<size_t, size_t>> all;
   uint64_t state = 47;
   for (size_t i = 0; i < n; i++)
      all.emplace_back(i, (i + 1) % n);
   for (size_t i = n; i < edges; i++) {
      const size_t from = random_next(&state) % n;
      all.emplace_back(from, random_next(&state) % n);
   }
   uint64_t sum;
   if (rows) {
      boost::compressed_sparse_row_graph<> graph(boost::edges_are_unsorted_multi_pass, all.begin(), all.end(), n);
      sum = search(graph, n);
   } else {
      boost::adjacency_list<boost::listS, boost::vecS, boost::directedS> graph(all.begin(), all.end(), n);
      sum = search(graph, n);
   }
   printf("%llu\n", static_cast<unsigned long long>(sum));
}
