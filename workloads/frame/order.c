#include "order.h"

#include <domicile/domicile.h>
#include <domicile/th.h>
#include <string.h>

static domicile_order *places;

static void insist(domicile_error error)
{
   if (error != DOMICILE_OK)
      frame_fail(domicile_order_message(places));
}

void order_begin(const struct options *options)
{
   if (options->workers > 1) {
      domicile_order_attributes attributes;
      int d;
      memset(&attributes, 0, sizeof attributes);
      attributes.size = sizeof attributes;
      attributes.workers = (uint32_t)options->workers;
      for (d = 0; d < 3; d++)
         attributes.block[d] = (uint64_t)options->block;
      if (domicile_th_configure(&attributes) != DOMICILE_OK)
         frame_fail("the library refuses so many workers");
   }
   th_init((size_t)options->block, 0);
}

static void note(const domicile_order_report *report, struct outcome *outcome)
{
   outcome->threads += (int64_t)report->threads;
   if (outcome->bins < (int64_t)report->bins)
      outcome->bins = (int64_t)report->bins;
}

void order_end(struct outcome *outcome)
{
   domicile_order_report report;
   memset(&report, 0, sizeof report);
   report.size = sizeof report;
   if (domicile_th_report(&report) != DOMICILE_OK)
      frame_fail("the library does not say what it ran");
   note(&report, outcome);
}

void places_open(const struct options *options)
{
   domicile_order_attributes attributes;
   memset(&attributes, 0, sizeof attributes);
   attributes.size = sizeof attributes;
   attributes.hints = 1;
   attributes.block[0] = (uint64_t)options->block;
   attributes.workers = (uint32_t)options->workers;
   insist(domicile_order_create(&attributes, &places));
}

int64_t places_block(void) { return (int64_t)domicile_order_block(places, 0); }

void places_fork(void (*f)(void *, void *), intptr_t arg1, intptr_t arg2, int64_t place)
{
   const uint64_t hint = (uint64_t)place;
   insist(domicile_order_fork(places, f, (void *)arg1, (void *)arg2, &hint, 0));
}

void places_run(struct outcome *outcome)
{
   domicile_order_report report;
   memset(&report, 0, sizeof report);
   report.size = sizeof report;
   insist(domicile_order_run(places, 0, &report));
   note(&report, outcome);
}

void places_close(void)
{
   insist(domicile_order_destroy(places));
   places = 0;
}
