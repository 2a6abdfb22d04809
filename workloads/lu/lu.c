/* NAS LU (RNR-94-007, section 3; Ding11, section 4.2): time steps of symmetric successive over-relaxation. In each, the
   planes of the cube are gone through upwards and downwards; for each plane the blocks of a, b, c, d are made and used. The
   field variables pass through the cache; the blocks are what is used again, plane after plane.

   The rows of a plane are divided among the threads. A thread begins with a plane when the thread before it (behind it, on
   the way down) has ended with its rows of that plane. */
#include "lu.h"

#include "team.h"

#include <math.h>
#include <omp.h>
#include <semaphore.h>

static const char *const CLASSES[] = {"S", "W", "A", 0};
static const char *const LAYOUTS[] = {"lines", "planes", 0};
struct setting settings[] = {
   {"class", "NAS's size of the problem: 12, 33, 64 points a side", 0, 0, 2, CLASSES},
   {"iterations", "time steps; 0: the class's", 0, 100000, 0, 0},
   {"layout", "what of the field variables lies together: lines of z, or planes", 0, 0, 0, LAYOUTS},
   {0, 0, 0, 0, 0, 0},
};

/* Sizes, and the norms of residual and error that NAS gives. */
static const struct problem {
   int n, iterations;
   double dt, residual[5], error[5];
} PROBLEMS[] = {
   {12, 50, 0.5,
    {1.6196343210976702e-02, 2.1976745164821318e-03, 1.5179927653399185e-03, 1.5029584435994323e-03, 3.4264073155896461e-02},
    {6.4223319957960924e-04, 8.4144342047347926e-05, 5.8588269616485186e-05, 5.8474222595157350e-05, 1.3103347914111294e-03}},
   {33, 300, 1.5e-3,
    {0.1236511638192e+02, 0.1317228477799e+01, 0.2550120713095e+01, 0.2326187750252e+01, 0.2826799444189e+02},
    {0.4867877144216e+00, 0.5064652880982e-01, 0.9281818101960e-01, 0.8570126542733e-01, 0.1084277417792e+01}},
   {64, 250, 2.0,
    {7.7902107606689367e+02, 6.3402765259692870e+01, 1.9499249727292479e+02, 1.7845301160418537e+02, 1.8384760349464247e+03},
    {2.9964085685471943e+01, 2.8194576365003349e+00, 7.3473412698774742e+00, 6.7139225687777051e+00, 7.0715315688392578e+01}},
};

/* The exact solution: for each quantity a constant and polynomials in x, y and z. */
static const double CE[5][13] = {
   {2.0, 0.0, 0.0, 4.0, 5.0, 3.0, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3},
   {1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5},
   {2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4},
   {2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3},
   {5.0, 4.0, 3.0, 2.0, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2},
};

struct grid grid;
double *u, *rsd, *frct, *flux, *a, *b, *c, *d;
static const struct problem *problem;
/* How many planes each thread has done, for the next thread. */
static sem_t upwards[THREADS_MAX], downwards[THREADS_MAX];

void exact(int64_t i, int64_t j, int64_t k, double *value)
{
   const double h = 1.0 / (grid.n - 1), x = (double)i * h, y = (double)j * h, z = (double)k * h;
   int m;
   for (m = 0; m < 5; m++) {
      const double *ce = CE[m];
      value[m] = ce[0] + (ce[1] + (ce[4] + (ce[7] + ce[10] * x) * x) * x) * x +
                 (ce[2] + (ce[5] + (ce[8] + ce[11] * y) * y) * y) * y +
                 (ce[3] + (ce[6] + (ce[9] + ce[12] * z) * z) * z) * z;
   }
}

struct range interior(int thread)
{
   const int inside = grid.n - 2, threads = team_threads();
   const struct range mine = {1 + inside * thread / threads, 1 + inside * (thread + 1) / threads};
   return mine;
}

/* Exact on the boundary, and inside what three lines between opposite boundaries make of it. */
static void first_guess(int i)
{
   const int last = grid.n - 1;
   const double h = 1.0 / last;
   int j, k, m;
   for (j = 0; j <= last; j++)
      for (k = 0; k <= last; k++) {
         double *v = at(u, i, j, k), low[5], high[5], way[3][5];
         if (i == 0 || j == 0 || k == 0 || i == last || j == last || k == last) {
            exact(i, j, k, v);
            continue;
         }
         exact(0, j, k, low), exact(last, j, k, high);
         for (m = 0; m < 5; m++)
            way[0][m] = (1 - i * h) * low[m] + i * h * high[m];
         exact(i, 0, k, low), exact(i, last, k, high);
         for (m = 0; m < 5; m++)
            way[1][m] = (1 - j * h) * low[m] + j * h * high[m];
         exact(i, j, 0, low), exact(i, j, last, high);
         for (m = 0; m < 5; m++) {
            const double x = way[0][m], y = way[1][m], z = (1 - k * h) * low[m] + k * h * high[m];
            v[m] = x + y + z - x * y - y * z - z * x + x * y * z;
         }
      }
}

/* The forcing term with which the exact solution is steady: the operator, applied to it. */
static void force(int thread)
{
   int i, j, k;
#pragma omp for
   for (i = 0; i < grid.n; i++)
      for (j = 0; j < grid.n; j++)
         for (k = 0; k < grid.n; k++)
            exact(i, j, k, at(rsd, i, j, k));
   apply_operator(thread, frct, rsd);
}

static void residual(int thread)
{
   int i, j, k, m;
#pragma omp for
   for (i = 0; i < grid.n; i++)
      for (j = 0; j < grid.n; j++)
         for (k = 0; k < grid.n; k++)
            for (m = 0; m < 5; m++)
               at(rsd, i, j, k)[m] = -at(frct, i, j, k)[m];
   apply_operator(thread, rsd, u);
}

static void upwards_through_planes(int thread)
{
   const struct range rows = interior(thread);
   int k;
   for (k = 1; k < grid.n - 1; k++) {
      jacobians_lower(rows, k);
      if (thread > 0)
         sem_wait(&upwards[thread - 1]);
      solve_lower(rows, k);
      if (thread + 1 < team_threads())
         sem_post(&upwards[thread]);
   }
}

static void downwards_through_planes(int thread)
{
   const struct range rows = interior(thread);
   int k;
   for (k = grid.n - 2; k >= 1; k--) {
      jacobians_upper(rows, k);
      if (thread + 1 < team_threads())
         sem_wait(&downwards[thread + 1]);
      solve_upper(rows, k);
      if (thread > 0)
         sem_post(&downwards[thread]);
   }
}

static void time_step(int thread)
{
   const struct range rows = interior(thread);
   const double relax = 1 / (grid.omega * (2 - grid.omega));
   int i, j, k, m;
   for (i = rows.begin; i < rows.end; i++)
      for (j = 1; j < grid.n - 1; j++)
         for (k = 1; k < grid.n - 1; k++)
            for (m = 0; m < 5; m++)
               at(rsd, i, j, k)[m] *= grid.dt;
#pragma omp barrier
   upwards_through_planes(thread);
#pragma omp barrier
   downwards_through_planes(thread);
#pragma omp barrier
   for (i = rows.begin; i < rows.end; i++)
      for (j = 1; j < grid.n - 1; j++)
         for (k = 1; k < grid.n - 1; k++)
            for (m = 0; m < 5; m++)
               at(u, i, j, k)[m] += relax * at(rsd, i, j, k)[m];
#pragma omp barrier
   residual(thread);
}

/* Root mean squares over the interior: of the residual, or of what the solution lacks. */
static void norms(int of_error, double *norm)
{
   int i, j, k, m;
   for (m = 0; m < 5; m++)
      norm[m] = 0;
   for (i = 1; i < grid.n - 1; i++)
      for (j = 1; j < grid.n - 1; j++)
         for (k = 1; k < grid.n - 1; k++) {
            double right[5] = {0, 0, 0, 0, 0};
            if (of_error)
               exact(i, j, k, right);
            for (m = 0; m < 5; m++) {
               const double lacks = (of_error ? at(u, i, j, k)[m] : at(rsd, i, j, k)[m]) - right[m];
               norm[m] += lacks * lacks;
            }
         }
   for (m = 0; m < 5; m++)
      norm[m] = sqrt(norm[m] / ((double)(grid.n - 2) * (grid.n - 2) * (grid.n - 2)));
}

/* A thread's rows of the blocks have cache space for themselves; the field variables share what is left. */
static void give_slots(int thread, size_t field_bytes)
{
   const struct range rows = interior(thread);
   const size_t bytes = (size_t)(rows.end - rows.begin) * (size_t)grid.n * 25 * sizeof(double);
   double *blocks[] = {a, b, c, d};
   const struct piece fields[] = {{u, field_bytes}, {rsd, field_bytes}, {frct, field_bytes}, {flux, field_bytes}};
   struct piece own[4];
   /* Space for the most rows that a thread has, and the pages at the ends. */
   const int64_t most = (grid.n - 2 + team_threads() - 1) / team_threads();
   const int64_t space = slot_bytes(4 * (most * grid.n * 25 * (int64_t)sizeof(double) + 4096));
   int i;
   for (i = 0; i < 4; i++) {
      own[i].start = block_at(blocks[i], rows.begin, 0);
      own[i].bytes = bytes;
   }
   /* First what all caches must have room for in the same place. */
   if (thread == 0) {
      const int64_t left = team_cache() - team_sharing() * space;
      if (left <= 0)
         frame_fail("the blocks leave no cache for the field variables: take a smaller --class");
      slot_give(slot_define(left, SLOT_SHARED), fields, 4, EVERYONE);
   }
#pragma omp barrier
   slot_give(slot_define(space, SLOT_PRIVATE), own, 4, thread, thread);
}

/* As NAS does: within 1e-8 of what it gives. */
static void verify(const double *norm, const double *right)
{
   int m;
   for (m = 0; m < 5; m++)
      if (!(fabs(norm[m] - right[m]) <= 1e-8 * fabs(right[m])))
         frame_fail("a norm is not the one that NAS gives");
}

void workload(void)
{
   /* The directions of each layout, the slowest in memory first. */
   static const int ORDERS[2][3] = {{0, 1, 2}, {2, 0, 1}};
   const int *order;
   int64_t iterations, doubles;
   size_t field_bytes, plane_bytes;
   double before[5], after[5], error[5];
   int i;

   problem = &PROBLEMS[setting("class")];
   grid.n = problem->n;
   grid.dt = problem->dt;
   grid.omega = 1.2;
   grid.t3 = grid.n - 1;
   grid.t1 = grid.t3 * grid.t3;
   grid.t2 = grid.t3 / 2;
   grid.planes = setting("layout") == 1;
   order = ORDERS[grid.planes];
   grid.step[order[2]] = 5;
   grid.step[order[1]] = grid.step[order[2]] * (grid.n / 2 * 2 + 1);
   grid.step[order[0]] = grid.step[order[1]] * (grid.n / 2 * 2 + 1);
   doubles = grid.step[order[0]] * grid.n;
   iterations = setting("iterations") ? setting("iterations") : problem->iterations;
   if (team_threads() > grid.n - 2)
      frame_fail("there are fewer rows than threads");
   field_bytes = (size_t)doubles * sizeof(double);
   plane_bytes = (size_t)grid.n * (size_t)grid.n * 25 * sizeof(double);
   u = team_memory("u", field_bytes), rsd = team_memory("rsd", field_bytes);
   frct = team_memory("frct", field_bytes), flux = team_memory("flux", field_bytes);
   a = team_memory("a", plane_bytes), b = team_memory("b", plane_bytes);
   c = team_memory("c", plane_bytes), d = team_memory("d", plane_bytes);
   for (i = 0; i < THREADS_MAX; i++)
      if (sem_init(&upwards[i], 0, 0) || sem_init(&downwards[i], 0, 0))
         frame_fail("cannot make semaphores");

#pragma omp parallel num_threads(team_threads())
   {
      const int thread = omp_get_thread_num();
      int64_t step;
      int i;
      if (omp_get_num_threads() != team_threads())
         frame_fail("OpenMP does not give so many threads");
      team_enter(thread);
#pragma omp barrier
      if (slots_on())
         give_slots(thread, field_bytes);
#pragma omp barrier
#pragma omp for
      for (i = 0; i < grid.n; i++)
         first_guess(i);
      force(thread);
      residual(thread);
      if (thread == 0) {
         norms(0, before);
         frame_begin();
      }
#pragma omp barrier
      for (step = 0; step < iterations; step++)
         time_step(thread);
#pragma omp barrier
      if (thread == 0)
         frame_end();
   }

   norms(0, after);
   norms(1, error);
   if (iterations == problem->iterations) {
      verify(after, problem->residual);
      verify(error, problem->error);
   }
   frame_report("n", grid.n);
   frame_report("checksum", after[0] + after[1] + after[2] + after[3] + after[4]);
   frame_report("residual_before", before[0] + before[1] + before[2] + before[3] + before[4]);
   frame_report("residual", after[0] + after[1] + after[2] + after[3] + after[4]);
   frame_report("error", error[0] + error[1] + error[2] + error[3] + error[4]);
}
