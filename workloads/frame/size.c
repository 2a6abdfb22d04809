/* See size.h. */
#include "size.h"

#include <errno.h>
#include <stdlib.h>

int size_read(const char *text, int64_t least, int64_t most, int64_t *value)
{
   char *end;
   int64_t number, unit = 1;
   if (!text)
      return 0;
   errno = 0;
   number = strtoll(text, &end, 10);
   if (end == text)
      return 0;
   if (*end && !end[1])
      switch (*end++) {
      case 'k': case 'K': unit = 1 << 10; break;
      case 'm': case 'M': unit = 1 << 20; break;
      case 'g': case 'G': unit = 1 << 30; break;
      default: end--;
      }
   if (*end || errno || number > most / unit || number < least / unit || number * unit < least)
      return 0;
   *value = number * unit;
   return 1;
}
