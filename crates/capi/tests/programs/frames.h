/* The frames of memory, as the kernel shows them to root: the test programs' own word on colors. */
#ifndef FRAMES_H
#define FRAMES_H
#include "check.h"
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

/* With DOMICILE_COLORS=force:12:4:65536 a color is the lowest four bits of the frame's number. */
enum { PAGE = 4096, COLORS = 16, KB_OF_COLOR = 64 };

/* The color of the frame behind an address; -1 where there is none, or the kernel does not say. */
static inline int color_of(const volatile void *address)
{
    uint64_t entry = 0;
    int file = open("/proc/self/pagemap", O_RDONLY);
    CHECK(file >= 0);
    CHECK(pread(file, &entry, sizeof entry, (off_t)((uintptr_t)address / PAGE * sizeof entry)) == sizeof entry);
    close(file);
    if (!(entry >> 63))
        return -1;
    entry &= (UINT64_C(1) << 55) - 1;
    return entry ? (int)(entry % COLORS) : -1;
}

/* Whether the kernel shows frames to this process. */
static inline int frames_are_shown(void)
{
    /* Of the caller's stack: several threads may ask at once. */
    volatile char touched = 1;
    return color_of(&touched) >= 0;
}
#endif
