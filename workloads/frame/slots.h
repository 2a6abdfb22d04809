/* Cache slots, as the frame opens and closes them; programs use the part of team.h. */
#ifndef WORKLOADS_SLOTS_H
#define WORKLOADS_SLOTS_H

/* Once in a run, before and after everything else. */
void slots_open(void);
void slots_close(void);
/* The calling thread has this number. */
void slots_enter(int thread);
/* How long giving slots took; in no measured part. */
double slots_seconds(void);

#endif
