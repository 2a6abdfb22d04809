/* What a threaded version says to the library beyond the paper's th_fork and th_run, and, below, an
   order whose hints are places along a line, for versions that the paper does not have. */
#ifndef WORKLOADS_ORDER_H
#define WORKLOADS_ORDER_H

#include "frame.h"

/* Before the first th_fork: the block and the workers of the command line. */
void order_begin(const struct options *options);
/* After each th_run: its threads are added; its bins are noted if they are more than before. */
void order_end(struct outcome *outcome);

/* Makes the order of the program, with the block and the workers of the command line. */
void places_open(const struct options *options);
/* How long a block is. */
int64_t places_block(void);
/* Forks a thread that calls f(arg1, arg2) and whose one hint is its place. */
void places_fork(void (*f)(void *, void *), intptr_t arg1, intptr_t arg2, int64_t place);
/* Runs all threads and forgets them; their number is added to the outcome. */
void places_run(struct outcome *outcome);
void places_close(void);

#endif
