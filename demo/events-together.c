/* Events come in any order. They are kept in a list by their time, and gone through again and again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef EVENTS
#define EVENTS 80000
#define WALKS 48
#endif

struct event {
   struct event *next;
   double amount;
   char note[48];
};

/* The events by their time, as they came. */
static struct event *by_time[EVENTS];

static void receive(void)
{
   static unsigned time[EVENTS];
   unsigned random = 1;
   for (unsigned i = 0; i < EVENTS; i++)
      time[i] = i;
   for (unsigned i = EVENTS - 1; i > 0; i--) {
      random = random * 1664525 + 1013904223;
      unsigned other = (random >> 8) % (i + 1), swapped = time[i];
      time[i] = time[other];
      time[other] = swapped;
   }
   for (unsigned i = 0; i < EVENTS; i++) {
      struct event *event = calloc(1, sizeof *event);
      if (!event)
         exit(1);
      event->amount = time[i] % 100;
      by_time[time[i]] = event;
   }
}

int main(void)
{
   receive();
   struct event *together = malloc(EVENTS * sizeof *together);
   if (!together)
      exit(1);
   for (unsigned i = 0; i < EVENTS; i++)
      by_time[i] = memcpy(&together[i], by_time[i], sizeof *together);
   for (unsigned i = 0; i + 1 < EVENTS; i++)
      by_time[i]->next = by_time[i + 1];

   double balance = 0;
   for (int walk = 0; walk < WALKS; walk++)
      for (struct event *event = by_time[0]; event; event = event->next)
         balance += event->amount;
   printf("balance %.0f\n", balance);
}
