/* The frame in which every program of this folder hangs: arguments in, one line of JSON out, and
   the measured part in between. A program supplies `workload`; the frame supplies `main`. */
#ifndef WORKLOADS_FRAME_H
#define WORKLOADS_FRAME_H

#include "measured.h"

#include <stdint.h>

/* What the command line said. module.f90 has the same type for Fortran. */
struct options {
   int64_t n;          /* size of the problem */
   int64_t iterations; /* time steps, sweeps */
   int64_t rounds;     /* sor: how often the whole nest is run */
   int64_t columns;    /* sor: relaxed together; matmul: transposed together */
   int64_t block;      /* bytes of a block in each dimension; 0: the library decides */
   int64_t workers;    /* workers that run the bins */
   int64_t plane;      /* nbody: bytes along one side of the scheduling cube; 0: by the data */
   double theta;       /* nbody: opening angle */
   int32_t mark;       /* not 0: show the recorder where each work item begins and ends */
   int32_t bodies;     /* nbody: where the bodies are at the start, one of enum bodies */
};

/* nbody: two clusters side by side, one of them, or evenly in a cube. */
enum bodies { TWO_CLUSTERS, PLUMMER, UNIFORM };

/* What the program reports. */
struct outcome {
   double checksum;
   int64_t threads; /* forked in the measured part; 0 in versions without threads */
   int64_t bins;    /* of the run that had most; negative: nobody knows */
};

void workload(const struct options *options, struct outcome *outcome);

/* Around one work item (only where options->mark): its hints, as a thread of it would have. */
void frame_item_begin(const void *hint1, const void *hint2, const void *hint3);
void frame_item_end(void);

#endif
