/* The frame of the programs that go through time steps (stepped.f90): options in, phases for the recorder, one line of JSON
   out. The main program is Fortran's own, so that any Fortran compiler links it. Compiled once for each program and
   compiler: PROGRAM and VERSION are strings.

   All of a run is recorded but its checksum and other numbers for the report, initialization too: which page is touched first decides what bin hopping gives
   it. Times are those of the phase `steady` alone. */
#include "measured.h"
#include "size.h"

#include <domicile-trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of whichever OpenMP the Fortran compiler brings. */
extern void omp_set_dynamic(int);
extern void omp_set_num_threads(int);
extern int omp_get_max_threads(void);

static struct {
   const char *name, *help;
   int64_t least, most, value;
} options[] = {
   {"iterations", "measured time steps", 0, 1000000, 2},
   {"warm", "time steps before them", 0, 1000000, 1},
   {"threads", "of OpenMP; 0: as OpenMP itself chooses", 0, 1024, 0},
};
enum { ITERATIONS, WARM, THREADS, OPTIONS };

static int argument_count;
static char **arguments;
static int64_t step;

/* The C library hands the arguments to constructors, too: the main program is not ours to ask. */
__attribute__((constructor)) static void keep_arguments(int argc, char **argv)
{
   argument_count = argc;
   arguments = argv;
}

static void usage(FILE *to)
{
   int i;
   fprintf(to, "usage: " PROGRAM "-" VERSION " [--OPTION N]...\n");
   for (i = 0; i < OPTIONS; i++)
      fprintf(to, "  --%s N: %s [%lld]\n", options[i].name, options[i].help, (long long)options[i].value);
   fprintf(to, "the size of the problem is a constant of the program; numbers may end in k, m or g (powers of 1024)\n");
}

static void refuse(const char *option, const char *why)
{
   fprintf(stderr, PROGRAM "-" VERSION ": %s %s\n", option, why);
   usage(stderr);
   exit(2);
}

static void parse(void)
{
   int i, which;
   for (i = 1; i < argument_count; i += 2) {
      const char *option = arguments[i], *text = i + 1 < argument_count ? arguments[i + 1] : 0;
      if (!strcmp(option, "--help")) {
         usage(stdout);
         exit(0);
      }
      for (which = 0; which < OPTIONS; which++)
         if (!strncmp(option, "--", 2) && !strcmp(option + 2, options[which].name))
            break;
      if (which == OPTIONS)
         refuse(option, "is not an option of this program");
      if (!size_read(text, options[which].least, options[which].most, &options[which].value)) {
         char why[128];
         snprintf(why, sizeof why, "takes a whole number from %lld to %lld%s%.40s", (long long)options[which].least,
                  (long long)options[which].most, text ? ", not " : "", text ? text : "");
         refuse(option, why);
      }
   }
}

/* Before anything else: options, threads, and the phase `initialize`. */
void stepped_start(void)
{
   parse();
   omp_set_dynamic(0);
   if (options[THREADS].value)
      omp_set_num_threads((int)options[THREADS].value);
   DOMICILE_PHASE("initialize");
}

/* Whether there is one more time step to do. The phases `warm`, `steady` and `done` begin here. */
int stepped_next(void)
{
   const int64_t now = step++;
   if (now == 0 && options[WARM].value)
      DOMICILE_PHASE("warm");
   if (now == options[WARM].value) {
      frame_begin();
      DOMICILE_PHASE("steady");
   }
   if (now < options[WARM].value + options[ITERATIONS].value)
      return 1;
   DOMICILE_PHASE("done");
   frame_end();
   return 0;
}

void stepped_pause(void) { DOMICILE_RECORD_STOP(); }
void stepped_resume(void) { DOMICILE_RECORD_START(); }

/* After all steps: prints the line. */
void stepped_finish(double checksum)
{
   int i;
   printf("{\"program\":\"" PROGRAM "\",\"version\":\"" VERSION "\"");
   options[THREADS].value = omp_get_max_threads();
   for (i = 0; i < OPTIONS; i++)
      printf(",\"%s\":%lld", options[i].name, (long long)options[i].value);
   printf(",\"seconds\":%.6f,\"cpu_seconds\":%.6f,\"checksum\":%.17g", frame_seconds(), frame_cpu_seconds(), checksum);
   frame_print_reports();
   printf("}\n");
   if (fflush(stdout))
      frame_fail("cannot write the result");
}
