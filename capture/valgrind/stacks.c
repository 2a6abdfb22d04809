/* Calling stacks: interned by Valgrind, announced once each.

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#include "tool.h"

#include "pub_tool_execontext.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_stacktrace.h"

/* Of Valgrind's core, without a public header. */
extern StackTrace VG_(get_ExeContext_StackTrace)(ExeContext* context);

/* A bit for each number that was announced. Valgrind numbers stacks in steps of four. */
static UChar* announced = NULL;
static UInt announced_bytes = 0;

UInt stacks_here(ThreadId tid, Word delta)
{
   ExeContext* context = VG_(record_ExeContext)(tid, delta);
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
      const Addr* pcs = VG_(get_ExeContext_StackTrace)(context);
      UInt count = VG_(get_ExeContext_n_ips)(context), i, first = 0;
      ULong* w;
      while (first + 1 < count && memory_is_wrapper(pcs[first]))
         first++;
      w = ring_record(RECORD_STACK, 1 + count - first);
      *w++ = number;
      for (i = first; i < count; i++)
         *w++ = pcs[i];
      ring_commit();
      announced[byte] |= bit;
   }
   return number;
}
