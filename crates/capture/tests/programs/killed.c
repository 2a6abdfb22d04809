/* Works until it is killed, or has others made. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

volatile int data[4096];

/* Code that is new each time: each call translates superblocks of its own. */
#define PART(n) \
   static int part##n(int x) { if (x & 1) data[n] = x; else data[n] += x; return data[n] + (x & 2 ? n : -n); }
#define PARTS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
PARTS(PART)
#define NAME(n) part##n,
static int (*const parts[])(int) = {PARTS(NAME)};

int main(int argc, char** argv)
{
   int i;
   if (argc > 1 && !strcmp(argv[1], "forks")) {
      for (i = 0; i < 16; i++) {
         if (fork() == 0) {
            int k;
            for (k = 100; k < 200; k++)
               data[k] = k;
            parts[15 - i](i);
            _exit(0);
         }
         parts[i](i);
      }
      while (wait(NULL) > 0)
         ;
      return 0;
   }
   printf("%d\n", (int)getpid());
   fflush(stdout);
   alarm(600); /* not for ever where nobody kills it */
   for (i = 0;; i++)
      data[i & 4095] = i;
}
