/* Describes its parallel loops by hand, in every way that a program can; prints sums, and the colors of its pages where the
   first argument says to write them. */
#define _GNU_SOURCE
#include <domicile/summary.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 300, COLUMNS = 513, THREADS = 4 };

static double zeros[ROWS][COLUMNS];
static double filled[ROWS][COLUMNS] = {{1.5, 2.5}, {3.5}};
static const double fixed[4096] = {1, 2, 3};

/* Rows are dealt to threads; the arrays are used together. */
static void rows(const char *place, int count, void *const *arrays, uint64_t bytes) {
  domicile_summary summaries[8];
  domicile_loop loop = {DOMICILE_SUMMARY_VERSION, (uint32_t)count, place, ROWS, 0, DOMICILE_EVEN, 0, THREADS, 0, summaries};
  for (int at = 0; at < count; at++) {
    summaries[at] = (domicile_summary){.name = "a", .start = arrays[at], .bytes = bytes, .unit = COLUMNS * 8,
                                       .span = COLUMNS * 8, .access = DOMICILE_READS | DOMICILE_WRITES};
    if (at > 0) {
      summaries[at].communication = DOMICILE_SHIFT;
      summaries[at].distance = -COLUMNS * 8;
    }
  }
  domicile_parallel_loop(&loop);
}

__attribute__((constructor)) static void constants(void) {
  void *both[] = {zeros, filled};
  rows("before main", 2, both, sizeof zeros);
  domicile_summary summary = {.name = "fixed", .start = fixed, .bytes = sizeof fixed, .unit = 8, .span = 8, .access = DOMICILE_READS};
  domicile_loop loop = {DOMICILE_SUMMARY_VERSION, 1, "constants", 4096, 0, DOMICILE_EVEN, 0, THREADS, 0, &summary};
  domicile_parallel_loop(&loop);
}

static double sum(const double *array, size_t count) {
  double sum = 0;
  for (size_t at = 0; at < count; at++) sum += array[at] * (double)(at % 7 + 1);
  return sum;
}

static void work(double (*from)[COLUMNS], double (*to)[COLUMNS]) {
  for (int row = 0; row < ROWS; row++)
    for (int column = 0; column < COLUMNS; column++) to[row][column] = 0.5 * from[row][column] + row + column;
}

static FILE *shown;

/* Where an array is, and the color of each of its pages; -1 where it is not known. */
static void show(const char *name, const void *start, size_t bytes) {
  if (!shown) return;
  int map = open("/proc/self/pagemap", O_RDONLY);
  uintptr_t from = (uintptr_t)start / 4096, to = ((uintptr_t)start + bytes + 4095) / 4096;
  fprintf(shown, "%s %ju:", name, (uintmax_t)(uintptr_t)start);
  for (uintptr_t page = from; page < to; page++) {
    uint64_t entry = 0;
    int known = pread(map, &entry, 8, (off_t)(page * 8)) == 8 && entry >> 63 && (entry & ((1ull << 55) - 1));
    fprintf(shown, " %d", known ? (int)(entry & 15) : -1);
  }
  fprintf(shown, "\n");
  fflush(shown);
  close(map);
}

static void steps(double (*one)[COLUMNS], double (*other)[COLUMNS], int count) {
  for (int step = 0; step < count; step++) {
    void *both[] = {one, other};
    rows("step", 2, both, sizeof zeros);
    work(one, other);
    void *swap = one;
    one = other;
    other = swap;
  }
  printf("steps %.1f\n", sum(one[0], ROWS * COLUMNS));
}

static atomic_int over, begun;

static void *touch(void *arrays) {
  double (*both)[ROWS][COLUMNS] = arrays;
  unsigned long turns = 0;
  while (!atomic_load(&over)) {
    for (int row = 0; row < ROWS; row++) both[0][row][7] = both[1][row][7] + 1;
    if (!turns++) atomic_fetch_add(&begun, 1);
  }
  return (void *)(uintptr_t)(turns > 0);
}

static void wrong(void) {
  domicile_summary summary = {.name = "w", .start = zeros, .bytes = sizeof zeros, .unit = 8, .span = 8, .access = DOMICILE_READS};
  domicile_loop good = {DOMICILE_SUMMARY_VERSION, 1, "wrong", 100, 0, DOMICILE_EVEN, 0, THREADS, 0, &summary}, bad;
  domicile_parallel_loop(NULL);
  bad = good, bad.version = 77, domicile_parallel_loop(&bad);
  bad = good, bad.count = UINT32_MAX, domicile_parallel_loop(&bad);
  bad = good, bad.count = 0, domicile_parallel_loop(&bad);
  bad = good, bad.summaries = NULL, domicile_parallel_loop(&bad);
  bad = good, bad.threads = UINT32_MAX, domicile_parallel_loop(&bad);
  bad = good, bad.schedule = 9, domicile_parallel_loop(&bad);
  domicile_summary astray[] = {summary, summary, summary, summary};
  astray[0].start = NULL;
  astray[1].bytes = UINT64_MAX;
  astray[2].span = 0;
  bad = good, bad.count = 4, bad.summaries = astray, domicile_parallel_loop(&bad);
  summary.start = (void *)(uintptr_t)0x123456000, domicile_parallel_loop(&good);
  summary.start = zeros, summary.bytes = 1ull << 45, domicile_parallel_loop(&good);
  summary.bytes = 0, summary.unit = INT64_MIN, good.iterations = UINT64_MAX, domicile_parallel_loop(&good);
  domicile_phase(NULL);
  domicile_phase("steady");
}

int main(int count, char **arguments) {
  const char *what = count > 1 ? arguments[1] : "static";
  if (count > 2) shown = fopen(arguments[2], "w");
  if (!strcmp(what, "exit")) return 7;
  if (!strcmp(what, "gone")) _exit(8);
  if (!strcmp(what, "static")) {
    work(filled, zeros);
    printf("zeros %.1f fixed %.1f\n", sum(zeros[0], ROWS * COLUMNS), sum(fixed, 4096));
    show("zeros", zeros, sizeof zeros);
    show("filled", filled, sizeof filled);
    show("fixed", fixed, sizeof fixed);
  } else if (!strcmp(what, "alone")) {
    double (*one)[COLUMNS] = malloc(sizeof zeros), (*other)[COLUMNS] = calloc(ROWS, sizeof *other);
    void *both[] = {one, other};
    memset(one, 0, sizeof zeros);
    rows("alone", 2, both, sizeof zeros);
    work(one, other);
    printf("alone %.1f\n", sum(other[0], ROWS * COLUMNS));
    show("one", one, sizeof zeros);
    show("other", other, sizeof zeros);
  } else if (!strcmp(what, "heap")) {
    double (*one)[COLUMNS] = malloc(sizeof zeros), (*other)[COLUMNS] = calloc(ROWS, sizeof *other);
    for (int row = 0; row < ROWS; row++)
      for (int column = 0; column < COLUMNS; column++) one[row][column] = row * column;
    steps(one, other, 40);
    show("one", one, sizeof zeros);
    show("other", other, sizeof zeros);
    free(one);
    free(other);
  } else if (!strcmp(what, "fork")) {
    pid_t child = fork();
    if (child == 0) {
      void *both[] = {zeros, filled};
      rows("child", 2, both, sizeof zeros);
      work(filled, zeros);
      exit(zeros[3][4] == 7);
    }
    int status;
    waitpid(child, &status, 0);
    printf("child %d\n", WEXITSTATUS(status));
    double (*one)[COLUMNS] = calloc(ROWS, sizeof *one), (*other)[COLUMNS] = calloc(ROWS, sizeof *other);
    steps(one, other, 3);
  } else if (!strcmp(what, "threads")) {
    double (*both)[ROWS][COLUMNS] = calloc(2, sizeof *both);
    pthread_t threads[2];
    for (int at = 0; at < 2; at++) pthread_create(&threads[at], NULL, touch, both);
    while (atomic_load(&begun) < 2) usleep(100);
    void *arrays[] = {both[0], both[1]};
    for (int at = 0; at < 20; at++) rows("threads", at % 2 + 1, arrays, sizeof zeros);
    atomic_store(&over, 1);
    int turns = 1;
    for (int at = 0; at < 2; at++) {
      void *result;
      pthread_join(threads[at], &result);
      turns &= (int)(uintptr_t)result;
    }
    printf("turns %d value %d\n", turns, both[0][ROWS - 1][7] == 1 && both[1][0][7] == 0);
    show("first", both[0], sizeof *both);
  } else if (!strcmp(what, "wrong")) {
    wrong();
    printf("alive\n");
  }
  return 0;
}
