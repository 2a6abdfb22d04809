/* The paper's calls beyond its example: sizes changed with threads pending, forks by running threads,
 * what is left undone, and (with an argument) what ends the program. */
#include "check.h"
#include <domicile/domicile.h>
#include <domicile/th.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

static int ran[64];
static int count;

static void note(void *number, void *unused)
{
    (void)unused;
    ran[count++] = (int)(intptr_t)number;
}

static const void *at(uintptr_t address) { return (const void *)address; }

static void *number(intptr_t value) { return (void *)value; }

static void runs(int keep, int threads)
{
    domicile_order_report report = {.size = sizeof report};
    count = 0;
    th_run(keep);
    CHECK(count == threads);
    CHECK(domicile_th_report(&report) == DOMICILE_OK && report.threads == (uint64_t)threads);
}

static void sizes_that_change(void)
{
    th_init(100, 16);
    th_fork(note, number(1), 0, at(1000), 0, 0);
    th_fork(note, number(2), 0, at(2000), 0, 0);
    th_fork(note, number(3), 0, at(1050), 0, 0);
    /* What is pending keeps its blocks and runs first. */
    th_init(10000, 0);
    th_fork(note, number(4), 0, at(1000), at(20000), 0);
    th_fork(note, number(5), 0, at(1000), at(30000), 0);
    th_fork(note, number(6), 0, at(9000), at(20000), 0);
    for (int keep = 1; keep >= 0; keep--) {
        runs(keep, 6);
        CHECK(ran[0] == 1 && ran[1] == 3 && ran[2] == 2);
        CHECK(ran[3] == 4 && ran[4] == 6 && ran[5] == 5);
    }
    runs(0, 0);
    CHECK(domicile_th_error() == DOMICILE_OK);
}

static void three_dimensions(void)
{
    th_init(10, 0);
    for (intptr_t i = 0; i < 16; i++)
        th_fork(note, number(i), 0, at(i % 2 * 10), at(i / 2 % 2 * 10), at(i / 4 % 2 * 10));
    runs(0, 16);
    for (int i = 0; i < 16; i++)
        CHECK(ran[i] == i / 2 + i % 2 * 8);
}

static void fork_two(void *depth_, void *unused)
{
    intptr_t depth = (intptr_t)depth_;
    __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    if (depth < 5)
        for (int i = 0; i < 2; i++)
            th_fork(fork_two, number(depth + 1), unused, at((uintptr_t)depth * 10), 0, 0);
}

static void too_late(void *unused, void *also)
{
    domicile_order_attributes attributes = {.size = sizeof attributes};
    (void)unused, (void)also;
    th_run(0);
    CHECK(domicile_th_error() == DOMICILE_RUNNING && domicile_th_error() == DOMICILE_OK);
    th_init(1, 1);
    CHECK(domicile_th_error() == DOMICILE_RUNNING);
    CHECK(domicile_th_configure(&attributes) == DOMICILE_RUNNING);
    count++;
}

static void running_threads(void)
{
    th_fork(fork_two, number(0), 0, at(0), 0, 0);
    runs(1, 63);
    runs(0, 63);
    th_fork(too_late, 0, 0, at(0), 0, 0);
    runs(0, 1);
}

static void workers_and_tours(void)
{
    domicile_order_attributes attributes = {.size = sizeof attributes, .workers = 3};
    attributes.block[0] = attributes.block[1] = attributes.block[2] = 10;
    CHECK(domicile_th_configure(&attributes) == DOMICILE_OK);
    th_fork(fork_two, number(0), 0, at(0), 0, 0);
    runs(0, 63);
    attributes.workers = 1;
    attributes.tour = DOMICILE_TOUR_NEAREST;
    CHECK(domicile_th_configure(&attributes) == DOMICILE_OK);
    th_fork(note, number(0), 0, at(0), 0, 0);
    th_fork(note, number(2), 0, at(20), 0, 0);
    th_fork(note, number(1), 0, at(10), 0, 0);
    runs(0, 3);
    CHECK(ran[0] == 0 && ran[1] == 1 && ran[2] == 2);
    attributes.hints = 2;
    CHECK(domicile_th_configure(&attributes) == DOMICILE_INVALID);
    CHECK(domicile_th_report(NULL) == DOMICILE_NULL);
}

static void *stranger(void *unused)
{
    th_fork(note, unused, 0, at(0), 0, 0);
    return NULL;
}

static void meet_stranger(void *unused, void *also)
{
    pthread_t thread;
    (void)also;
    pthread_create(&thread, NULL, stranger, unused);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "no-function"))
        th_fork(NULL, 0, 0, 0, 0, 0);
    if (argc > 1 && !strcmp(argv[1], "stranger")) {
        th_init(64, 0);
        th_fork(meet_stranger, 0, 0, at(0), 0, 0);
        th_run(0);
    }
    if (argc > 1 && !strcmp(argv[1], "memory")) {
        th_init(64, 0);
        for (;;)
            th_fork(note, 0, 0, at(0), 0, 0);
    }
    if (argc > 1)
        return 3;
    runs(0, 0);
    sizes_that_change();
    three_dimensions();
    running_threads();
    workers_and_tours();
    puts("done");
    return 0;
}
