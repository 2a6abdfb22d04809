/* Blocked matrix multiply (Ding11, section 4.2): what its parts share. */
#ifndef WORKLOADS_BLOCKED_H
#define WORKLOADS_BLOCKED_H

#include <stdint.h>

/* A block of a matrix: rows of `width` doubles, each `stride` doubles after the one before. */
struct block {
   double *first;
   int64_t height, width, stride;
};

/* c = c + a b. */
void multiply(struct block a, struct block b, struct block c);

#endif
