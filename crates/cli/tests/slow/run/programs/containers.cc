// Containers of C++, whose memory comes through several functions of its library.
#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <vector>

#include "colors.h"

static std::vector<double> grown(int count) {
  std::vector<double> all;
  for (int i = 0; i < count; i++) all.push_back(i % 17);
  return all;
}

struct alignas(128) Line {
  double values[16];
};

static Line *lines(int count) { return new Line[count]{}; }

int main(int count, char **words) {
  if (count > 1) colors_file = fopen(words[1], "w");
  std::vector<double> all = grown(100000);
  std::unique_ptr<double[]> plain(new double[50000]);
  std::iota(plain.get(), plain.get() + 50000, 0.0);
  std::map<int, std::string> names;
  for (int i = 0; i < 5000; i++) names[i * 7 % 5003] = std::string(i % 90, 'x');
  Line *wide = lines(1000);
  for (int i = 0; i < 1000; i++) wide[i].values[i % 16] = i;
  double sum = std::accumulate(all.begin(), all.end(), 0.0) + std::accumulate(plain.get(), plain.get() + 50000, 0.0);
  for (auto &entry : names) sum += entry.first * entry.second.size();
  for (int i = 0; i < 1000; i++) sum += wide[i].values[i % 16];
  tell_colors("grown", all.data(), all.size() * sizeof(double));
  tell_colors("lines", wide, 1000 * sizeof(Line));
  std::printf("%.1f %d\n", sum, int(reinterpret_cast<std::uintptr_t>(wide) % 128));
  delete[] wide;
  try {
    std::vector<double> huge(std::size_t(1) << 59);
    std::puts("there is no such memory");
  } catch (const std::bad_alloc &) {
    std::puts("refused");
  }
}
