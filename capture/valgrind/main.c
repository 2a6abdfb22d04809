/* The tool's entry: options, registration, fork, the end.

   `valgrind --tool=domicile --domicile-socket=PATH PROGRAM ...` records every reference of the
   program into a ring of shared memory that the recorder listening at PATH provides. Nobody
   types this: `domicile record` does.

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#include "tool.h"

#include "pub_tool_clientstate.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_options.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_xarray.h"

static const HChar* option_socket = NULL;

/* The parent's count when the fork began: the child's view of the parent's page goes stale. */
static ULong published_at_fork = 0;

static Bool on_option(const HChar* arg)
{
   if (VG_STR_CLO(arg, "--domicile-socket", option_socket))
      return True;
   if (VG_BOOL_CLO(arg, "--domicile-prefetches", instrument_prefetches))
      return True;
   if (VG_BOOL_CLO(arg, "--domicile-call-stacks", ring_call_stacks))
      return True;
   if (VG_BINT_CLO(arg, "--domicile-clocks-load", clocks_load, 1, 999))
      return True;
   if (VG_BINT_CLO(arg, "--domicile-clocks-multiply", clocks_multiply, 1, 999))
      return True;
   if (VG_BINT_CLO(arg, "--domicile-clocks-float-add", clocks_float_add, 1, 999))
      return True;
   if (VG_BINT_CLO(arg, "--domicile-clocks-float-multiply", clocks_float_multiply, 1, 999))
      return True;
   if (VG_BINT_CLO(arg, "--domicile-clocks-locked", clocks_locked, 1, 999))
      return True;
   return False;
}

static void print_usage(void)
{
   VG_(printf)("    --domicile-socket=PATH    where the recorder listens\n"
               "    --domicile-prefetches=yes record software prefetches, too (wants\n"
               "                              --px-default=allregs-at-each-insn)\n"
               "    --domicile-call-stacks=yes sample call stacks\n"
               "    --domicile-clocks-CLASS=N what load, multiply, float-add, float-multiply and\n"
               "                              locked instructions take\n");
}

static void print_debug_usage(void)
{
   VG_(printf)("    (none)\n");
}

/* Says which program this is. */
static void record_program(void)
{
   HChar text[4096];
   UInt used = 0;
   Word i, count = VG_(args_for_client) ? VG_(sizeXA)(VG_(args_for_client)) : 0;
   for (i = -1; i < count; i++) {
      const HChar* part = i < 0 ? VG_(args_the_exename)
                                : *(HChar**)VG_(indexXA)(VG_(args_for_client), i);
      SizeT bytes = VG_(strlen)(part) + 1;
      if (used + bytes > sizeof text)
         break;
      VG_(memcpy)(text + used, part, bytes);
      used += bytes;
   }
   ring_record_text(RECORD_PROGRAM, 0, text, used);
   ring_commit();
}

static void on_options_done(void)
{
   /* Superblocks end at every jump. Else Valgrind would run short pieces of code beside a branch
      whether or not it is taken, and their instructions would be counted; it also spares more
      time in translation than it costs in running. */
   VG_(clo_vex_control).guest_chase = False;
   ring_connect(option_socket ? option_socket : "", False, 0);
   if (ring_alive)
      record_program();
   else
      VG_(umsg)("domicile: no recorder at '%s'; running without recording\n",
                option_socket ? option_socket : "(no --domicile-socket)");
}

static void before_fork(ThreadId tid)
{
   /* So that the child's superblocks are all known before it speaks. */
   threads_running(tid);
   ring_flush();
   published_at_fork = ring_published();
}

static void after_fork_in_child(ThreadId tid)
{
   Bool was_alive = ring_alive;
   ring_abandon();
   if (was_alive)
      ring_connect(option_socket, True, published_at_fork);
   threads_forked(tid);
}

static void on_end(Int exit_code)
{
   ring_word(RECORD_END, exit_code);
   ring_flush();
}

static void on_load(void)
{
   VG_(details_name)("Domicile");
   VG_(details_version)("0.1.0");
   VG_(details_description)("a recorder of memory references");
   VG_(details_copyright_author)("Copyright (C) 2025, and GNU GPL'd, by the Domicile authors.");
   VG_(details_bug_reports_to)("the Domicile project");
   VG_(details_avg_translation_sizeB)(400);

   VG_(basic_tool_funcs)(on_options_done, instrument, on_end);
   VG_(needs_command_line_options)(on_option, print_usage, print_debug_usage);
   VG_(atfork)(before_fork, NULL, after_fork_in_child);
   threads_init();
   memory_init();
   syscalls_init();
   requests_init();
}

VG_DETERMINE_INTERFACE_VERSION(on_load)
