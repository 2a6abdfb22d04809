/* What AddressSanitizer must catch the library at, since the program asks for it: a write beyond a block of the program. */
#include "check.h"
#include <domicile/domicile.h>

int main(void)
{
    domicile_order_attributes attributes = {.size = sizeof attributes, .hints = 1, .block = {10}};
    domicile_order *order;
    CHECK(domicile_order_create(&attributes, &order) == DOMICILE_OK);
    domicile_order_report *report = malloc(sizeof report->size);
    CHECK(report);
    /* It says that it is longer than its block. */
    *(volatile size_t *)&report->size = sizeof *report;
    domicile_order_run(order, 0, report);
    puts("nothing was noticed");
    return 0;
}
