// Eigen's sparse matrix times a vector: the unknowns of a long band numbered at random, and along the band.
#include "timed.h"

#include <Eigen/SparseCore>
#include <vector>

int main(int argc, char **argv)
{
   const bool along = variant(argc, argv, "random", "band") != 0;
   const int n = static_cast<int>(size_or(argc, argv, 1000000));
   uint32_t *number = shuffled(n, 43);
   if (along)
      for (int i = 0; i < n; i++)
         number[i] = i;
   std::vector<Eigen::Triplet<double>> entries;
   entries.reserve(size_t(n) * 5);
   for (int i = 0; i < n; i++)
      for (int k = -2; k <= 2; k++)
         if (i + k * 3 >= 0 && i + k * 3 < n)
            entries.emplace_back(number[i], number[i + k * 3], double(k + 3));
   Eigen::SparseMatrix<double, Eigen::RowMajor> a(n, n);
   a.setFromTriplets(entries.begin(), entries.end());
   Eigen::VectorXd x(n), y = Eigen::VectorXd::Zero(n);
   for (int i = 0; i < n; i++)
      x[number[i]] = double(i % 5);
   work_begins();
   for (int pass = 0; pass < 2; pass++)
      y += a * x;
   work_ends();
   printf("%.0f\n", y.sum());
}
