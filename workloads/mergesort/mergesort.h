/* MergeSort (Ding11, sections 2 and 4.2): what its parts share. */
#ifndef WORKLOADS_MERGESORT_H
#define WORKLOADS_MERGESORT_H

#include <stdint.h>

/* "An integer key and a 56-byte content"; keys are from 0 to 2^31 - 2. */
struct element {
   int32_t key;
   int32_t content[14];
};

/* Sorts a block, with a buffer of the block's size. Equal keys keep their order. */
void block_sort(struct element *block, struct element *buffer, int64_t count);

/* Nodes of the tree that merges so many runs. */
int64_t tree_nodes(int64_t runs);
struct node {
   int32_t key; /* the run's next */
   int32_t run;
   int64_t at; /* and where it is; leaves only */
};

/* Merges the runs of `run` elements (the last may be shorter) in `from` into `to`, in one pass. */
void runs_merge(struct element *to, const struct element *from, int64_t count, int64_t run, struct node *tree);

#endif
