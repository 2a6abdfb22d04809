// Eigen's matrices lie column by column: the sum of each row, and of each column.
#include "timed.h"

#include <Eigen/Core>

int main(int argc, char **argv)
{
   const bool columns = variant(argc, argv, "rows", "columns") != 0;
   const Eigen::Index n = static_cast<Eigen::Index>(size_or(argc, argv, 2500));
   Eigen::MatrixXd a(n, n);
   for (Eigen::Index j = 0; j < n; j++)
      for (Eigen::Index i = 0; i < n; i++)
         a(i, j) = double((i + 3 * j) % 11);
   double sum = 0;
   work_begins();
   for (Eigen::Index k = 0; k < 5 * n; k++)
      sum += columns ? a.col(k % n).sum() : a.row(k % n).sum();
   work_ends();
   printf("%.0f\n", sum);
}
