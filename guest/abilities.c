// What the kernel at hand has of what live homes use: each is tried, and a line says what came of it.
// guest/abilities runs it in a guest. Numbers are the kernel's: Debian 12's headers are older than what is asked here.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { PAGE = 4096 };

static void say(const char *what, const char *outcome) { printf("%-44s %s\n", what, outcome); }
static const char *why(void) { return strerror(errno); }

static char *map(size_t pages) {
  char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(at, pages * PAGE, MADV_NOHUGEPAGE);
  return at;
}

static void moves(void) {
  char *page = map(1);
  *page = 42;
  for (int node = 0; node < 64; node++) {
    char path[64];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d", node);
    if (access(path, F_OK)) continue;
    int status = -1, there = -1;
    void *pages[1] = {page};
    long moved = syscall(SYS_move_pages, 0, 1UL, pages, &node, &status, 2 /* MPOL_MF_MOVE */);
    syscall(SYS_move_pages, 0, 1UL, pages, NULL, &there, 0);
    if (moved || there != node || *page != 42) {
      printf("%-44s to node %d: %s, status %d, page on %d\n", "move_pages", node, moved < 0 ? why() : "no error", status, there);
      return;
    }
  }
  say("move_pages", "works, to each node");
}

struct uffdio_move_args { uint64_t dst, src, len, mode; int64_t moved; };
#define MOVE _IOWR(UFFDIO, 0x05, struct uffdio_move_args)

static void userfaults(void) {
  int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return say("userfaultfd", why());
  struct uffdio_api api = {.api = UFFD_API};
  if (ioctl(fd, UFFDIO_API, &api)) return say("userfaultfd", why());
  static const struct { const char *name; int bit; } features[] = {
      {"userfaultfd write protection", 0}, {"userfaultfd SIGBUS", 7},       {"userfaultfd THREAD_ID", 8},
      {"userfaultfd WP_UNPOPULATED", 13},  {"userfaultfd WP_ASYNC", 15},    {"userfaultfd MOVE (feature)", 16},
  };
  for (unsigned at = 0; at < sizeof features / sizeof *features; at++)
    say(features[at].name, api.features >> features[at].bit & 1 ? "yes" : "no");
  char *from = map(1), *to = map(1);
  *from = 42;
  struct uffdio_register range = {.range = {(uint64_t)to, PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
  if (ioctl(fd, UFFDIO_REGISTER, &range)) return say("UFFDIO_MOVE", why());
  struct uffdio_move_args move = {(uint64_t)to, (uint64_t)from, PAGE, 0, 0};
  if (ioctl(fd, MOVE, &move)) return say("UFFDIO_MOVE", why());
  say("UFFDIO_MOVE", move.moved == PAGE && *to == 42 ? "works" : "moved nothing");
  close(fd);
}

static uint64_t entry(int pagemap, char *page) {
  uint64_t value = 0;
  if (pread(pagemap, &value, 8, (uintptr_t)page / PAGE * 8) != 8) return 0;
  return value;
}

static void dirty(void) {
  char *page = map(1);
  *page = 1;
  int clear = open("/proc/self/clear_refs", O_WRONLY), pagemap = open("/proc/self/pagemap", O_RDONLY);
  if (clear < 0 || pagemap < 0 || write(clear, "4", 1) != 1) return say("soft-dirty bits", why());
  int before = entry(pagemap, page) >> 55 & 1;
  *page = 2;
  int after = entry(pagemap, page) >> 55 & 1;
  say("soft-dirty bits", !before && after ? "work" : "do not change");

  struct { uint64_t size, flags, start, end, walk_end, vec, vec_len, max, inverted, mask, any_of, returned; } scan = {0};
  struct { uint64_t start, end, categories; } region = {0};
  scan.size = sizeof scan;
  scan.start = (uintptr_t)page;
  scan.end = scan.start + PAGE;
  scan.vec = (uintptr_t)&region;
  scan.vec_len = 1;
  scan.mask = scan.returned = 1 << 3; // PAGE_IS_PRESENT
  long found = ioctl(pagemap, _IOC(_IOC_READ | _IOC_WRITE, 'f', 16, sizeof scan), &scan);
  say("PAGEMAP_SCAN", found < 0 ? why() : found == 1 && region.start == (uintptr_t)page ? "works" : "finds nothing");
}

static void content(const char *what, const char *path) {
  char text[200];
  int fd = open(path, O_RDONLY);
  ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (got < 0) return say(what, fd < 0 ? "no" : why());
  text[got] = 0;
  text[strcspn(text, "\n")] = 0;
  say(what, *text ? text : "yes");
}

static void into(const char *path, const char *text) {
  int fd = open(path, O_WRONLY);
  if (fd >= 0 && write(fd, text, strlen(text)) < 0) { /* What was written is read below. */ }
  if (fd >= 0) close(fd);
}

#define ADMIN "/sys/kernel/mm/damon/admin/kdamonds"
static void damon(void) {
  if (access("/sys/kernel/mm/damon/admin", F_OK)) return say("DAMON (sysfs)", "no");
  say("DAMON (sysfs)", "yes");
  into(ADMIN "/nr_kdamonds", "1");
  into(ADMIN "/0/contexts/nr_contexts", "1");
  char operations[100] = "";
  int fd = open(ADMIN "/0/contexts/0/avail_operations", O_RDONLY);
  ssize_t got = fd < 0 ? 0 : read(fd, operations, sizeof operations - 1);
  for (ssize_t at = 0; at < got; at++) if (operations[at] == '\n') operations[at] = ' ';
  say("DAMON operations", got > 0 ? operations : "no");
  into(ADMIN "/nr_kdamonds", "0");
}

static void counters(void) {
  struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE, .size = sizeof attr, .config = PERF_COUNT_HW_CACHE_MISSES};
  int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
  say("perf: hardware cache misses", fd < 0 ? why() : "yes");
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_PAGE_FAULTS;
  fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
  say("perf: software page faults", fd < 0 ? why() : "yes");
}

int main(void) {
  struct utsname name;
  uname(&name);
  say("kernel", name.release);
  content("nodes online", "/sys/devices/system/node/online");
  content("nodes with cpus", "/sys/devices/system/node/has_cpu");
  moves();
  userfaults();
  dirty();
  damon();
  say("idle page tracking", access("/sys/kernel/mm/page_idle/bitmap", F_OK) ? "no" : "yes");
  content("NUMA balancing (sysctl)", "/proc/sys/kernel/numa_balancing");
  content("NUMA balancing scan delay (debugfs), ms", "/sys/kernel/debug/sched/numa_balancing/scan_delay_ms");
  content("cgroup controllers", "/sys/fs/cgroup/cgroup.controllers");
  say("tracefs", access("/sys/kernel/tracing/events/migrate", F_OK) ? "no" : "yes");
  content("transparent huge pages", "/sys/kernel/mm/transparent_hugepage/enabled");
  content("demotion to slower tiers", "/sys/kernel/mm/numa/demotion_enabled");
  content("memory tiers: the first", "/sys/devices/virtual/memory_tiering/memory_tier4/nodelist");
  int key = syscall(SYS_pkey_alloc, 0, 0);
  say("protection keys", key < 0 ? why() : "yes");
  counters();
  content("seconds from power-on to here", "/proc/uptime");
  return 0;
}
