/* Threads: who does what follows, and when each comes and goes.

   Valgrind runs one thread at a time and switches only between superblocks, so one word at
   each switch attributes everything after it.

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#include "tool.h"

#include "pub_tool_aspacemgr.h"
#include "pub_tool_guest.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_machine.h"
#include "pub_tool_threadstate.h"

static ThreadId running = VG_INVALID_THREADID;

/* Which threads only wait. Valgrind has 500 unless an option says otherwise (--max-threads); beyond these all are heard. */
enum { THREADS_MAX = 4096 };
static Bool quiet_threads[THREADS_MAX];

Bool threads_is_quiet(ThreadId tid)
{
   return tid < THREADS_MAX && quiet_threads[tid];
}

void threads_quiet(ThreadId tid, Bool quiet)
{
   if (tid < THREADS_MAX)
      quiet_threads[tid] = quiet;
   if (tid == running)
      ring_quiet(threads_is_quiet(tid));
}

void threads_running(ThreadId tid)
{
   if (tid != running && tid != VG_INVALID_THREADID) {
      spinning_switch(running, tid);
      running = tid;
      ring_word(RECORD_THREAD, tid);
      hooks_running(tid);
      ring_quiet(threads_is_quiet(tid));
   }
}

void threads_forked(ThreadId tid)
{
   running = VG_INVALID_THREADID;
   threads_running(tid);
}

static void on_start_client_code(ThreadId tid, ULong blocks)
{
   threads_running(tid);
}

static void on_create(ThreadId parent, ThreadId child)
{
   if (parent == VG_INVALID_THREADID)
      return; /* the first thread is there from the start */
   threads_running(parent);
   ring_word(RECORD_THREAD_CREATE, child);
   threads_quiet(child, threads_is_quiet(parent));
}

/* What lies above a thread's first stack pointer in memory that is its stack alone: the thread's own variables, and
   what the C library keeps of it. */
enum { STACK_TOP_MAX = 1 << 20 };

static void on_first_instruction(ThreadId tid)
{
   UWord thread_pointer = 0;
   Addr top = VG_(get_SP)(tid);
   const NSegment* segment = VG_(am_find_nsegment)(top - 1);
   Addr low = segment ? segment->start : 0, high = segment ? segment->end + 1 : 0;
   ULong* w;
   if (tid == 1 && high > VG_(thread_get_stack_size)(tid))
      low = high - VG_(thread_get_stack_size)(tid); /* the first stack grows */
   spinning_thread_begins(tid);
   if (tid == 1 && memory_is_static())
      hooks_static_program();
   /* Go's threads begin on a piece of its heap: where that begins and ends nobody knows. */
   if (tid != 1 && high - top > STACK_TOP_MAX)
      low = high = 0;
   threads_running(tid);
   VG_(get_shadow_regs_area)(tid, (UChar*)&thread_pointer, 0,
                             offsetof(VexGuestArchState, guest_FS_CONST),
                             sizeof thread_pointer);
   w = ring_record(RECORD_THREAD_START, 5);
   w[0] = tid;
   w[1] = VG_(gettid)();
   w[2] = thread_pointer;
   w[3] = low;
   w[4] = high;
   ring_commit();
}

static void on_exit(ThreadId tid)
{
   threads_running(tid);
   hooks_thread_ended(tid);
   ring_word(RECORD_THREAD_EXIT, tid);
}

void threads_init(void)
{
   VG_(track_start_client_code)(on_start_client_code);
   VG_(track_pre_thread_ll_create)(on_create);
   VG_(track_pre_thread_first_insn)(on_first_instruction);
   VG_(track_pre_thread_ll_exit)(on_exit);
}
