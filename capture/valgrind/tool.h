/* What the parts of the tool offer each other. Each part is one file, named here.

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#ifndef DOMICILE_TOOL_H
#define DOMICILE_TOOL_H

#include "pub_tool_basics.h"
#include "pub_tool_vki.h"
#include "pub_tool_tooliface.h"

#include "wire.h"

/* ---- ring.c: the shared memory, and the socket beside it ---- */

/* True while somebody listens. Set by ring_connect, cleared for good when the recorder goes. */
extern Bool ring_alive;

/* The first page of the shared memory, at an address that is known when the tool is linked,
   so that generated code reaches the cursor with a short constant. */
extern struct WireControl ring_control;

/* Connects to the recorder at `path`.
   Post: ring_alive says whether it worked; the cursor is valid in either case. */
void ring_connect(const HChar* path, Bool forked, ULong parent_slots);

/* Gives the filled words to the recorder and gets an empty slot, waiting if there is none.
   Post: at least BLOCK_WORDS_MAX words are free at the cursor. */
void ring_drain(void);

/* Drains the slot if it is full, and samples the call stack if that is due. Called by generated code where a superblock begins.
   Post: as ring_drain. */
void ring_stop(void);

/* Whether call stacks are sampled. Set before ring_connect. */
extern Bool ring_call_stacks;

/* Like ring_drain, but does nothing if the slot is empty: what was done so far is now visible
   to the recorder in order. */
void ring_flush(void);

/* Slots published so far. */
ULong ring_published(void);

/* Begins a record; returns where its `words` words of payload go. It counts with ring_commit,
   so that whoever is killed leaves no half of it.
   Pre: words < BLOCK_WORDS_MAX - 1; not within a superblock (its words would be torn); the record
   before was committed. */
ULong* ring_record(enum RecordType type, UInt words);
void ring_commit(void);

/* A whole record of one word. */
void ring_word(enum RecordType type, ULong word);

/* As ring_record, for a payload of `words` words followed by a text of `bytes` bytes, which is
   cut at 4096 bytes. */
ULong* ring_record_text(enum RecordType type, UInt words, const HChar* text, SizeT bytes);

/* From now on superblocks are not recorded (or are again). Records are, in either case.
   Pre: not within a superblock. */
void ring_quiet(Bool quiet);

/* The last words in the slot that is being filled but for samples of the call stack, at most `most`; `count` says how many. None
   where nothing is recorded. Holds until the next call. Pre: most <= 2048. */
const ULong* ring_tail(UInt most, UInt* count);

/* In a forked child: lets go of the parent's ring. */
void ring_abandon(void);

/* ---- instrument.c: superblocks ---- */
IRSB* instrument(VgCallbackClosure* closure, IRSB* in, const VexGuestLayout* layout,
                 const VexGuestExtents* extents, const VexArchInfo* host, IRType gWordTy,
                 IRType hWordTy);

/* Whether software prefetches are to be recorded. */
extern Bool instrument_prefetches;

/* ---- flow.c: where addresses come from ---- */
/* A superblock begins, to be looked at statement by statement. */
void flow_begin(void);
/* What an atom comes from by now. */
ULong flow_origin(IRExpr* e);
/* The origin of what comes from two values. */
ULong flow_both(ULong a, ULong b);
/* The next statement, after which the superblock has `refs` references: those that load are the last of them. Returns
   the integer register that it writes, with what that comes from by then; -1 if there is none, or nothing changes. */
Int flow_statement(IRStmt* s, IRTypeEnv* types, UInt refs, ULong* origin);

/* ---- prefetch.c ---- */
/* Where a prefetch goes: offsets of registers in the guest's state, -1 for none. */
struct Prefetch {
   Int base, index, segment;
   UInt shift;         /* of the index */
   Long displacement;
   Bool narrow;        /* 32 bits of it count */
};
/* Whether the instruction of `bytes` bytes at `pc` is a prefetch of data. */
Bool prefetch_decode(Addr pc, UInt bytes, struct Prefetch* p);
/* Adds to `out` what computes its address; returns that, an atom. Pre: the registers are those at its beginning. */
IRExpr* prefetch_address(IRSB* out, const struct Prefetch* p);

/* ---- threads.c ---- */
void threads_init(void);
/* Says that what is recorded next was done by `tid`. Cheap when nothing changed. */
void threads_running(ThreadId tid);
/* What `tid` does from now on is waiting: its references and instructions are not the program's, and neither
   is whom it waits for. A thread begins as the one that made it is. */
void threads_quiet(ThreadId tid, Bool quiet);
Bool threads_is_quiet(ThreadId tid);
/* In a forked child: only `tid` is left. */
void threads_forked(ThreadId tid);

/* ---- spinning.c: threads that spin ---- */
/* Superblock `number` was announced; bit i of `reads`: its reference i, below 64, does not write. */
void spinning_block(ULong number, ULong reads);
/* Another thread runs now; `from` may be VG_INVALID_THREADID. Pre: the ring holds no word of `to` yet. */
void spinning_switch(ThreadId from, ThreadId to);
void spinning_thread_begins(ThreadId tid);

/* ---- memory.c: what is mapped ---- */
void memory_init(void);
/* Whether all that was mapped when the program began is its own file: no dynamic linker. */
Bool memory_is_static(void);
/* Whether `pc` belongs to our own preloaded wrappers, whose references are not the program's. */
Bool memory_is_wrapper(Addr pc);

/* Of the superblock that is being instrumented: the reference that a statement makes, counted from 1; 0: none. */
UInt instrument_reference(Int statement);

/* ---- latency.c ---- */
/* Clocks of instructions that the recorder may have timed. */
extern Int clocks_load, clocks_multiply, clocks_float_add, clocks_float_multiply, clocks_locked;
/* Describes how long the parts of the state that a superblock writes wait for those at its entry. `first` is its first
   instruction's statement. */
void latency_of_block(ULong number, const IRSB* block, Int first);

/* ---- stacks.c ---- */
/* Number of the calling stack of `tid`, announced when it is new. `delta` is added to the
   innermost program counter: -1 where that is a place to return to. */
UInt stacks_here(ThreadId tid, Word delta);
/* Number of a sample of its call stack, which goes deeper; announced when it is new. Pre: `tid` begins a superblock. */
UInt stacks_sampled(ThreadId tid);
/* The same by the frame pointers, from `frame` on: Valgrind does not unwind stacks that it does not know, such as those of
   Go's goroutines. */
UInt stacks_by_frame_pointers(ThreadId tid, Addr frame);

/* ---- hooks.c: the allocator and the threads library of statically linked programs ---- */
/* The program is one: functions are met by name from now on. Pre: nothing was translated yet. */
void hooks_static_program(void);
/* Adds to the beginning of a superblock at `pc` what it takes. Called before its own words. */
void hooks_instrument(IRSB* out, Addr pc);
void hooks_running(ThreadId tid);
void hooks_thread_ended(ThreadId tid);

/* ---- syscalls.c ---- */
void syscalls_init(void);

/* ---- requests.c ---- */
/* Whether an operation on a synchronisation object by `tid` is the program's. */
Bool sync_is_told(ThreadId tid, enum SyncOp op);
void requests_init(void);

#endif
