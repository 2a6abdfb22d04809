// Records are looked up at random by their key; the rest of a record is cold. Whole records, or the keys apart.
#include "timed.h"

#include <vector>

namespace {

struct Record {
   uint64_t key;
   char rest[120];
};

} // namespace

int main(int argc, char **argv)
{
   const bool split = variant(argc, argv, "whole", "split") != 0;
   const size_t n = size_or(argc, argv, 400000);
   std::vector<Record> records(n);
   std::vector<uint64_t> keys(n);
   for (size_t i = 0; i < n; i++)
      records[i].key = keys[i] = i * 2654435761u;
   uint64_t sum = 0, state = 7;
   work_begins();
   for (int i = 0; i < 5000000; i++) {
      const size_t place = random_next(&state) % n;
      sum += split ? keys[place] : records[place].key;
   }
   work_ends();
   printf("%llu\n", static_cast<unsigned long long>(sum));
}
