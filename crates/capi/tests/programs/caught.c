/* What the library must be caught at by the sanitizer that it was built with, since the program asks for it: a write beyond
 * a block of the program (`caught address`), and two writes at once to the same place (`caught thread`). */
#define _POSIX_C_SOURCE 200809L /* barriers */
#include "check.h"
#include <domicile/domicile.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static domicile_order *an_order(void)
{
    domicile_order_attributes attributes = {.size = sizeof attributes, .hints = 1, .block = {10}};
    domicile_order *order;
    CHECK(domicile_order_create(&attributes, &order) == DOMICILE_OK);
    return order;
}

/* Nothing orders the runs after it. */
static pthread_barrier_t together;

static void *runs(void *report)
{
    domicile_order *order = an_order();
    pthread_barrier_wait(&together);
    CHECK(domicile_order_run(order, 0, report) == DOMICILE_OK);
    domicile_order_destroy(order);
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    int alone = !strcmp(argv[1], "address");
    CHECK(!pthread_barrier_init(&together, NULL, alone ? 1 : 2));
    if (alone) {
        domicile_order_report *report = malloc(sizeof report->size);
        CHECK(report);
        /* It says that it is longer than its block. */
        *(volatile size_t *)&report->size = sizeof *report;
        runs(report);
    } else {
        domicile_order_report report = {.size = sizeof report};
        pthread_t other;
        CHECK(!pthread_create(&other, NULL, runs, &report));
        runs(&report);
        CHECK(!pthread_join(other, NULL));
    }
    puts("nothing was noticed");
    return 0;
}
