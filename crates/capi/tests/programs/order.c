/* Orders as objects: hints, tours, keep, dependencies, workers, forks by running threads. */
#include "check.h"
#include <domicile/domicile.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

static int ran[4096];
static int count;

/* On one worker: notes its number. */
static void note(void *number, void *unused)
{
    (void)unused;
    ran[count++] = (int)(intptr_t)number;
}

static domicile_order *make(uint32_t hints, uint64_t side, uint32_t tour)
{
    domicile_order_attributes attributes = {.size = sizeof attributes};
    domicile_order *order;
    attributes.hints = hints;
    attributes.tour = tour;
    for (uint32_t i = 0; i < hints; i++)
        attributes.block[i] = side;
    CHECK(domicile_order_create(&attributes, &order) == DOMICILE_OK);
    CHECK(order != NULL);
    return order;
}

static uint64_t fork_at(domicile_order *order, int number, uint64_t x, uint64_t y)
{
    uint64_t hints[2] = {x, y}, thread = 0;
    CHECK(domicile_order_fork(order, note, (void *)(intptr_t)number, NULL, hints, &thread) == DOMICILE_OK);
    return thread;
}

static void run(domicile_order *order, int keep, int threads, int bins)
{
    domicile_order_report report = {.size = sizeof report};
    count = 0;
    CHECK(domicile_order_run(order, keep, &report) == DOMICILE_OK);
    CHECK(report.threads == (uint64_t)threads && count == threads);
    CHECK(report.bins == (uint64_t)bins);
    CHECK(report.workers == 1);
}

static void blocks_and_keep(void)
{
    domicile_order *order = make(2, 10, DOMICILE_TOUR_FIRST_FORK);
    CHECK(domicile_order_block(order, 1) == 10 && domicile_order_block(order, 2) == 0);
    CHECK(strlen(domicile_order_reason(order)) > 0);
    CHECK(domicile_order_reserve(order, 1000, 10) == DOMICILE_OK);
    fork_at(order, 0, 5, 5);
    fork_at(order, 1, 15, 5);
    fork_at(order, 2, 9, 0);
    fork_at(order, 3, 19, 9);
    CHECK(domicile_order_pending(order) == 4);
    run(order, 1, 4, 2);
    CHECK(ran[0] == 0 && ran[1] == 2 && ran[2] == 1 && ran[3] == 3);
    run(order, 0, 4, 2);
    run(order, 0, 0, 0);
    fork_at(order, 7, 1, 1);
    CHECK(domicile_order_clear(order) == DOMICILE_OK && domicile_order_pending(order) == 0);
    run(order, 0, 0, 0);
    CHECK(domicile_order_destroy(order) == DOMICILE_OK);
}

static void tours(void)
{
    /* A line of blocks, forked in an order that jumps; the nearest neighbour walks it. */
    static const int jumps[6] = {0, 3, 1, 5, 2, 4};
    domicile_order *order = make(2, 1, DOMICILE_TOUR_NEAREST);
    for (int i = 0; i < 6; i++)
        fork_at(order, jumps[i], (uint64_t)jumps[i], 0);
    run(order, 0, 6, 6);
    for (int i = 0; i < 6; i++)
        CHECK(ran[i] == i);
    CHECK(domicile_order_destroy(order) == DOMICILE_OK);

    /* Along a Hilbert curve, blocks of a full square follow each other side by side. */
    order = make(2, 1, DOMICILE_TOUR_HILBERT);
    for (int i = 0; i < 64; i++)
        fork_at(order, i, (uint64_t)i % 8, (uint64_t)i / 8);
    run(order, 0, 64, 64);
    for (int i = 1; i < 64; i++)
        CHECK(abs(ran[i] % 8 - ran[i - 1] % 8) + abs(ran[i] / 8 - ran[i - 1] / 8) == 1);
    CHECK(domicile_order_destroy(order) == DOMICILE_OK);
}

static void folding_and_levels(void)
{
    domicile_order_attributes attributes = {.size = sizeof attributes, .hints = 2, .fold = 1};
    domicile_order *order;
    attributes.block[0] = attributes.block[1] = 10;
    CHECK(domicile_order_create(&attributes, &order) == DOMICILE_OK);
    fork_at(order, 0, 5, 25);
    fork_at(order, 1, 5, 5);
    fork_at(order, 2, 25, 5);
    run(order, 0, 3, 2);
    CHECK(ran[0] == 0 && ran[1] == 2 && ran[2] == 1);
    CHECK(domicile_order_destroy(order) == DOMICILE_OK);

    /* Bins of bins: what lies in the same outer block runs together. */
    attributes.fold = 0;
    attributes.levels = 1;
    attributes.outer[0][0] = attributes.outer[0][1] = 100;
    CHECK(domicile_order_create(&attributes, &order) == DOMICILE_OK);
    fork_at(order, 0, 5, 5);
    fork_at(order, 1, 105, 5);
    fork_at(order, 2, 55, 5);
    fork_at(order, 3, 155, 5);
    run(order, 0, 4, 4);
    CHECK(ran[0] == 0 && ran[1] == 2 && ran[2] == 1 && ran[3] == 3);
    CHECK(domicile_order_destroy(order) == DOMICILE_OK);
}

static void eight_hints(void)
{
    domicile_order *order = make(8, 4, DOMICILE_TOUR_FIRST_FORK);
    for (int i = 0; i < 512; i++) {
        uint64_t hints[8] = {0};
        hints[i % 8] = 4;
        CHECK(domicile_order_fork(order, note, (void *)(intptr_t)i, NULL, hints, NULL) == DOMICILE_OK);
    }
    run(order, 0, 512, 8);
    for (int i = 0; i < 512; i++)
        CHECK(ran[i] == i / 64 + i % 64 * 8);
    CHECK(domicile_order_destroy(order) == DOMICILE_OK);
}

static void dependencies(void)
{
    domicile_order *order = make(2, 10, DOMICILE_TOUR_FIRST_FORK);
    uint64_t hints[2] = {1, 1}, after = 0;
    uint64_t first = fork_at(order, 0, 50, 50);
    uint64_t second = fork_at(order, 1, 1, 1);
    CHECK(domicile_order_depend(order, first, second) == DOMICILE_OK);
    CHECK(domicile_order_fork_after(order, note, (void *)2, NULL, hints, &first, 1, &after) == DOMICILE_OK);
    CHECK(domicile_order_depend(order, second, after) == DOMICILE_CYCLE);
    CHECK(strlen(domicile_order_message(order)) > 0);
    count = 0;
    CHECK(domicile_order_run(order, 0, NULL) == DOMICILE_OK);
    CHECK(count == 3 && ran[0] == 1 && ran[1] == 0 && ran[2] == 2);
    CHECK(domicile_order_destroy(order) == DOMICILE_OK);
}

struct tree {
    domicile_order *order;
    int depth;
    int sum;
    uint64_t thread;
};

/* Forks two more until the depth is reached. */
static void grow(void *tree_, void *depth_)
{
    struct tree *tree = tree_;
    intptr_t depth = (intptr_t)depth_;
    uint64_t hints[2] = {(uint64_t)depth, 0};
    __atomic_fetch_add(&tree->sum, 1, __ATOMIC_RELAXED);
    CHECK(domicile_order_worker(tree->order) >= 0);
    if (depth < tree->depth)
        for (int i = 0; i < 2; i++) {
            uint64_t thread = 0;
            CHECK(domicile_order_fork(tree->order, grow, tree, (void *)(depth + 1), hints, &thread) == DOMICILE_OK);
            CHECK(thread == DOMICILE_NO_THREAD);
        }
}

static void forks_by_running_threads(uint32_t workers)
{
    domicile_order_attributes attributes = {.size = sizeof attributes, .workers = workers};
    domicile_order_report report = {.size = sizeof report};
    struct tree tree = {.depth = 9};
    uint64_t hints[2] = {0, 0};
    attributes.block[0] = attributes.block[1] = 1;
    CHECK(domicile_order_create(&attributes, &tree.order) == DOMICILE_OK);
    CHECK(domicile_order_worker(tree.order) == -1);
    for (int keep = 1; keep >= 0; keep--) {
        if (keep)
            CHECK(domicile_order_fork(tree.order, grow, &tree, 0, hints, NULL) == DOMICILE_OK);
        tree.sum = 0;
        CHECK(domicile_order_run(tree.order, keep, &report) == DOMICILE_OK);
        CHECK(tree.sum == 1023 && report.threads == 1023);
    }
    CHECK(domicile_order_pending(tree.order) == 0);
    CHECK(domicile_order_destroy(tree.order) == DOMICILE_OK);
}

static int times[100000];

static void once(void *number, void *unused)
{
    (void)unused;
    __atomic_fetch_add(&times[(intptr_t)number], 1, __ATOMIC_RELAXED);
}

static void every_thread_once(uint64_t at_caches)
{
    domicile_order_attributes attributes = {
        .size = sizeof attributes, .workers = 4, .tour = DOMICILE_TOUR_HILBERT, .at_caches = at_caches};
    domicile_order_report report = {.size = sizeof report};
    domicile_order *order;
    memset(times, 0, sizeof times);
    attributes.block[0] = attributes.block[1] = 16;
    CHECK(domicile_order_create(&attributes, &order) == DOMICILE_OK);
    for (intptr_t i = 0; i < 100000; i++) {
        uint64_t hints[2] = {(uint64_t)(i * 7919 % 1000), (uint64_t)(i * 104729 % 1000)};
        CHECK(domicile_order_fork(order, once, (void *)i, NULL, hints, NULL) == DOMICILE_OK);
    }
    for (int run = 1; run <= 3; run++) {
        CHECK(domicile_order_run(order, run < 3, &report) == DOMICILE_OK);
        CHECK(report.at_caches <= at_caches && report.threads == 100000);
        for (int i = 0; i < 100000; i++)
            CHECK(times[i] == run);
    }
    CHECK(domicile_order_destroy(order) == DOMICILE_OK);
}

/* A thread of one order runs another. */
static void inner_run(void *inner, void *outer)
{
    uint64_t hints[2] = {0, 0};
    CHECK(domicile_order_fork(inner, note, (void *)1, NULL, hints, NULL) == DOMICILE_OK);
    CHECK(domicile_order_run(inner, 0, NULL) == DOMICILE_OK);
    CHECK(domicile_order_fork(outer, note, (void *)2, NULL, hints, NULL) == DOMICILE_OK);
    CHECK(domicile_order_run(outer, 0, NULL) == DOMICILE_RUNNING);
    CHECK(domicile_order_clear(outer) == DOMICILE_RUNNING);
    CHECK(domicile_order_destroy(outer) == DOMICILE_RUNNING);
    CHECK(domicile_order_depend(outer, 0, 1) == DOMICILE_RUNNING);
    CHECK(domicile_order_pending(outer) == 0);
}

static void an_order_within_another(void)
{
    domicile_order *outer = make(2, 10, 0), *inner = make(2, 10, 0);
    uint64_t hints[2] = {0, 0};
    CHECK(domicile_order_fork(outer, inner_run, inner, outer, hints, NULL) == DOMICILE_OK);
    count = 0;
    CHECK(domicile_order_run(outer, 0, NULL) == DOMICILE_OK);
    CHECK(count == 2 && ran[0] == 1 && ran[1] == 2);
    CHECK(domicile_order_destroy(inner) == DOMICILE_OK && domicile_order_destroy(outer) == DOMICILE_OK);
}

/* A thread of the operating system that is no worker cannot fork into a running order. */
static void *stranger(void *order)
{
    uint64_t hints[2] = {0, 0};
    CHECK(domicile_order_worker(order) == -1);
    CHECK(domicile_order_fork(order, note, NULL, NULL, hints, NULL) == DOMICILE_NOT_INSIDE);
    return NULL;
}

static void meet_stranger(void *order, void *unused)
{
    pthread_t thread;
    (void)unused;
    CHECK(pthread_create(&thread, NULL, stranger, order) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void strangers(uint32_t workers)
{
    domicile_order_attributes attributes = {.size = sizeof attributes, .workers = workers, .cache_bytes = 1 << 20};
    domicile_order *order;
    uint64_t hints[2] = {0, 0};
    CHECK(domicile_order_create(&attributes, &order) == DOMICILE_OK);
    CHECK(domicile_order_fork(order, meet_stranger, order, NULL, hints, NULL) == DOMICILE_OK);
    CHECK(domicile_order_run(order, 0, NULL) == DOMICILE_OK);
    CHECK(domicile_order_destroy(order) == DOMICILE_OK);
}

static void the_default_block(void)
{
    domicile_order_attributes attributes = {.size = sizeof attributes, .hints = 4, .cache_bytes = 1 << 20};
    domicile_order *order;
    CHECK(domicile_order_create(&attributes, &order) == DOMICILE_OK);
    CHECK(strstr(domicile_order_reason(order), "cache") != NULL);
    CHECK(domicile_order_block(order, 0) == 1 << 18);
    CHECK(domicile_order_destroy(order) == DOMICILE_OK);
    attributes.tlb_reach_bytes = 1 << 16;
    CHECK(domicile_order_create(&attributes, &order) == DOMICILE_OK);
    CHECK(strstr(domicile_order_reason(order), "TLB") != NULL);
    CHECK(domicile_order_block(order, 3) == 1 << 14);
    CHECK(domicile_order_destroy(order) == DOMICILE_OK);
}

static void misuse(void)
{
    domicile_order_attributes attributes = {.size = sizeof attributes};
    domicile_order_report report = {.size = 0};
    domicile_order *order = (domicile_order *)&attributes;
    uint64_t hints[2] = {0, 0};

    CHECK(domicile_order_create(&attributes, NULL) == DOMICILE_NULL);
    attributes.hints = 9;
    CHECK(domicile_order_create(&attributes, &order) == DOMICILE_INVALID && order == NULL);
    CHECK(strstr(domicile_order_message(NULL), "hints is 9") != NULL);
    attributes.hints = 2;
    attributes.at_caches = 3;
    CHECK(domicile_order_create(&attributes, &order) == DOMICILE_INVALID && order == NULL);
    CHECK(strstr(domicile_order_message(NULL), "at_caches is 3") != NULL);
    attributes.at_caches = 0;
    /* A program that was compiled when there was no at_caches. */
    attributes.size = 304;
    CHECK(domicile_order_create(&attributes, &order) == DOMICILE_OK);
    CHECK(domicile_order_destroy(order) == DOMICILE_OK);
    attributes.size = 3;
    CHECK(domicile_order_create(&attributes, &order) == DOMICILE_INVALID && order == NULL);
    CHECK(strstr(domicile_order_message(NULL), "sizeof(domicile_order_attributes)") != NULL);

    CHECK(domicile_order_fork(NULL, note, NULL, NULL, hints, NULL) == DOMICILE_NULL);
    CHECK(domicile_order_fork_after(NULL, note, NULL, NULL, hints, NULL, 0, NULL) == DOMICILE_NULL);
    CHECK(domicile_order_depend(NULL, 0, 0) == DOMICILE_NULL);
    CHECK(domicile_order_run(NULL, 0, NULL) == DOMICILE_NULL);
    CHECK(domicile_order_clear(NULL) == DOMICILE_NULL && domicile_order_reserve(NULL, 1, 1) == DOMICILE_NULL);
    CHECK(domicile_order_destroy(NULL) == DOMICILE_OK);
    CHECK(domicile_order_pending(NULL) == 0 && domicile_order_worker(NULL) == -1);
    CHECK(domicile_order_block(NULL, 0) == 0 && domicile_order_reason(NULL) != NULL);

    order = make(2, 10, 0);
    CHECK(domicile_order_message(order)[0] == 0);
    CHECK(domicile_order_fork(order, NULL, NULL, NULL, hints, NULL) == DOMICILE_NULL);
    CHECK(strstr(domicile_order_message(order), "f is NULL") != NULL);
    CHECK(domicile_order_fork(order, note, NULL, NULL, NULL, NULL) == DOMICILE_NULL);
    CHECK(domicile_order_fork_after(order, note, NULL, NULL, hints, NULL, 1, NULL) == DOMICILE_NULL);
    CHECK(domicile_order_depend(order, 12345, 54321) != DOMICILE_OK);
    CHECK(domicile_order_reserve(order, SIZE_MAX / 2, 1) != DOMICILE_OK);
    fork_at(order, 0, 0, 0);
    CHECK(domicile_order_run(order, 0, &report) == DOMICILE_INVALID);
    CHECK(domicile_order_pending(order) == 1);
    CHECK(domicile_order_destroy(order) == DOMICILE_OK);

    for (int error = -1; error < 100; error++)
        CHECK(strlen(domicile_error_text(error)) > 0);
    CHECK(strcmp(domicile_error_text(DOMICILE_OUT_OF_MEMORY), "out of memory") == 0);
    CHECK(strcmp(domicile_version(), VERSION) == 0);
}

int main(void)
{
    blocks_and_keep();
    tours();
    folding_and_levels();
    eight_hints();
    dependencies();
    forks_by_running_threads(1);
    forks_by_running_threads(3);
    for (uint64_t at_caches = 0; at_caches <= 2; at_caches++)
        every_thread_once(at_caches);
    an_order_within_another();
    strangers(1);
    strangers(2);
    the_default_block();
    misuse();
    puts("done");
    return 0;
}
