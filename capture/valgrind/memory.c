/* What is mapped where: files, anonymous memory, the heap's break, the first stack.

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#include "tool.h"

#include "pub_tool_aspacemgr.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_threadstate.h"

/* Code of our preloaded library: few files, remembered by where they lie. */
enum { WRAPPERS_MAX = 8 };
static struct {
   Addr start, end;
} wrapper[WRAPPERS_MAX];
static UInt wrappers = 0;

Bool memory_is_wrapper(Addr pc)
{
   UInt i;
   for (i = 0; i < wrappers; i++)
      if (pc >= wrapper[i].start && pc < wrapper[i].end)
         return True;
   return False;
}

/* Something else lies there from now on. */
static void forget_wrappers(Addr start, SizeT bytes)
{
   UInt i = 0;
   while (i < wrappers)
      if (start < wrapper[i].end && wrapper[i].start < start + bytes)
         wrapper[i] = wrapper[--wrappers];
      else
         i++;
}

static void note_wrapper(const HChar* path, Addr start, SizeT bytes)
{
   if (VG_(strncmp)(VG_(basename)(path), "vgpreload_", 10) == 0 && wrappers < WRAPPERS_MAX) {
      wrapper[wrappers].start = start;
      wrapper[wrappers].end = start + bytes;
      wrappers++;
   }
}

/* Records the mapping of `[start, start + bytes)`, which lies in one segment. */
static void record_map(Addr start, SizeT bytes, UInt protection, UInt kind, UInt stack)
{
   const NSegment* segment = VG_(am_find_nsegment)(start);
   const HChar* path = "";
   ULong offset = 0;
   ULong* w;

   forget_wrappers(start, bytes);
   if (kind == MAP_ANONYMOUS_ && segment && segment->kind == SkFileC) {
      const HChar* name = VG_(am_get_filename)(segment);
      kind = MAP_FILE_;
      path = name ? name : "";
      offset = segment->offset + (start - segment->start);
      if (protection & 4)
         note_wrapper(path, start, bytes);
   }
   w = ring_record_text(RECORD_MAP, 5, path, VG_(strlen)(path));
   w[0] = start;
   w[1] = bytes;
   w[2] = protection | kind << 8;
   w[3] = offset;
   w[4] = stack;
   ring_commit();
}

static UInt protection(Bool r, Bool w, Bool x)
{
   return (r ? 1 : 0) | (w ? 2 : 0) | (x ? 4 : 0);
}

/* Files that were mapped when the program began, apart from our own. */
static const HChar* startup_file = NULL;
static Bool several_startup_files = False;

Bool memory_is_static(void)
{
   return startup_file != NULL && !several_startup_files;
}

static void note_startup_file(Addr start)
{
   const NSegment* segment = VG_(am_find_nsegment)(start);
   const HChar* name = segment && segment->kind == SkFileC ? VG_(am_get_filename)(segment) : NULL;
   if (name == NULL || VG_(strstr)(name, "domicile-amd64-linux"))
      return;
   if (startup_file == NULL)
      startup_file = VG_(strdup)("domicile.memory", name);
   else if (VG_(strcmp)(startup_file, name) != 0)
      several_startup_files = True;
}

static void on_startup(Addr start, SizeT bytes, Bool r, Bool w, Bool x, ULong handle)
{
   Addr sp = VG_(get_SP)(1);
   note_startup_file(start);
   if (sp >= start && sp < start + bytes) {
      /* It grows without further notice: all that it may become counts. */
      SizeT most = VG_(thread_get_stack_size)(1);
      if (most > bytes) {
         start = start + bytes - most;
         bytes = most;
      }
      record_map(start, bytes, 3, MAP_STACK_, 0);
   } else {
      record_map(start, bytes, protection(r, w, x), MAP_ANONYMOUS_, 0);
   }
}

static void on_mmap(Addr start, SizeT bytes, Bool r, Bool w, Bool x, ULong handle)
{
   ThreadId tid = VG_(get_running_tid)();
   UInt stack = 0;
   if (tid != VG_INVALID_THREADID) {
      threads_running(tid);
      stack = stacks_here(tid, 0);
   }
   record_map(start, bytes, protection(r, w, x), MAP_ANONYMOUS_, stack);
}

static void on_break(Addr start, SizeT bytes, ThreadId tid)
{
   UInt stack = 0;
   if (tid != VG_INVALID_THREADID) {
      threads_running(tid);
      stack = stacks_here(tid, 0);
   }
   record_map(start, bytes, 3, MAP_BREAK_, stack);
}

static void on_unmap(Addr start, SizeT bytes)
{
   ULong* w;
   forget_wrappers(start, bytes);
   threads_running(VG_(get_running_tid)());
   w = ring_record(RECORD_UNMAP, 2);
   w[0] = start;
   w[1] = bytes;
   ring_commit();
}

void memory_init(void)
{
   VG_(track_new_mem_startup)(on_startup);
   VG_(track_new_mem_mmap)(on_mmap);
   VG_(track_new_mem_brk)(on_break);
   VG_(track_die_mem_munmap)(on_unmap);
   VG_(track_die_mem_brk)(on_unmap);
}
