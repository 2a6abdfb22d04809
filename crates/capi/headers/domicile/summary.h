/* domicile/summary.h: what a program's compiler, or its author, says of the arrays of parallel loops.

   `domicile-cc` and `domicile-fc` write these calls by themselves. By hand they serve where a compiler cannot see
   the pattern (arrays of pointers, gathers): fill a domicile_loop for each parallel loop and pass it once, before
   the loop runs for the first time with these arrays and bounds.

   A summary never changes what a program computes. `domicile run --policy cdpc` colors pages by it, `--policy
   summary-homes` puts them on nodes, `domicile record` keeps it in the trace; otherwise it costs what copying it costs. Bugnion and others, "Compiler-Directed Page
   Coloring for Multiprocessors" (ASPLOS 1996), section 5.1. */
#ifndef DOMICILE_SUMMARY_H
#define DOMICILE_SUMMARY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMICILE_SUMMARY_VERSION 1

/* Which iterations a thread has, of n among p threads. */
enum {
   DOMICILE_EVEN = 0,    /* as equal as can be, one piece each: the first n mod p threads have one more */
   DOMICILE_BLOCKED = 1, /* ceil(n / p) each, one piece each */
   DOMICILE_CHUNKED = 2  /* pieces of `chunk` iterations, dealt in turn */
};

/* Data of neighbours. A summary with it stands for that data alone: a thread's own part has a summary of its own. */
enum {
   DOMICILE_NO_COMMUNICATION = 0,
   DOMICILE_SHIFT = 1, /* what lies `distance` bytes beyond the partition's part; nothing outside of the array */
   DOMICILE_ROTATE = 2 /* what iteration (i + distance) mod iterations has, instead of iteration i */
};

enum { DOMICILE_READS = 1, DOMICILE_WRITES = 2 };

/* A loop within the parallel one: how far from one of its iterations to the next, in bytes, and how many it has;
   0: none. */
typedef struct domicile_inner {
   int64_t stride;
   uint64_t count;
} domicile_inner;

/* How one parallel loop uses one array. Iteration i touches, for each combination of the inner loops' counters k, the
   `span` bytes from start + offset + i * unit + k[0] * inner[0].stride + ... */
typedef struct domicile_summary {
   const char* name;        /* the array's, for people; not null */
   const void* start;       /* its first byte */
   uint64_t bytes;          /* its size; what would be touched outside is not. 0: not known */
   int64_t offset;          /* bytes from its start to what iteration 0 touches first */
   int64_t unit;            /* the data partition unit: bytes from one iteration to the next; 0: all touch the same */
   uint64_t span;           /* bytes in one piece, at least 1 */
   domicile_inner inner[3];
   int64_t distance;        /* of the communication: bytes (shift) or iterations (rotate) */
   uint32_t communication;
   uint32_t access;         /* DOMICILE_READS | DOMICILE_WRITES */
} domicile_summary;

/* One parallel loop. Its arrays are used together. */
typedef struct domicile_loop {
   uint32_t version;        /* DOMICILE_SUMMARY_VERSION */
   uint32_t count;          /* of summaries */
   const char* place;       /* where it is, for people: "calc1 (swim.f90:123)" */
   uint64_t iterations;
   uint64_t chunk;          /* of DOMICILE_CHUNKED */
   uint32_t schedule;
   uint32_t reverse;        /* 1: the last thread has the first iterations */
   uint32_t threads;        /* that share the loop; 0: as many as OpenMP would give it now */
   uint32_t reserved;       /* 0 */
   const domicile_summary* summaries;
} domicile_loop;

/* Says it. All is copied before the call returns. What cannot be is passed over; `domicile run` and `domicile record`
   say why. Any thread may call, before `main` too; saying the same again costs next to nothing. */
void domicile_parallel_loop(const domicile_loop* loop);

/* The program enters the phase `name`: the trace keeps that, as by DOMICILE_PHASE of domicile/trace.h. In Fortran
   (no module is needed): call domicile_phase('steady') */
void domicile_phase(const char* name);

#ifdef __cplusplus
}
#endif
#endif
