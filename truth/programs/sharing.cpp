// Two threads count, each in a word of its own: in one line, or a line apart. Plain words, or atomic ones.
#include "timed.h"

#include <atomic>
#include <thread>

namespace {

constexpr size_t APART = 256;

void add(volatile uint64_t &word, uint64_t value)
{
   word = word + value;
}

void add(std::atomic<uint64_t> &word, uint64_t value)
{
   word.fetch_add(value, std::memory_order_relaxed);
}

template <typename Word> uint64_t count(size_t distance, size_t rounds)
{
   auto *room = static_cast<char *>(aligned_alloc(APART, 4 * APART));
   Word *words[2];
   for (int i = 0; i < 2; i++)
      words[i] = new (room + i * distance) Word(0);
   work_begins();
   auto body = [&](Word *word) {
      for (size_t i = 0; i < rounds; i++)
         add(*word, i);
   };
   std::thread other(body, words[1]);
   body(words[0]);
   other.join();
   work_ends();
   return static_cast<uint64_t>(*words[0]) + static_cast<uint64_t>(*words[1]);
}

} // namespace

int main(int argc, char **argv)
{
   const bool atomic = argc > 3 && strcmp(argv[3], "atomic") == 0;
   const size_t distance = variant(argc, argv, "together", "apart") ? APART : sizeof(uint64_t);
   const size_t rounds = size_or(argc, argv, 10000000);
   const uint64_t sum = atomic ? count<std::atomic<uint64_t>>(distance, rounds) : count<volatile uint64_t>(distance, rounds);
   printf("%llu\n", static_cast<unsigned long long>(sum));
}
