/* The C library fills and copies memory. */
#include <string.h>

char array_a[1 << 20], array_b[1 << 20];

int main(void) {
   memset(array_a, 1, sizeof array_a);
   memcpy(array_b, array_a, sizeof array_b);
   return array_b[77] - 1;
}
