/* Statically linked programs: nothing can be preloaded into them, so the allocator and the
   threads library are met at their functions' entries, by name, and at the places that calls
   return to. So is the allocator of Go, which is no library at all, in programs of either kind.

   A function that is entered by a call begins a superblock, where the guest's registers hold its
   arguments. If what it returns matters, the stack pointer that its return will leave is noted;
   every superblock that follows a call instruction compares it with the real one. Since jumps are
   not chased (main.c), tail calls begin superblocks, too.

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#include "tool.h"

#include "pub_tool_aspacemgr.h"
#include "pub_tool_debuginfo.h"
#include "pub_tool_guest.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_threadstate.h"

enum Kind {
   MALLOC = 1,
   CALLOC,
   REALLOC,
   MEMALIGN,
   POSIX_MEMALIGN,
   /* Go passes the size in RAX, where results come back, too (its ABIInternal, since Go 1.17). */
   GO_NEW,
   FREE,
   LAST_OF_HEAP = FREE,
   LOCK,
   READ_LOCK,
   UNLOCK,
   COND_WAIT,
   COND_SIGNAL,
   BARRIER_INIT,
   BARRIER_WAIT,
   SEM_INIT,
   SEM_POST,
   SEM_WAIT,
   JOIN,
};

static const struct {
   const HChar* name;
   enum Kind kind;
} functions[] = {
   {"malloc", MALLOC},
   {"valloc", MALLOC},
   {"operator new(unsigned long)", MALLOC},
   {"operator new[](unsigned long)", MALLOC},
   {"calloc", CALLOC},
   {"realloc", REALLOC},
   {"memalign", MEMALIGN},
   {"aligned_alloc", MEMALIGN},
   {"posix_memalign", POSIX_MEMALIGN},
   {"runtime.mallocgc", GO_NEW},
   {"free", FREE},
   {"operator delete(void*)", FREE},
   {"operator delete(void*, unsigned long)", FREE},
   {"operator delete[](void*)", FREE},
   {"operator delete[](void*, unsigned long)", FREE},
   {"pthread_mutex_lock", LOCK},
   {"pthread_mutex_trylock", LOCK},
   {"pthread_mutex_timedlock", LOCK},
   {"pthread_mutex_unlock", UNLOCK},
   {"pthread_spin_lock", LOCK},
   {"pthread_spin_trylock", LOCK},
   {"pthread_spin_unlock", UNLOCK},
   {"pthread_rwlock_wrlock", LOCK},
   {"pthread_rwlock_trywrlock", LOCK},
   {"pthread_rwlock_rdlock", READ_LOCK},
   {"pthread_rwlock_tryrdlock", READ_LOCK},
   {"pthread_rwlock_unlock", UNLOCK},
   {"pthread_cond_wait", COND_WAIT},
   {"pthread_cond_timedwait", COND_WAIT},
   {"pthread_cond_signal", COND_SIGNAL},
   {"pthread_cond_broadcast", COND_SIGNAL},
   {"pthread_barrier_init", BARRIER_INIT},
   {"pthread_barrier_wait", BARRIER_WAIT},
   {"sem_init", SEM_INIT},
   {"sem_post", SEM_POST},
   {"sem_wait", SEM_WAIT},
   {"sem_trywait", SEM_WAIT},
   {"pthread_join", JOIN},
};

/* A call under way whose result matters. */
struct Frame {
   UChar kind;
   ULong a, b, c;
   Addr sp; /* when it has returned */
};

enum { FRAMES_MAX = 32, THREADS_MAX = 4096 };
struct Frames {
   UInt used;
   struct Frame frame[FRAMES_MAX];
};
static struct Frames* frames_of[THREADS_MAX];

/* Whether the program is static, and whether it is Go's: then its allocator alone is met if it is not static. */
static Bool is_static = False, is_go = False;
/* The stack pointer that the running thread's innermost call will leave; 0 if there is none. */
static ULong awaited_sp = 0;

void hooks_static_program(void)
{
   is_static = True;
}

static struct Frames* frames(ThreadId tid)
{
   if (tid >= THREADS_MAX)
      return NULL;
   if (frames_of[tid] == NULL)
      frames_of[tid] = VG_(calloc)("domicile.hooks", 1, sizeof(struct Frames));
   return frames_of[tid];
}

void hooks_running(ThreadId tid)
{
   struct Frames* f = (is_static || is_go) && tid < THREADS_MAX ? frames_of[tid] : NULL;
   awaited_sp = f && f->used > 0 ? f->frame[f->used - 1].sp : 0;
}

void hooks_thread_ended(ThreadId tid)
{
   if (tid < THREADS_MAX && frames_of[tid])
      frames_of[tid]->used = 0;
   hooks_running(tid);
}

static void sync(enum SyncOp op, ULong object, ULong value)
{
   ULong* w = ring_record(RECORD_SYNC, 3);
   w[0] = op;
   w[1] = object;
   w[2] = value;
   ring_commit();
}

static void release(ULong block)
{
   if (block)
      ring_word(RECORD_FREE, block);
}

static void allocated_at(UInt stack, ULong block, ULong bytes)
{
   ULong* w = ring_record(RECORD_ALLOC, 3);
   w[0] = block;
   w[1] = bytes;
   w[2] = stack;
   ring_commit();
}

static void allocated(ThreadId tid, ULong block, ULong bytes)
{
   if (block)
      allocated_at(stacks_here(tid, -1), block, bytes);
}

/* A function of `kind` is entered with these arguments. Called by generated code, before the
   superblock's own words. */
static void entered(ULong kind, ULong a, ULong b, ULong c, ULong sp)
{
   ThreadId tid = VG_(get_running_tid)();
   struct Frames* f = frames(tid);
   Bool returns = True;
   UInt i;
   if (f == NULL)
      return;
   /* Calls that were left by a longjmp or an exception. */
   while (f->used > 0 && f->frame[f->used - 1].sp <= sp)
      f->used--;
   /* Only the outermost call of the allocator is reported. */
   for (i = 0; kind <= LAST_OF_HEAP && kind != GO_NEW && i < f->used; i++)
      if (f->frame[i].kind <= LAST_OF_HEAP) {
         hooks_running(tid);
         return;
      }
   switch (kind) {
   case FREE:
   case REALLOC:
      release(a);
      break;
   case GO_NEW:
      /* Calls do not nest, and the goroutine of one that was left behind may be on another stack by now. */
      f->used = 0;
      break;
   case UNLOCK:
      sync(SYNC_UNLOCK, a, 0);
      returns = False;
      break;
   case COND_WAIT:
      sync(SYNC_UNLOCK, b, 0);
      break;
   case COND_SIGNAL:
      sync(SYNC_COND_SIGNAL, a, 0);
      returns = False;
      break;
   case BARRIER_WAIT:
      sync(SYNC_BARRIER, a, 0);
      returns = False;
      break;
   case SEM_POST:
      sync(SYNC_SEM_POST, a, 0);
      returns = False;
      break;
   default:
      break;
   }
   if (returns && f->used < FRAMES_MAX) {
      struct Frame* frame = &f->frame[f->used++];
      frame->kind = kind;
      frame->a = a;
      frame->b = b;
      frame->c = c;
      frame->sp = sp + 8;
   }
   hooks_running(tid);
}

/* The innermost call has returned `result`. */
static void returned(ULong result, ULong frame_pointer)
{
   ThreadId tid = VG_(get_running_tid)();
   struct Frames* f = frames(tid);
   struct Frame* frame;
   Bool good = (UInt)result == 0;
   if (f == NULL || f->used == 0)
      return;
   frame = &f->frame[--f->used];
   hooks_running(tid);
   switch (frame->kind) {
   case MALLOC:
      allocated(tid, result, frame->a);
      break;
   case GO_NEW:
      if (result)
         allocated_at(stacks_by_frame_pointers(tid, frame_pointer), result, frame->a);
      break;
   case CALLOC:
      allocated(tid, result, frame->a * frame->b);
      break;
   case REALLOC:
      if (result)
         allocated(tid, result, frame->b);
      else if (frame->a && frame->b)
         sync(SYNC_RESTORE, frame->a, 0);
      break;
   case MEMALIGN:
      allocated(tid, result, frame->b);
      break;
   case POSIX_MEMALIGN:
      if (good && VG_(am_is_valid_for_client)(frame->a, 8, VKI_PROT_READ))
         allocated(tid, *(ULong*)frame->a, frame->c);
      break;
   case LOCK:
      if (good)
         sync(SYNC_LOCK, frame->a, 0);
      break;
   case READ_LOCK:
      if (good)
         sync(SYNC_READ_LOCK, frame->a, 0);
      break;
   case COND_WAIT:
      if (good)
         sync(SYNC_COND_WAITED, frame->a, 0);
      sync(SYNC_LOCK, frame->b, 0);
      break;
   case BARRIER_INIT:
      if (good)
         sync(SYNC_BARRIER_INIT, frame->a, (UInt)frame->c);
      break;
   case SEM_INIT:
      if (good)
         sync(SYNC_SEM_INIT, frame->a, (UInt)frame->c);
      break;
   case SEM_WAIT:
      if (good)
         sync(SYNC_SEM_WAITED, frame->a, 0);
      break;
   case JOIN:
      if (good)
         sync(SYNC_JOINED, frame->a, 0);
      break;
   default:
      break;
   }
}

/* What Go's runtime begins with, before any goroutine. */
#define GO_BEGINS "runtime.rt0_go"

/* The kind of the function that begins at `pc`, 0 if it is none of ours. The C library has each
   under several names: __libc_malloc, ___pthread_mutex_lock, __GI_... */
static UInt kind_at(Addr pc)
{
   const HChar* name;
   UInt i;
   if (!VG_(get_fnname_if_entry)(VG_(current_DiEpoch)(), pc, &name))
      return 0;
   if (!is_go && VG_(strcmp)(name, GO_BEGINS) == 0)
      is_go = True;
   if (!is_static && !is_go)
      return 0;
   while (*name == '_')
      name++;
   if (VG_(strncmp)(name, "GI_", 3) == 0)
      name += 3;
   while (*name == '_')
      name++;
   if (VG_(strncmp)(name, "libc_", 5) == 0)
      name += 5;
   for (i = 0; i < sizeof functions / sizeof functions[0]; i++)
      if (VG_(strcmp)(name, functions[i].name) == 0)
         return is_static || functions[i].kind == GO_NEW ? functions[i].kind : 0;
   return 0;
}

/* Whether the instruction before `pc` looks like a call. Wrong guesses cost time, no more. */
static Bool follows_call(Addr pc)
{
   const UChar* before = (const UChar*)pc;
   UInt back;
   if (!VG_(am_is_valid_for_client)(pc - 8, 8, VKI_PROT_READ))
      return False;
   if (before[-5] == 0xe8)
      return True;
   for (back = 2; back <= 7; back++)
      if (before[-(Int)back] == 0xff && (before[1 - (Int)back] & 0x38) == 0x10)
         return True;
   return False;
}

static IRExpr* get(IRSB* out, Int offset)
{
   IRTemp t = newIRTemp(out->tyenv, Ity_I64);
   addStmtToIRSB(out, IRStmt_WrTmp(t, IRExpr_Get(offset, Ity_I64)));
   return IRExpr_RdTmp(t);
}

#define GUEST(name) ((Int)offsetof(VexGuestArchState, guest_##name))

void hooks_instrument(IRSB* out, Addr pc)
{
   UInt kind = kind_at(pc);
   if (!is_static && !is_go)
      return;
   if (follows_call(pc)) {
      IRTemp awaited = newIRTemp(out->tyenv, Ity_I64), here = newIRTemp(out->tyenv, Ity_I1);
      IRExpr* sp = get(out, GUEST(RSP));
      IRDirty* d;
      addStmtToIRSB(out, IRStmt_WrTmp(awaited, IRExpr_Load(Iend_LE, Ity_I64,
                                                           mkIRExpr_HWord((HWord)&awaited_sp))));
      addStmtToIRSB(out, IRStmt_WrTmp(here, IRExpr_Binop(Iop_CmpEQ64, sp, IRExpr_RdTmp(awaited))));
      d = unsafeIRDirty_0_N(0, "returned", VG_(fnptr_to_fnentry)(&returned),
                            mkIRExprVec_2(get(out, GUEST(RAX)), get(out, GUEST(RBP))));
      d->guard = IRExpr_RdTmp(here);
      addStmtToIRSB(out, IRStmt_Dirty(d));
   }
   if (kind) {
      Int first = kind == GO_NEW ? GUEST(RAX) : GUEST(RDI);
      IRExpr** args = mkIRExprVec_5(mkIRExpr_HWord(kind), get(out, first),
                                    get(out, GUEST(RSI)), get(out, GUEST(RDX)),
                                    get(out, GUEST(RSP)));
      addStmtToIRSB(out, IRStmt_Dirty(unsafeIRDirty_0_N(
                            0, "entered", VG_(fnptr_to_fnentry)(&entered), args)));
   }
}
