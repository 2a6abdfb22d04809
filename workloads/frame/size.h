/* Numbers of the command line: whole, in powers of 1024 with k, m or g behind them. */
#ifndef WORKLOADS_SIZE_H
#define WORKLOADS_SIZE_H

#include <stdint.h>

/* Whether `text` is such a number from `least` to `most`; then it is in `value`. */
int size_read(const char *text, int64_t least, int64_t most, int64_t *value);

#endif
