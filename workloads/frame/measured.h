/* The measured part of a program, and what is reported of it: all frames share this. */
#ifndef WORKLOADS_MEASURED_H
#define WORKLOADS_MEASURED_H

/* Around the measured part: the recorder records, and the clocks run, only in between. May be called several times:
   the parts add up. */
void frame_begin(void);
void frame_end(void);

/* Seconds of the measured part so far: on the wall, and of the processor in all threads. */
double frame_seconds(void);
double frame_cpu_seconds(void);

/* One more number in the line of JSON; at most sixteen. */
void frame_report(const char *name, double value);
/* Prints all of them, each after a comma. */
void frame_print_reports(void);

/* Give up: a message on stderr, exit status 1. */
void frame_fail(const char *message) __attribute__((noreturn));

#endif
