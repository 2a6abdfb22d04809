/* An interpreter that says which line of its program it is at: `script` allocates at one line, and another reads. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "domicile-trace.h"

enum { COUNT = 1000 };

/* The instructions by which every line of the program reads and writes. */
static __attribute__((noinline)) long step(volatile long* at, int write)
{
   if (write)
      *at = 1;
   return *at;
}

static void at(int count, unsigned long long inner, unsigned long long outer)
{
   unsigned long long numbers[2];
   numbers[0] = inner;
   numbers[1] = outer;
   DOMICILE_AT_LINES(count, numbers);
}

int main(void)
{
   long* data;
   long sum = 0;
   int i;
   DOMICILE_LINE(7, 3, "fill\nscripts/app.script");
   DOMICILE_LINE(8, 12, "total\nscripts/app.script");
   DOMICILE_LINE(9, 20, "<main>\nscripts/app.script");
   at(2, 7, 9);
   data = malloc(COUNT * sizeof *data);
   for (i = 0; i < COUNT; i++)
      step(data + i, 1);
   at(2, 8, 9);
   for (i = 0; i < COUNT; i++)
      sum += step(data + i, 0);
   /* A child is where its parent was. */
   if (fork() == 0) {
      for (i = 0; i < COUNT; i++)
         sum += step(data + i, 0);
      _exit(0);
   }
   wait(0);
   DOMICILE_ASIDE(1);
   for (i = 0; i < COUNT; i++)
      sum += step(data + i, 0);
   DOMICILE_ASIDE(0);
   at(0, 0, 0);
   for (i = 0; i < COUNT; i++)
      sum += step(data + i, 0);
   free(data);
   return sum == 0;
}
