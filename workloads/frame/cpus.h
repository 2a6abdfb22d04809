/* Which cpu each thread runs on. */
#ifndef WORKLOADS_CPUS_H
#define WORKLOADS_CPUS_H

/* Puts the calling thread, number `thread` of its team, on its cpu. Where there are fewer cpus, threads share them. */
void cpus_pin(int thread);
/* How many cpus threads were put on. */
int cpus_used(void);

#endif
