// What oneTBB takes for a million null tasks that are all made before the first one runs, on one
// thread: made by task_group::defer, run by task_group::run. Prints nanoseconds a task in processor time.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_group.h>

static const std::size_t tasks = 1u << 20;

static volatile std::size_t last;

static double cpu_ns() {
   timespec time;
   clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
   return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int count, char **words) {
   const int rounds = count > 1 ? std::atoi(words[1]) : 5;
   oneapi::tbb::global_control one(oneapi::tbb::global_control::max_allowed_parallelism, 1);
   oneapi::tbb::task_group group;
   std::vector<oneapi::tbb::task_handle> pending;
   pending.reserve(tasks);
   for (int round = 0; round <= rounds; ++round) {
      const double begin = cpu_ns();
      for (std::size_t i = 0; i < tasks; ++i)
         pending.push_back(group.defer([i] { last = i; }));
      for (auto &task : pending)
         group.run(std::move(task));
      group.wait();
      pending.clear();
      // The first round is cold.
      std::printf("%s %.2f\n", round ? "warm" : "cold", (cpu_ns() - begin) / tasks);
   }
   return 0;
}
