/* OpenMP: its thread numbers are thread ids, and its clauses keep their names beside the paper's. */
#define _GNU_SOURCE
#include "frames.h"
#include <domicile/domicile.h>
#include <domicile/ulcc.h>
#include <omp.h>
#include <stdlib.h>

enum { THREADS = 2, WORDS = 1 << 16 };

int main(void)
{
    long space, failed = 0;
    uint64_t sum = 0;
    uint64_t *array[THREADS];
    int i;
    if (ULCC_Init(THREADS) != 0) {
        fprintf(stderr, "%s\n", ULCC_Error());
        return 1;
    }
    space = ULCC_Available_Space_App() / THREADS;
    if (space > COLORS * KB_OF_COLOR / THREADS)
        space = COLORS * KB_OF_COLOR / THREADS;
#pragma omp parallel num_threads(THREADS) private(i) shared(array, space) reduction(+ : sum, failed)
    {
        int me = omp_get_thread_num();
        array[me] = malloc(WORDS * sizeof **array);
        ULCC_Data set = ULCC_Data_Set(ULCC_Thread_Group(NULL, me));
        ULCC_More_Data(set, array[me], array[me] + WORDS);
        failed += ULCC_Allocate(set, ULCC_Cache_Slot(space, private)) != 0;
        if (failed)
            fprintf(stderr, "%s\n", ULCC_Error());
        for (i = 0; i < WORDS; i++)
            array[me][i] = (uint64_t)i;
        domicile_census census = {.size = sizeof census};
        failed += domicile_data_set_census(set, &census) != DOMICILE_OK || census.other != 0 || census.absent != 0;
        for (i = 0; i < WORDS; i++)
            sum += array[me][i];
    }
    CHECK(failed == 0 && sum == (uint64_t)THREADS * WORDS / 2 * (WORDS - 1));
    CHECK(ULCC_Exit() == 0);
    for (i = 0; i < THREADS; i++)
        free(array[i]);
    puts("done");
    return 0;
}
