// known PAGES: two processes, each pinned to a cpu, walk through memory of their own between two marks of the program's own. How
// often each instruction reads or writes there is known exactly; where their pages lay is printed afterwards, as JSON. capture/qemu/test
// holds the trace to it.
//
// From mark to mark the program is assembly, so that the compiler adds no reference. First touches fault: the kernel takes part.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, LINE = 64 };

// What the two tell each other: ready, go, done, over.
struct flags {
    volatile uint32_t ready, go, done, over;
};

void known_first(void *memory, uint64_t lines, struct flags *flags);
void known_second(void *memory, uint64_t lines, struct flags *flags);

// Each line: a byte written, 8 bytes read, 8 bytes read and written, 16 bytes read, 4 bytes exchanged (read and written at once).
#define WALK(name)                                                                                                                         \
    "1:\n" name "_byte: movb $1, 16(%rdi)\n" name "_word: movq (%rdi), %rax\n" name "_add: addq $1, 8(%rdi)\n" name                        \
    "_wide: movdqu 32(%rdi), %xmm0\n" name "_exchange: xchgl %eax, 24(%rdi)\n"                                                             \
    "add $64, %rdi\ndec %rsi\njnz 1b\n"
#define MARK(word) ".byte 0x0f, 0x1f, 0x84, 0x00\n.long " #word "\n"
#define NAMES(name)                                                                                                                        \
    ".globl " name "_byte, " name "_word, " name "_add, " name "_wide, " name "_exchange\n"

__asm__(".text\n" NAMES("first") NAMES("second") ".globl known_first, first_go, first_wait\n"
        "known_first:\n"
        "2: pause\ncmpl $0, (%rdx)\nje 2b\n"
        MARK(0x444f4d01)
        "first_go: movl $1, 4(%rdx)\n"
        WALK("first")
        "3: pause\nfirst_wait: cmpl $0, 8(%rdx)\nje 3b\n"
        MARK(0x444f4d02)
        "movl $1, 12(%rdx)\nret\n"
        ".globl known_second, second_wait, second_done, second_over\n"
        "known_second:\n"
        "movl $1, (%rdx)\n"
        "2: pause\nsecond_wait: cmpl $0, 4(%rdx)\nje 2b\n"
        WALK("second")
        "second_done: movl $1, 8(%rdx)\n"
        "3: pause\nsecond_over: cmpl $0, 12(%rdx)\nje 3b\n"
        "ret\n");

#define EACH(of)                                                                                                                           \
    of(first_byte) of(first_word) of(first_add) of(first_wide) of(first_exchange) of(first_go) of(first_wait) of(second_byte)              \
    of(second_word) of(second_add) of(second_wide) of(second_exchange) of(second_wait) of(second_done) of(second_over)
#define DECLARED(name) extern const char name[];
EACH(DECLARED)

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void pin(int cpu) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus) != 0)
        fail("known: sched_setaffinity");
}

// The frames of the pages, as the kernel tells root.
static void print_frames(const char *name, const char *memory, size_t pages) {
    int map = open("/proc/self/pagemap", O_RDONLY);
    printf("{\"frames\": \"%s\", \"of\": [", name);
    for (size_t page = 0; page < pages; page++) {
        uint64_t entry = 0;
        if (pread(map, &entry, sizeof entry, ((uintptr_t)memory / PAGE + page) * sizeof entry) != sizeof entry)
            fail("known: /proc/self/pagemap");
        printf("%s%llu", page ? ", " : "", (unsigned long long)(entry & ((1ULL << 55) - 1)));
    }
    printf("]}\n");
    fflush(stdout);
}

int main(int count, char **words) {
    size_t pages = count > 1 ? strtoul(words[1], NULL, 10) : 0;
    if (pages == 0) {
        fputs("usage: known PAGES\n", stderr);
        return 2;
    }
    int ours = PROT_READ | PROT_WRITE;
    struct flags *flags = mmap(NULL, PAGE, ours, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *memory = mmap(NULL, pages * PAGE, ours, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (flags == MAP_FAILED || memory == MAP_FAILED)
        fail("known: mmap");
    madvise(memory, pages * PAGE, MADV_NOHUGEPAGE);
    uint64_t lines = pages * PAGE / LINE;
    pid_t child = fork();
    if (child == 0) {
        pin(1);
        known_second(memory, lines, flags);
        print_frames("second", memory, pages);
        return 0;
    }
    if (child < 0)
        fail("known: fork");
    pin(0);
    known_first(memory, lines, flags);
    int status = 1;
    waitpid(child, &status, 0);
    // Not before: whoever hands on what is printed would run between the marks.
#define PRINTED(name) printf("{\"pc\": \"%#lx\", \"name\": \"" #name "\"}\n", (unsigned long)name);
    EACH(PRINTED)
    print_frames("first", memory, pages);
    return status != 0;
}
