/* Cache slots and data sets, described by requests. */
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "domicile-trace.h"

char strong[8192];
char weak[4096];
static long first;

static void* second(void* unused)
{
   DOMICILE_DATA_THREAD(1, 0);
   DOMICILE_DATA_THREAD(1, first);
   DOMICILE_DATA_THREAD(1, 1 << 30);
   return unused;
}

int main(void)
{
   pthread_t thread;
   int i;
   first = syscall(SYS_gettid);
   DOMICILE_SLOT(3, 65536, 1);
   DOMICILE_DATA_RANGE(1, strong, sizeof strong);
   DOMICILE_DATA_THREAD(1, 0);
   pthread_create(&thread, 0, second, 0);
   pthread_join(thread, 0);
   DOMICILE_ALLOCATE(1, 3);
   DOMICILE_DATA_RANGE(2, weak, sizeof weak);
   DOMICILE_ALLOCATE(2, DOMICILE_NO_SLOT);
   DOMICILE_DATA_FREE(1);
   DOMICILE_SLOT_FREE(3);
   if (DOMICILE_RECORDING())
      for (i = 0; i < 64; i++)
         ((volatile char*)weak)[i] = i;
   return 0;
}
