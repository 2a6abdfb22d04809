/* NAS CG (Bailey and others, "The NAS Parallel Benchmarks", RNR-94-007, section 2.5): what its parts share. */
#ifndef WORKLOADS_CG_H
#define WORKLOADS_CG_H

#include <stdint.h>

struct problem {
   char class;
   int64_t n, nonzer, iterations;
   double shift;
   double zeta; /* the answer that NAS gives */
};

/* A sparse matrix: row r has the elements first[r] to first[r + 1] - 1. */
struct sparse {
   int64_t n;
   int64_t *first;
   double *a;
   int32_t *colidx;
};

/* The matrix of a problem: the same one on every machine. Its memory is made by `memory`, as of team.h. */
struct sparse make_matrix(const struct problem *problem);

#endif
