/* Ends as its argument says. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

volatile int data[4096];

int main(int argc, char** argv)
{
   const char* how = argc > 1 ? argv[1] : "";
   int i;
   for (i = 0; i < 4096; i++)
      data[i] = i;
   if (!strcmp(how, "code"))
      return 42;
   if (!strcmp(how, "crash"))
      *(volatile int*)8 = 1;
   if (!strcmp(how, "abort"))
      abort();
   if (!strcmp(how, "kill"))
      kill(getpid(), SIGKILL);
   if (!strcmp(how, "wait")) {
      alarm(600); /* not for ever where nobody interrupts it: whoever records it fills a disk */
      for (;;)
         data[7]++;
   }
   if (!strcmp(how, "echo")) {
      char line[256];
      while (fgets(line, sizeof line, stdin))
         fputs(line, stdout);
      fputs("to stderr\n", stderr);
      return 0;
   }
   if (!strcmp(how, "flood")) {
      for (i = 0; i < 200000; i++)
         printf("line %d\n", i);
      return 0;
   }
   if (!strcmp(how, "fork")) {
      int status;
      if (fork() == 0) {
         for (i = 0; i < 100; i++)
            data[i] += 1;
         execl(argv[0], "ends", "code", (char*)0);
         _exit(99);
      }
      wait(&status);
      return WEXITSTATUS(status) == 42 ? 0 : 1;
   }
   return 0;
}
