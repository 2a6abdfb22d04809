/*
 * Registers for restartable sequences, again and again in another page of data: the kernel writes there from then on whenever the thread
 * goes on, and ends the program if it cannot. The C library's registration ends first.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

enum { REGIONS = 2, PAGES = 64, PAGE = 4096, BYTES = 32, TIMES = 4000 };

static unsigned char *regions[REGIONS];

static unsigned long used(int rounds)
{
    unsigned long sum = 0;
    for (int round = 0; round < rounds; round++) {
        unsigned char *at = regions[round % REGIONS];
        for (int i = 0; i < 2000; i++) {
            size_t page = i % PAGES;
            sum = sum * 31 + (at[page * PAGE + 512 + i % 1024] += 3);
        }
    }
    return sum;
}

int main(void)
{
#ifdef RSEQ_SIG
    for (int i = 0; i < REGIONS; i++) {
        regions[i] = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (regions[i] == MAP_FAILED)
            return 1;
    }
    unsigned long sum = used(80);
    char *library = (char *)__builtin_thread_pointer() + __rseq_offset;
    if (__rseq_size && syscall(SYS_rseq, library, BYTES, RSEQ_FLAG_UNREGISTER, RSEQ_SIG)) {
        puts("not registered");
        return 0;
    }
    for (int i = 0; i < TIMES; i++) {
        void *own = regions[i % REGIONS] + i % PAGES * PAGE;
        if (syscall(SYS_rseq, own, BYTES, 0, RSEQ_SIG))
            return 2;
        sum += used(1);
        if (syscall(SYS_rseq, own, BYTES, RSEQ_FLAG_UNREGISTER, RSEQ_SIG))
            return 3;
        memset(own, 0, BYTES);
    }
    printf("%lu\n", sum + used(20));
#else
    puts("not registered");
#endif
    return 0;
}
