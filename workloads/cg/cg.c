/* NAS CG (RNR-94-007, section 2.5; Ding11, section 4.2): the smallest eigenvalue of a large sparse matrix by inverse
   iteration, each step of which is a conjugate gradient's 25 sparse products. The matrix passes through the cache once a
   product (a, colidx); the vector p is what is used again. */
#include "cg.h"

#include "team.h"

#include <math.h>
#include <omp.h>

static const char *const CLASSES[] = {"S", "W", "A", "B", "C", 0};
static const struct problem PROBLEMS[] = {
   {'S', 1400, 7, 15, 10, 8.5971775078648},     {'W', 7000, 8, 15, 12, 10.362595087124},
   {'A', 14000, 11, 15, 20, 17.130235054029},   {'B', 75000, 13, 75, 60, 22.712745482631},
   {'C', 150000, 15, 75, 110, 28.973605592845},
};

struct setting settings[] = {
   {"class", "NAS's size of the problem", 0, 0, 4, CLASSES},
   {"iterations", "steps of the inverse iteration; 0: the class's", 0, 1000, 0, 0},
   {"steps", "sparse products of each conjugate gradient", 1, 25, 25, 0},
   {0, 0, 0, 0, 0, 0},
};

static struct sparse m;
static double *x, *z, *p, *q, *r;
/* What each thread adds up, far enough apart. */
static double sums[THREADS_MAX][16];

/* The sum over all threads, which all get; added up in the order of the threads. */
static double together(int thread, double mine)
{
   double sum = 0;
   int i;
   sums[thread][0] = mine;
#pragma omp barrier
   for (i = 0; i < team_threads(); i++)
      sum += sums[i][0];
#pragma omp barrier
   return sum;
}

static double dot(int thread, const double *one, const double *other, int64_t begin, int64_t end)
{
   double sum = 0;
   int64_t i;
   for (i = begin; i < end; i++)
      sum += one[i] * other[i];
   return together(thread, sum);
}

/* q = A p, the thread's rows of it. */
static void product(int64_t begin, int64_t end)
{
   int64_t row, k;
   for (row = begin; row < end; row++) {
      double sum = 0;
      for (k = m.first[row]; k < m.first[row + 1]; k++)
         sum += m.a[k] * p[m.colidx[k]];
      q[row] = sum;
   }
}

/* Solves A z = x, nearly. */
static void conjugate_gradient(int thread, int64_t begin, int64_t end, int64_t steps)
{
   double rho;
   int64_t i, step;
   for (i = begin; i < end; i++) {
      z[i] = 0;
      r[i] = p[i] = x[i];
   }
   rho = dot(thread, r, r, begin, end);
   for (step = 0; step < steps; step++) {
      double alpha, beta;
      product(begin, end);
      alpha = rho / dot(thread, p, q, begin, end);
      for (i = begin; i < end; i++) {
         z[i] += alpha * p[i];
         r[i] -= alpha * q[i];
      }
      beta = rho;
      rho = dot(thread, r, r, begin, end);
      beta = rho / beta;
      for (i = begin; i < end; i++)
         p[i] = r[i] + beta * p[i];
#pragma omp barrier
   }
}

/* The matrix is used once a product: as little of the cache as can be. */
static void give_slots(void)
{
   const size_t elements = (size_t)m.first[m.n];
   const struct piece weak[] = {{m.a, elements * sizeof *m.a}, {m.colidx, elements * sizeof *m.colidx}};
   slot_give(NOT_CACHED, weak, 2, EVERYONE);
}

void workload(void)
{
   const struct problem *problem = &PROBLEMS[setting("class")];
   const int64_t iterations = setting("iterations") ? setting("iterations") : problem->iterations;
   const int64_t steps = setting("steps"), n = problem->n;
   const int whole = iterations == problem->iterations && steps == 25;
   double zeta = 0;
   double **vectors[] = {&x, &z, &p, &q, &r};
   const char *const names[] = {"x", "z", "p", "q", "r"};
   int i;

   m = make_matrix(problem);
   for (i = 0; i < 5; i++)
      *vectors[i] = team_memory(names[i], (size_t)n * sizeof *x);
#pragma omp parallel num_threads(team_threads())
   {
      const int thread = omp_get_thread_num();
      const int64_t begin = n * thread / team_threads(), end = n * (thread + 1) / team_threads();
      int64_t at, step;
      if (omp_get_num_threads() != team_threads())
         frame_fail("OpenMP does not give so many threads");
      team_enter(thread);
      for (at = begin; at < end; at++)
         x[at] = 1;
#pragma omp barrier
      if (thread == 0) {
         give_slots();
         frame_begin();
      }
#pragma omp barrier
      for (step = 0; step < iterations; step++) {
         double up, norm;
         conjugate_gradient(thread, begin, end, steps);
         up = dot(thread, x, z, begin, end);
         norm = 1 / sqrt(dot(thread, z, z, begin, end));
         for (at = begin; at < end; at++)
            x[at] = norm * z[at];
         if (thread == 0)
            zeta = problem->shift + 1 / up;
      }
#pragma omp barrier
      if (thread == 0)
         frame_end();
   }
   frame_report("n", (double)n);
   frame_report("nonzeros", (double)m.first[n]);
   frame_report("checksum", zeta);
   frame_report("zeta", zeta);
   if (whole) {
      frame_report("zeta_error", fabs(zeta - problem->zeta));
      if (!(fabs(zeta - problem->zeta) <= 1e-10))
         frame_fail("zeta is not the one that NAS gives");
   }
}
