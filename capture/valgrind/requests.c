/* Client requests: from the program itself (domicile-trace.h) and from our wrappers around the
   allocator and the threads library (preload_*.c).

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#include "tool.h"
#include "wrapper.h"

#include "pub_tool_aspacemgr.h"
#include "pub_tool_libcbase.h"

enum { NAME_MAX_ = 255, LINE_NAME_MAX = 4000, HINTS_MAX = 16, SUMMARY_MAX = 1 << 20, PIECE = 4096 };

/* The length of the program's string at `at`, at most `most`; 0 if it cannot be read. */
static UInt text_bytes(Addr at, UInt most)
{
   UInt n = 0;
   while (n < most) {
      /* One check for each page that it reaches into. */
      if ((n == 0 || (at + n) % 4096 == 0) &&
          !VG_(am_is_valid_for_client)(at + n, 1, VKI_PROT_READ))
         break;
      if (((const HChar*)at)[n] == 0)
         break;
      n++;
   }
   return n;
}

static void slots(enum SlotOp what, const UWord* arg)
{
   ULong* w = ring_record(RECORD_SLOTS, 4);
   w[0] = what;
   w[1] = arg[1];
   w[2] = arg[2];
   w[3] = arg[3];
   ring_commit();
}

/* A summary of `bytes` bytes, piece by piece: the ring has no room for it at once. False if it is none. */
static Bool summary(Addr text, ULong bytes)
{
   ULong at;
   if (bytes == 0 || bytes > SUMMARY_MAX || !VG_(am_is_valid_for_client)(text, bytes, VKI_PROT_READ))
      return False;
   for (at = 0; at < bytes; at += PIECE) {
      ULong left = bytes - at;
      ULong* w = ring_record_text(RECORD_SUMMARY, 2, (const HChar*)text + at, left < PIECE ? left : PIECE);
      w[0] = bytes;
      w[1] = at;
      ring_commit();
   }
   return True;
}

/* What a thread that only waits does to the objects of the library that it waits in says nothing of the program. It
   may let go of what it held before. */
Bool sync_is_told(ThreadId tid, enum SyncOp op)
{
   if (!threads_is_quiet(tid))
      return True;
   switch (op) {
   case SYNC_LOCK:
   case SYNC_READ_LOCK:
   case SYNC_BARRIER:
   case SYNC_COND_SIGNAL:
   case SYNC_COND_WAITED:
   case SYNC_SEM_POST:
   case SYNC_SEM_WAITED:
   case SYNC_FUTEX_WAKE:
   case SYNC_FUTEX_WAITED:
      return False;
   default:
      return True;
   }
}

static Bool on_request(ThreadId tid, UWord* arg, UWord* result)
{
   ULong* w;
   UInt i;
   *result = 0;
   if ((arg[0] & 0xffff0000) != (DOMICILE_REQUEST_(0) & 0xffff0000))
      return False;
   threads_running(tid);
   switch (arg[0] & 0xffff) {
   case DOMICILE_REQUEST_PHASE:
      ring_record_text(RECORD_PHASE, 0, (const HChar*)arg[1], text_bytes(arg[1], NAME_MAX_));
      ring_commit();
      return True;
   case DOMICILE_REQUEST_WORK_BEGIN: {
      UInt hints = arg[1] > HINTS_MAX ? HINTS_MAX : arg[1];
      if (!VG_(am_is_valid_for_client)(arg[2], 8 * hints, VKI_PROT_READ))
         hints = 0;
      w = ring_record(RECORD_WORK_BEGIN, hints);
      for (i = 0; i < hints; i++)
         w[i] = ((ULong*)arg[2])[i];
      ring_commit();
      return True;
   }
   case DOMICILE_REQUEST_WORK_END:
      ring_record(RECORD_WORK_END, 0);
      ring_commit();
      return True;
   case DOMICILE_REQUEST_ARRAY:
      w = ring_record_text(RECORD_ARRAY, 2, (const HChar*)arg[1], text_bytes(arg[1], NAME_MAX_));
      w[0] = arg[2];
      w[1] = arg[3];
      ring_commit();
      return True;
   case DOMICILE_REQUEST_RECORD:
      ring_word(RECORD_SWITCH, arg[1]);
      return True;
   case DOMICILE_REQUEST_SLOT:
      slots(SLOT_DEFINE, arg);
      return True;
   case DOMICILE_REQUEST_SLOT_FREE:
      slots(SLOT_FREE, arg);
      return True;
   case DOMICILE_REQUEST_DATA_RANGE:
      slots(SLOT_RANGE, arg);
      return True;
   case DOMICILE_REQUEST_DATA_THREAD:
      slots(SLOT_THREAD, arg);
      return True;
   case DOMICILE_REQUEST_ALLOCATE:
      slots(SLOT_ALLOCATE, arg);
      return True;
   case DOMICILE_REQUEST_DATA_FREE:
      slots(SLOT_DATA_FREE, arg);
      return True;
   case DOMICILE_REQUEST_RECORDING:
      *result = ring_alive ? 1 : 0;
      return True;
   case DOMICILE_REQUEST_LINE:
      w = ring_record_text(RECORD_LINE, 2, (const HChar*)arg[3], text_bytes(arg[3], LINE_NAME_MAX));
      w[0] = arg[1];
      w[1] = arg[2];
      ring_commit();
      return True;
   case DOMICILE_REQUEST_AT_LINES: {
      UInt lines = arg[1] > DOMICILE_LINES_MAX ? DOMICILE_LINES_MAX : arg[1];
      if (!VG_(am_is_valid_for_client)(arg[2], 8 * lines, VKI_PROT_READ))
         lines = 0;
      w = ring_record(RECORD_AT_LINES, lines);
      for (i = 0; i < lines; i++)
         w[i] = ((ULong*)arg[2])[i];
      ring_commit();
      return True;
   }
   case DOMICILE_REQUEST_ASIDE:
      threads_quiet(tid, arg[1] != 0);
      return True;
   case WRAPPER_ALLOC: {
      UInt stack = stacks_here(tid, 0);
      w = ring_record(RECORD_ALLOC, 3);
      w[0] = arg[1];
      w[1] = arg[2];
      w[2] = stack;
      ring_commit();
      return True;
   }
   case WRAPPER_FREE:
      ring_word(RECORD_FREE, arg[1]);
      return True;
   case DOMICILE_REQUEST_SUMMARY:
      *result = summary(arg[1], arg[2]) ? 1 : 0;
      return True;
   case WRAPPER_QUIET:
      threads_quiet(tid, arg[1] != 0);
      return True;
   case WRAPPER_SYNC:
      if (!sync_is_told(tid, arg[1]))
         return True;
      w = ring_record(RECORD_SYNC, 3);
      w[0] = arg[1];
      w[1] = arg[2];
      w[2] = arg[3];
      ring_commit();
      return True;
   default:
      return False;
   }
}

void requests_init(void)
{
   VG_(needs_client_requests)(on_request);
}
