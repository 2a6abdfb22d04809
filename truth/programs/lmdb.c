/* LMDB: reads as they are asked for, and in the order of the keys. */
#include "timed.h"

#include <lmdb.h>
#include <unistd.h>

int main(int argc, char **argv)
{
   int sorted = variant(argc, argv, "asked", "sorted");
   size_t n = size_or(argc, argv, 120000);
   const char *path = sorted ? "sorted.lmdb" : "asked.lmdb";
   unlink(path);
   MDB_env *env;
   MDB_txn *txn;
   MDB_dbi dbi;
   mdb_env_create(&env);
   mdb_env_set_mapsize(env, 1 << 28);
   int wrong = mdb_env_open(env, path, MDB_NOSUBDIR | MDB_NOSYNC | MDB_NOLOCK, 0600) || mdb_txn_begin(env, NULL, 0, &txn) ||
               mdb_dbi_open(txn, NULL, MDB_INTEGERKEY, &dbi);
   uint32_t *order = shuffled(n, 107), number;
   MDB_val key = {sizeof number, &number}, value = {100, calloc(1, 100)};
   for (size_t i = 0; i < n && !wrong; i++) {
      number = *(uint32_t *)value.mv_data = (uint32_t)i;
      wrong = mdb_put(txn, dbi, &key, &value, MDB_APPEND);
   }
   wrong = wrong || mdb_txn_commit(txn) || mdb_txn_begin(env, NULL, MDB_RDONLY, &txn);
   uint64_t sum = 0;
   work_begins();
   for (size_t i = 0; i < n && !wrong; i++) {
      number = sorted ? (uint32_t)i : order[i];
      wrong = mdb_get(txn, dbi, &key, &value);
      sum += wrong ? 0 : *(uint32_t *)value.mv_data;
   }
   work_ends();
   printf("%llu\n", (unsigned long long)sum);
   return wrong != 0;
}
