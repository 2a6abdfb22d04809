/* Calling stacks: those of allocations, interned by Valgrind, and samples, interned here because they go deeper. Each is
   announced once.

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#include "tool.h"

#include "pub_tool_aspacemgr.h"
#include "pub_tool_execontext.h"
#include "pub_tool_hashtable.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_machine.h"
#include "pub_tool_stacktrace.h"

/* Of Valgrind's core, without a public header. */
extern StackTrace VG_(get_ExeContext_StackTrace)(ExeContext* context);

/* Frames that are followed where only frame pointers lead on: no more than the recorder asks Valgrind for. */
enum { FRAMES_MAX = 8 };

/* A bit for each number that was announced. Valgrind numbers stacks in steps of four. */
static UChar* announced = NULL;
static UInt announced_bytes = 0;

static UInt number_of(ExeContext* context);
static void announce(UInt number, const Addr* pcs, UInt count);

UInt stacks_here(ThreadId tid, Word delta)
{
   return number_of(VG_(record_ExeContext)(tid, delta));
}

UInt stacks_by_frame_pointers(ThreadId tid, Addr frame)
{
   Addr pcs[FRAMES_MAX];
   UInt count = 0;
   pcs[count++] = VG_(get_IP)(tid) - 1;
   while (count < FRAMES_MAX && VG_(am_is_valid_for_client)(frame, 16, VKI_PROT_READ)) {
      Addr outer = ((const Addr*)frame)[0], back = ((const Addr*)frame)[1];
      if (back == 0)
         break;
      pcs[count++] = back - 1;
      if (outer <= frame)
         break; /* frames lie above those that they called */
      frame = outer;
   }
   return number_of(VG_(make_ExeContext_from_StackTrace)(pcs, count));
}

static UInt number_of(ExeContext* context)
{
   UInt number = VG_(get_ECU_from_ExeContext)(context);
   UInt byte = number / 8, bit = 1u << (number % 8);

   if (byte >= announced_bytes) {
      UInt bytes = announced_bytes ? 2 * announced_bytes : 1 << 16;
      if (bytes <= byte)
         bytes = byte + 1;
      announced = VG_(realloc)("domicile.stacks", announced, bytes);
      VG_(memset)(announced + announced_bytes, 0, bytes - announced_bytes);
      announced_bytes = bytes;
   }
   if ((announced[byte] & bit) == 0) {
      announce(number, VG_(get_ExeContext_StackTrace)(context), VG_(get_ExeContext_n_ips)(context));
      announced[byte] |= bit;
   }
   return number;
}

static void announce(UInt number, const Addr* pcs, UInt count)
{
   UInt i, first = 0;
   ULong* w;
   while (first + 1 < count && memory_is_wrapper(pcs[first]))
      first++;
   w = ring_record(RECORD_STACK, 1 + count - first);
   *w++ = number;
   for (i = first; i < count; i++)
      *w++ = pcs[i];
   ring_commit();
}

/* ---- samples ---- */

enum {
   SAMPLE_FRAMES_MAX = 64,
   /* Recursion makes ever new stacks. After so many, one that is not known yet has fewer frames, and after so many more, the
      innermost alone, of which there are no more than places in the code. */
   DEEP_MAX = 1 << 14,
   SHALLOW_FRAMES = 8,
   SHALLOW_MAX = 1 << 15,
};

struct Sampled {
   struct Sampled* next; /* as VgHashNode begins */
   UWord hash;
   UInt number, count;
   Addr pcs[];
};

static VgHashTable* samples = NULL;

static Word differs(const void* a, const void* b)
{
   const struct Sampled *x = a, *y = b;
   return x->count != y->count || VG_(memcmp)(x->pcs, y->pcs, x->count * sizeof *x->pcs) != 0;
}

/* The sample that has these frames; NULL if there is none yet. */
static struct Sampled* sample_known(struct Sampled* here)
{
   UInt i;
   here->hash = 0;
   for (i = 0; i < here->count; i++)
      here->hash = (here->hash ^ here->pcs[i]) * 0x9e3779b97f4a7c15UL;
   return VG_(HT_gen_lookup)(samples, here, differs);
}

UInt stacks_sampled(ThreadId tid)
{
   static UWord room[sizeof(struct Sampled) / sizeof(UWord) + SAMPLE_FRAMES_MAX];
   struct Sampled *here = (struct Sampled*)room, *known;
   UInt stacks;

   if (samples == NULL)
      samples = VG_(HT_construct)("domicile.samples");
   stacks = VG_(HT_count_nodes)(samples);
   here->count = VG_(get_StackTrace)(tid, here->pcs, SAMPLE_FRAMES_MAX, NULL, NULL, 0);
   known = sample_known(here);
   if (known == NULL && stacks >= DEEP_MAX) {
      UInt most = stacks < SHALLOW_MAX ? SHALLOW_FRAMES : 1;
      if (here->count > most)
         here->count = most;
      known = sample_known(here);
   }
   if (known == NULL) {
      SizeT bytes = sizeof *known + here->count * sizeof *known->pcs;
      known = VG_(malloc)("domicile.sample", bytes);
      VG_(memcpy)(known, here, bytes);
      /* Odd: Valgrind numbers its stacks in steps of four. */
      known->number = 2 * stacks + 1;
      VG_(HT_add_node)(samples, known);
      announce(known->number, known->pcs, known->count);
   }
   return known->number;
}
