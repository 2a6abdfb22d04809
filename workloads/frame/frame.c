/* See frame.h. Compiled once for each program and version: PROGRAM and VERSION are strings. */
#include "frame.h"
#include "size.h"

#include <domicile-trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef COLUMNS
#define COLUMNS_USAGE " [--columns N]"
#else
#define COLUMNS_USAGE ""
#endif

/* The paper's sizes, and the least and the greatest that make sense. */
static const struct program {
   const char *name;
   int64_t n, least, most, iterations;
} PROGRAMS[] = {
   {"matmul", 1024, 1, 32768, 1},
   {"pde", 2049, 1, 32768, 5},
   {"sor", 2005, 2, 32768, 30},
   {"nbody", 64000, 1, 16777216, 4},
};

static const struct program *program;

void frame_item_begin(const void *hint1, const void *hint2, const void *hint3)
{
   unsigned long long hints[3] = {(unsigned long long)hint1, (unsigned long long)hint2,
                                  (unsigned long long)hint3};
   DOMICILE_WORK_BEGIN(hint3 ? 3 : 2, hints);
}

void frame_item_end(void) { DOMICILE_WORK_END(); }

static void usage(FILE *to)
{
   fprintf(to, "usage: " PROGRAM "-" VERSION " [--n N]");
   if (program->iterations > 1)
      fprintf(to, " [--iterations N]");
   if (!strcmp(PROGRAM, "sor"))
      fprintf(to, " [--rounds N]");
   fputs(COLUMNS_USAGE, to);
   if (!strcmp(PROGRAM, "nbody"))
      fprintf(to, " [--theta T] [--plane BYTES] [--bodies clusters|plummer|uniform]");
#ifdef THREADED
   fprintf(to, " [--block BYTES] [--workers N]");
#endif
#ifdef MARKS
   fprintf(to, " [--mark]");
#endif
   fprintf(to, "\ndefaults: n %lld, iterations %lld; sizes may end in k, m or g (powers of 1024)\n",
           (long long)program->n, (long long)program->iterations);
}

static void refuse(const char *what, const char *why)
{
   fprintf(stderr, PROGRAM "-" VERSION ": %s %s\n", what, why);
   usage(stderr);
   exit(2);
}

static int64_t whole(const char *option, const char *text, int64_t least, int64_t most)
{
   char why[128];
   int64_t value;
   if (!size_read(text, least, most, &value)) {
      snprintf(why, sizeof why, "takes a whole number from %lld to %lld%s%.40s", (long long)least,
               (long long)most, text ? ", not " : "", text ? text : "");
      refuse(option, why);
   }
   return value;
}

static double angle(const char *option, const char *text)
{
   char *end;
   double value = text ? strtod(text, &end) : 0;
   if (!text || end == text || *end || !(value >= 0 && value <= 10))
      refuse(option, "takes a number from 0 to 10");
   return value;
}

static int32_t bodies(const char *option, const char *text)
{
   static const char *const names[] = {"clusters", "plummer", "uniform"};
   int32_t which;
   for (which = TWO_CLUSTERS; which <= UNIFORM; which++)
      if (text && !strcmp(text, names[which]))
         return which;
   refuse(option, "takes clusters, plummer or uniform");
   return 0;
}

static void parse(int argc, char **argv, struct options *options)
{
   int i;
   for (i = 1; i < argc; i++) {
      const char *name = argv[i];
      if (!strcmp(name, "--help")) {
         usage(stdout);
         exit(0);
      } else if (!strcmp(name, "--n"))
         options->n = whole(name, argv[++i], program->least, program->most);
      else if (!strcmp(name, "--iterations") && program->iterations > 1)
         options->iterations = whole(name, argv[++i], 1, 1000000);
      else if (!strcmp(name, "--rounds") && !strcmp(PROGRAM, "sor"))
         options->rounds = whole(name, argv[++i], 1, 1000000);
#ifdef COLUMNS
      else if (!strcmp(name, "--columns"))
         options->columns = whole(name, argv[++i], 1, 64);
#endif
      else if (!strcmp(name, "--theta") && !strcmp(PROGRAM, "nbody"))
         options->theta = angle(name, argv[++i]);
      else if (!strcmp(name, "--plane") && !strcmp(PROGRAM, "nbody"))
         options->plane = whole(name, argv[++i], 1, (int64_t)1 << 46);
      else if (!strcmp(name, "--bodies") && !strcmp(PROGRAM, "nbody"))
         options->bodies = bodies(name, argv[++i]);
#ifdef THREADED
      else if (!strcmp(name, "--block"))
         options->block = whole(name, argv[++i], 0, (int64_t)1 << 46);
      else if (!strcmp(name, "--workers"))
         options->workers = whole(name, argv[++i], 1, 1024);
#else
      else if (!strcmp(name, "--block") || !strcmp(name, "--workers"))
         refuse(name, "means nothing here: this version forks no threads");
#endif
#ifdef MARKS
      else if (!strcmp(name, "--mark"))
         options->mark = 1;
#endif
      else
         refuse(name, "is not an option of this program");
   }
#ifdef ONE_WORKER
   if (options->workers > 1)
      refuse("--workers", ONE_WORKER);
#endif
}

int main(int argc, char **argv)
{
   struct options options = {0};
   struct outcome outcome = {0, 0, -1};

   for (program = PROGRAMS; strcmp(program->name, PROGRAM); program++)
      ;
   options.n = program->n;
   options.iterations = program->iterations;
   options.rounds = 1;
   options.columns = 1;
   options.workers = 1;
   options.theta = 1.0;
   parse(argc, argv, &options);
   workload(&options, &outcome);

   printf("{\"program\":\"" PROGRAM "\",\"version\":\"" VERSION "\",\"n\":%lld,\"iterations\":%lld,",
          (long long)options.n, (long long)options.iterations);
   printf("\"workers\":%lld,\"block\":%lld,\"seconds\":%.6f,\"cpu_seconds\":%.6f,",
          (long long)options.workers, (long long)options.block, frame_seconds(), frame_cpu_seconds());
   printf("\"checksum\":%.17g,\"threads\":%lld,\"bins\":", outcome.checksum,
          (long long)outcome.threads);
   if (outcome.bins >= 0)
      printf("%lld", (long long)outcome.bins);
   else
      printf("null");
   frame_print_reports();
   printf("}\n");
   return fflush(stdout) ? 1 : 0;
}
