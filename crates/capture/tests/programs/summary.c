/* Says what its compiler would: one summary that is short, one of 100 KB, one too long to be recorded. */
#include <stdlib.h>
#include <string.h>

#include "domicile-trace.h"

int main(void)
{
   static const char small[] = "{\"place\":\"main\",\"summaries\":[]}";
   size_t bytes = 100000, most = 1 << 20;
   char* text = malloc(most + 1);
   size_t i;
   int recorded;
   for (i = 0; i <= most; i++)
      text[i] = 'a' + i % 26;
   recorded = DOMICILE_SUMMARY(small, sizeof small - 1);
   recorded += DOMICILE_SUMMARY(text, bytes);
   recorded += DOMICILE_SUMMARY(text, most);
   recorded += DOMICILE_SUMMARY(text, most + 1);
   recorded += DOMICILE_SUMMARY(text, 0);
   recorded += DOMICILE_SUMMARY((char*)8, 100);
   DOMICILE_PHASE("after");
   return recorded;
}
