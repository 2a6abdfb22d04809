/* NAS LU (Bailey and others, "The NAS Parallel Benchmarks", RNR-94-007, section 3): what its parts share.

   Five conserved quantities on a cube of n points a side. Field variables lie as in the OpenMP version that Ding11 cites (NAS 2.3 in C,
   of the Omni project): u[i][j][k][5], with lines and planes one point longer than n if n is even; z moves fastest,
   although the planes that are solved one after another are those of z. With `--layout planes` they lie as in NAS's Fortran,
   plane after plane of z, with y fastest. Points 0 and n - 1 of each direction are the boundary. */
#ifndef WORKLOADS_LU_H
#define WORKLOADS_LU_H

#include <stdint.h>

/* Ratio of specific heats and friends (c1 ... c5 of the report). */
#define C1 1.4
#define C2 0.4
#define C3 0.1
#define C4 1.0
#define C5 1.4

struct grid {
   int n;
   double dt, omega;
   /* Whether planes of z lie together, and not lines. */
   int planes;
   /* Steps in memory from a point to its neighbour in x, y, z. */
   int64_t step[3];
   /* 1/h^2, 1/(2h), 1/h: the same in all directions of a cube. */
   double t1, t2, t3;
};
extern struct grid grid;

/* Field variables: the solution, the residual, the forcing term, and the fluxes of one direction. */
extern double *u, *rsd, *frct, *flux;
/* Blocks of 5 by 5 for each point of one plane: the diagonal, and the neighbours in z, y, x. */
extern double *a, *b, *c, *d;

static inline double *at(double *field, int64_t i, int64_t j, int64_t k)
{
   return field + i * grid.step[0] + j * grid.step[1] + k * grid.step[2];
}

static inline double *block_at(double *blocks, int64_t i, int64_t j) { return blocks + (i * grid.n + j) * 25; }

/* The exact solution at a point. */
void exact(int64_t i, int64_t j, int64_t k, double *value);

/* Rows (or lines of something else) of the interior that belong to a thread: from `begin` until before `end`. A row is
   what has the same x: the threads divide x among themselves. */
struct range {
   int begin, end;
};
struct range interior(int thread);

/* Adds the steady state operator, applied to `field`, to `to` in the interior; the fluxes pass through `flux`. All
   threads call it together. */
void apply_operator(int thread, double *to, double *field);

/* The blocks of plane k for the lower and for the upper triangular system: a thread's rows of them. */
void jacobians_lower(struct range rows, int64_t k);
void jacobians_upper(struct range rows, int64_t k);
/* Solves plane k of the lower (upper) system in rsd: the thread's rows, after the rows before (behind) them. */
void solve_lower(struct range rows, int64_t k);
void solve_upper(struct range rows, int64_t k);

#endif
