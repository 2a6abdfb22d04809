// Many threads, random sizes, every kind of allocation; blocks are freed and resized by other threads. With forks.
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

struct Block {
  unsigned char *start;
  size_t bytes;
  unsigned char mark;
  int kind;
};

static const int PLACES = 256;
static Block places[PLACES];
static std::mutex locks[PLACES];
static bool bad = false;

static void check(bool good, const char *what) {
  if (!good && !bad) std::fprintf(stderr, "wrong: %s\n", what);
  bad |= !good;
}

static void whole(const Block &block, const char *when) {
  for (size_t at = 0; at < block.bytes; at += block.bytes / 7 + 1) check(block.start[at] == block.mark, when);
  check(block.start[block.bytes - 1] == block.mark, when);
}

static void drop(Block &block) {
  if (!block.start) return;
  whole(block, "a byte before the block was freed");
  switch (block.kind) {
    case 5: delete[] block.start; break;
    case 6: ::operator delete(block.start, std::align_val_t(64)); break;
    default: std::free(block.start);
  }
  block.start = nullptr;
}

static void resize(Block &block, size_t bytes) {
  whole(block, "a byte before realloc");
  block.start = static_cast<unsigned char *>(std::realloc(block.start, bytes));
  Block kept = {block.start, bytes < block.bytes ? bytes : block.bytes, block.mark, 0};
  whole(kept, "a byte after realloc");
  check(malloc_usable_size(block.start) >= bytes, "usable size");
  std::memset(block.start, block.mark, bytes);
  block.bytes = bytes;
}

static void work(unsigned seed, int rounds) {
  for (int round = 0; round < rounds; round++) {
    seed = seed * 1664525u + 1013904223u;
    unsigned random = seed >> 8;
    size_t bytes = 1 + (random * 2654435761u >> 7) % (1u << (4 + (random >> 9) % 15));
    size_t alignment = size_t(16) << (random >> 5) % 10;
    int kind = (random >> 13) % 8;
    std::lock_guard<std::mutex> hold(locks[random % PLACES]);
    Block &block = places[random % PLACES];
    if (block.start && kind == 7 && block.kind < 5) {
      resize(block, bytes);
      continue;
    }
    drop(block);
    void *start = nullptr;
    switch (kind) {
      case 1:
        start = std::calloc(bytes, 1);
        for (size_t at = 0; at < bytes; at++) check(!static_cast<char *>(start)[at], "a zero of calloc");
        break;
      case 2: check(!posix_memalign(&start, alignment, bytes), "posix_memalign"); break;
      case 3: start = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment); break;
      case 4: start = memalign(alignment, bytes); break;
      case 5: start = new unsigned char[bytes]; break;
      case 6: start = ::operator new(bytes, std::align_val_t(64)); break;
      default: start = std::malloc(bytes);
    }
    check(kind < 2 || kind > 4 || reinterpret_cast<std::uintptr_t>(start) % alignment == 0, "alignment");
    block = {static_cast<unsigned char *>(start), bytes, static_cast<unsigned char>(random | 1), kind == 7 ? 0 : kind};
    std::memset(start, block.mark, bytes);
  }
}

static unsigned char *parents;

// The child's own blocks, and one that its parent had; the locks may be held by threads that are no more.
static void child(unsigned seed) {
  for (int at = 0; at < 5000; at++) check(parents[at] == 9, "the parent's block");
  for (unsigned round = 0; round < 200; round++) {
    size_t bytes = 1 + (seed * 7919 + round * 104729) % 60000;
    auto start = static_cast<unsigned char *>(std::calloc(bytes, 1));
    check(!start[bytes - 1], "a zero of calloc");
    std::memset(start, round, bytes);
    start = static_cast<unsigned char *>(std::realloc(start, bytes * 2));
    check(start[bytes - 1] == static_cast<unsigned char>(round), "a byte after realloc");
    std::free(start);
  }
  parents[7] = 1;
  parents = static_cast<unsigned char *>(std::realloc(parents, 100000));
  check(parents[7] == 1 && parents[4999] == 9, "the parent's block after realloc");
  std::free(parents);
}

int main(int count, char **words) {
  int rounds = count > 1 ? std::atoi(words[1]) : 20000, forks = count > 2 ? std::atoi(words[2]) : 0;
  parents = static_cast<unsigned char *>(std::malloc(5000));
  std::memset(parents, 9, 5000);
  std::vector<std::thread> threads;
  for (int number = 0; number < 6; number++) threads.emplace_back(work, number * 77777 + 5, rounds);
  for (int number = 0; number < forks; number++) {
    pid_t process = fork();
    if (process == 0) {
      child(number);
      _exit(bad);
    }
    int status = 0;
    waitpid(process, &status, 0);
    check(status == 0, "a child");
  }
  for (auto &thread : threads) thread.join();
  for (auto &block : places) drop(block);
  std::puts(bad ? "bad" : "good");
  return bad;
}
