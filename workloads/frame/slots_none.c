/* The version without slots: see slots.h and team.h. */
#include "slots.h"
#include "team.h"

void slots_open(void) {}
void slots_close(void) {}
void slots_enter(int thread) { (void)thread; }
double slots_seconds(void) { return 0; }

int64_t slot_bytes(int64_t bytes)
{
   const int64_t color = team_cache() / 64;
   return (bytes + color - 1) / color * color;
}

int slot_define(int64_t bytes, int kind)
{
   (void)bytes, (void)kind;
   return 0;
}

void slot_give(int slot, const struct piece *pieces, int count, int first, int last)
{
   (void)slot, (void)pieces, (void)count, (void)first, (void)last;
}
