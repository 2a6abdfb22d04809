/* The version without slots: see slots.h and team.h. */
#include "slots.h"
#include "team.h"

void slots_open(void) {}
void slots_close(void) {}
void slots_enter(int thread) { (void)thread; }
double slots_seconds(void) { return 0; }

int slot_define(int64_t bytes, int kind)
{
   (void)bytes, (void)kind;
   return 0;
}

void slot_give(int slot, const struct piece *pieces, int count, int first, int last)
{
   (void)slot, (void)pieces, (void)count, (void)first, (void)last;
}
