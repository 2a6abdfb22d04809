/* What a program says of its parallel loops: laid out as the library has it, and harmless whatever is said. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <domicile/summary.h>

#include "check.h"

static double grid[64][64];

int main(void)
{
    CHECK(sizeof(domicile_inner) == 16);
    CHECK(sizeof(domicile_summary) == 112);
    CHECK(offsetof(domicile_summary, name) == 0);
    CHECK(offsetof(domicile_summary, start) == 8);
    CHECK(offsetof(domicile_summary, bytes) == 16);
    CHECK(offsetof(domicile_summary, offset) == 24);
    CHECK(offsetof(domicile_summary, unit) == 32);
    CHECK(offsetof(domicile_summary, span) == 40);
    CHECK(offsetof(domicile_summary, inner) == 48);
    CHECK(offsetof(domicile_summary, distance) == 96);
    CHECK(offsetof(domicile_summary, communication) == 104);
    CHECK(offsetof(domicile_summary, access) == 108);
    CHECK(sizeof(domicile_loop) == 56);
    CHECK(offsetof(domicile_loop, count) == 4);
    CHECK(offsetof(domicile_loop, place) == 8);
    CHECK(offsetof(domicile_loop, iterations) == 16);
    CHECK(offsetof(domicile_loop, chunk) == 24);
    CHECK(offsetof(domicile_loop, schedule) == 32);
    CHECK(offsetof(domicile_loop, reverse) == 36);
    CHECK(offsetof(domicile_loop, threads) == 40);
    CHECK(offsetof(domicile_loop, reserved) == 44);
    CHECK(offsetof(domicile_loop, summaries) == 48);

    domicile_summary rows = {"grid", grid, sizeof grid, 0, 512, 512, {{0, 0}, {0, 0}, {0, 0}}, 512, DOMICILE_SHIFT,
                             DOMICILE_READS | DOMICILE_WRITES};
    domicile_loop sweep = {DOMICILE_SUMMARY_VERSION, 1, "sweep", 64, 0, DOMICILE_EVEN, 0, 0, 0, NULL};
    sweep.summaries = &rows;
    for (int turn = 0; turn < 1000; turn++)
        domicile_parallel_loop(&sweep);
    domicile_loop wrong = sweep;
    domicile_parallel_loop(NULL);
    wrong.version = 0;
    domicile_parallel_loop(&wrong);
    memset(&wrong, 0xff, sizeof wrong);
    domicile_parallel_loop(&wrong);
    wrong = sweep;
    wrong.count = UINT32_MAX;
    domicile_parallel_loop(&wrong);
    wrong = sweep;
    wrong.summaries = NULL;
    domicile_parallel_loop(&wrong);
    rows.name = NULL;
    rows.start = NULL;
    domicile_parallel_loop(&sweep);
    domicile_phase("steady");
    domicile_phase("");
    domicile_phase(NULL);
    puts("done");
    return 0;
}
