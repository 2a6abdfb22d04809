/* Lookups in GLib's balanced tree, and in its hash table. */
#include "timed.h"

#include <glib.h>

static gint compare(gconstpointer a, gconstpointer b)
{
   return (GPOINTER_TO_UINT(a) > GPOINTER_TO_UINT(b)) - (GPOINTER_TO_UINT(a) < GPOINTER_TO_UINT(b));
}

int main(int argc, char **argv)
{
   int hash = variant(argc, argv, "tree", "hash");
   size_t n = size_or(argc, argv, 200000);
   GTree *tree = g_tree_new(compare);
   GHashTable *table = g_hash_table_new(g_direct_hash, g_direct_equal);
   uint32_t *order = shuffled(n, 59);
   for (size_t i = 0; i < n; i++) {
      gpointer key = GUINT_TO_POINTER(order[i] * 5 + 1), value = GUINT_TO_POINTER(order[i]);
      hash ? (void)g_hash_table_insert(table, key, value) : g_tree_insert(tree, key, value);
   }
   uint64_t state = 61, sum = 0;
   work_begins();
   for (int i = 0; i < 300000; i++) {
      gpointer key = GUINT_TO_POINTER(random_next(&state) % n * 5 + 1);
      sum += GPOINTER_TO_UINT(hash ? g_hash_table_lookup(table, key) : g_tree_lookup(tree, key));
   }
   work_ends();
   printf("%llu\n", (unsigned long long)sum);
}
