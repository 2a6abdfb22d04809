/* One process per rank, as with MPI: each opens an application of its own, on one processor, and works on
 * its part of what it got from before the fork. Parts are joined through a pipe. */
#define _GNU_SOURCE
#include "frames.h"
#include <domicile/domicile.h>
#include <domicile/ulcc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { RANKS = 4, WORDS = 1 << 15 };

static uint64_t work(int rank, uint64_t *part)
{
    CHECK(ULCC_Init(1) == 0);
    /* With the memory manager, what other ranks have by now is not available any more. */
    CHECK(ULCC_Available_Space_App() >= COLORS * KB_OF_COLOR / RANKS);
    ULCC_Slot slot = ULCC_Cache_Slot(COLORS * KB_OF_COLOR / RANKS, private);
    ULCC_Data set = ULCC_Data_Set(ULCC_Thread_Group(NULL, rank));
    CHECK(ULCC_More_Data(set, part, part + WORDS) == 0);
    /* What was written before a fork is shared with the other ranks until it is written again. */
    for (int i = 0; i < WORDS; i++)
        part[i] += (uint64_t)rank;
    if (ULCC_Allocate(set, slot) != 0) {
        fprintf(stderr, "%s\n", ULCC_Error());
        exit(1);
    }
    uint32_t colors[COLORS], allowed = 0;
    size_t count = 0;
    CHECK(domicile_data_set_colors(set, colors, COLORS, &count) == DOMICILE_OK && count == COLORS / RANKS);
    for (size_t i = 0; i < count; i++)
        allowed |= UINT32_C(1) << colors[i];
    for (int i = 0; i < WORDS && frames_are_shown(); i += PAGE / 8)
        CHECK(color_of(&part[i]) >= 0 && (allowed >> color_of(&part[i]) & 1));
    uint64_t sum = 0;
    for (int i = 0; i < WORDS; i++)
        sum += part[i];
    CHECK(ULCC_Exit() == 0);
    return sum;
}

int main(void)
{
    int ends[2];
    uint64_t *all = mmap(NULL, sizeof *all * RANKS * WORDS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t sum = 0, wanted = 0, got = 0;
    CHECK(all != MAP_FAILED && pipe(ends) == 0);
    for (int i = 0; i < RANKS * WORDS; i++) {
        all[i] = (uint64_t)i;
        wanted += (uint64_t)i + (uint64_t)(i / WORDS);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            sum = work(rank, all + rank * WORDS);
            CHECK(write(ends[1], &sum, sizeof sum) == sizeof sum);
            exit(0);
        }
    }
    for (int rank = 0; rank < RANKS; rank++) {
        int status = 1;
        CHECK(wait(&status) > 0 && status == 0);
        CHECK(read(ends[0], &sum, sizeof sum) == sizeof sum);
        got += sum;
    }
    CHECK(got == wanted);
    puts("done");
    return 0;
}
