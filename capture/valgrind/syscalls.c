/* System calls that say how processes and threads depend on each other.

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#include "tool.h"

#include "pub_tool_aspacemgr.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_vkiscnums.h"

enum {
   FUTEX_WAIT_ = 0,
   FUTEX_WAKE_ = 1,
   FUTEX_REQUEUE_ = 3,
   FUTEX_CMP_REQUEUE_ = 4,
   FUTEX_WAKE_OP_ = 5,
   FUTEX_WAIT_BITSET_ = 9,
   FUTEX_WAKE_BITSET_ = 10,
   FUTEX_COMMAND_ = 127,
   CLONE_THREAD_ = 0x00010000,
   CLONE_VFORK_ = 0x00004000,
   PR_SET_NAME_ = 15,
   RLIMIT_NOFILE_ = 7,
};

static void sync(ThreadId tid, enum SyncOp op, ULong object, ULong value)
{
   ULong* w;
   if (!sync_is_told(tid, op))
      return;
   w = ring_record(RECORD_SYNC, 3);
   w[0] = op;
   w[1] = object;
   w[2] = value;
   ring_commit();
}

static Bool readable(Addr at, SizeT bytes)
{
   return at != 0 && VG_(am_is_valid_for_client)(at, bytes, VKI_PROT_READ);
}

static void on_entry(ThreadId tid, UInt number, UWord* args, UInt count)
{
   switch (number) {
   case __NR_execve:
#ifdef __NR_execveat
   case __NR_execveat:
#endif
      /* If it succeeds, nothing of this image comes after it. */
      threads_running(tid);
      ring_word(RECORD_EXEC, 1);
      ring_flush();
      break;
   case __NR_futex:
      /* Before the waiters run: their side must come later. */
      if (count >= 3) {
         Int command = args[1] & FUTEX_COMMAND_;
         if (command == FUTEX_WAKE_ || command == FUTEX_WAKE_BITSET_ ||
             command == FUTEX_WAKE_OP_ || command == FUTEX_REQUEUE_ ||
             command == FUTEX_CMP_REQUEUE_) {
            threads_running(tid);
            sync(tid, SYNC_FUTEX_WAKE, args[0], args[2]);
         }
      }
      break;
   case __NR_exit_group:
      threads_running(tid);
      break;
   default:
      break;
   }
}

static void child_waited(ThreadId tid, UInt pid)
{
   threads_running(tid);
   ring_flush(); /* the recorder looks for it at the beginning of a slot */
   ring_word(RECORD_WAITED, pid);
}

/* Valgrind keeps some descriptors for itself, and refuses a hard limit (the second word) that is not what is left. */
static void limit_refused(ThreadId tid, UWord resource, Addr wanted)
{
   if (resource != RLIMIT_NOFILE_ || !readable(wanted, 2 * sizeof(ULong)))
      return;
   threads_running(tid);
   ring_word(RECORD_LIMIT_REFUSED, ((ULong*)wanted)[1]);
}

static void on_return(ThreadId tid, UInt number, UWord* args, UInt count, SysRes result)
{
   Bool failed = sr_isError(result);
   switch (number) {
   case __NR_execve:
#ifdef __NR_execveat
   case __NR_execveat:
#endif
      if (failed) {
         threads_running(tid);
         ring_word(RECORD_EXEC, 0);
      }
      break;
   case __NR_fork:
   case __NR_vfork:
   case __NR_clone:
   case __NR_clone3:
      /* Threads are seen by threads.c. */
      if (!failed && sr_Res(result) > 0) {
         UWord flags = CLONE_VFORK_;
         if (number == __NR_clone)
            flags = args[0];
         else if (number == __NR_clone3)
            flags = readable(args[0], 8) ? *(ULong*)args[0] : CLONE_THREAD_;
         if ((flags & CLONE_THREAD_) == 0) {
            threads_running(tid);
            ring_word(RECORD_FORK, sr_Res(result));
            ring_flush();
         }
      }
      break;
   case __NR_wait4:
      if (!failed && (Int)sr_Res(result) > 0) {
         /* Stopped and continued children have not ended. */
         Int status = 0;
         if (readable(args[1], sizeof status))
            status = *(Int*)args[1];
         if ((status & 0xff) != 0x7f && status != 0xffff)
            child_waited(tid, sr_Res(result));
      }
      break;
   case __NR_waitid:
      if (!failed && readable(args[2], 24)) {
         /* siginfo_t: si_code at 8 (1 to 3: ended), si_pid at 12 + 4. */
         Int code = *(Int*)(args[2] + 8), pid = *(Int*)(args[2] + 16);
         if (pid > 0 && code >= 1 && code <= 3)
            child_waited(tid, pid);
      }
      break;
   case __NR_prctl:
      if (!failed && args[0] == PR_SET_NAME_ && readable(args[1], 1)) {
         HChar name[16];
         UInt i;
         for (i = 0; i < 15 && readable(args[1] + i, 1) && ((HChar*)args[1])[i]; i++)
            name[i] = ((HChar*)args[1])[i];
         threads_running(tid);
         *ring_record_text(RECORD_THREAD_NAME, 1, name, i) = tid;
         ring_commit();
      }
      break;
   case __NR_setrlimit:
      if (failed && sr_Err(result) == VKI_EPERM)
         limit_refused(tid, args[0], args[1]);
      break;
   case __NR_prlimit64:
      if (failed && sr_Err(result) == VKI_EPERM)
         limit_refused(tid, args[1], args[2]);
      break;
   case __NR_futex:
      if (!failed && count >= 2) {
         Int command = args[1] & FUTEX_COMMAND_;
         if (command == FUTEX_WAIT_ || command == FUTEX_WAIT_BITSET_) {
            threads_running(tid);
            sync(tid, SYNC_FUTEX_WAITED, args[0], 0);
         }
      }
      break;
   default:
      break;
   }
}

void syscalls_init(void)
{
   VG_(needs_syscall_wrapper)(on_entry, on_return);
}
