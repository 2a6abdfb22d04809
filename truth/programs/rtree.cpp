// Boost's R-tree: searches around points as they are asked for, and along a grid, one neighbour after the other.
#include "timed.h"

#include <boost/geometry.hpp>
#include <boost/geometry/index/rtree.hpp>
#include <vector>

namespace geometry = boost::geometry;
using Point = geometry::model::d2::point_xy<double>;

int main(int argc, char **argv)
{
   const bool near = variant(argc, argv, "asked", "near") != 0;
   const uint32_t side = static_cast<uint32_t>(size_or(argc, argv, 400)), step = 2;
   std::vector<Point> points;
   for (uint32_t i = 0; i < side * side; i++)
      points.emplace_back(i % side, i / side);
   const geometry::index::rtree<Point, geometry::index::quadratic<16>> tree(points);
   const uint32_t across = side / step, n = across * across;
   const uint32_t *order = shuffled(n, 103);
   double sum = 0;
   work_begins();
   for (uint32_t i = 0; i < n; i++) {
      const uint32_t at = near ? i : order[i];
      const double x = at % across * step, y = at / across * step;
      const geometry::model::box<Point> box({x - 1.5, y - 1.5}, {x + 1.5, y + 1.5});
      for (auto found = tree.qbegin(geometry::index::intersects(box)); found != tree.qend(); ++found)
         sum += found->x();
   }
   work_ends();
   printf("%.0f\n", sum);
}
