/* Lookups in uthash's table: as they are asked for, and in the order in which the items were made. */
#include "timed.h"

#include <uthash.h>

struct item {
   uint32_t key, price;
   char name[40];
   UT_hash_handle hh;
};

int main(int argc, char **argv)
{
   int made = variant(argc, argv, "asked", "made");
   size_t n = size_or(argc, argv, 200000);
   struct item *table = NULL, *found;
   for (size_t i = 0; i < n; i++) {
      struct item *item = (struct item *)calloc(1, sizeof *item);
      item->key = (uint32_t)i * 9;
      item->price = (uint32_t)i % 1000;
      HASH_ADD(hh, table, key, sizeof item->key, item);
   }
   uint32_t *order = shuffled(n, 73);
   uint64_t sum = 0;
   work_begins();
   for (size_t k = 0; k < 2 * n; k++) {
      uint32_t key = (made ? (uint32_t)(k % n) : order[k % n]) * 9;
      HASH_FIND(hh, table, &key, sizeof key, found);
      sum += found->price;
   }
   work_ends();
   printf("%llu\n", (unsigned long long)sum);
}
