/* Superblocks: what is said once about each, and the stores that say the rest.

   Everything that does not change from one run of a superblock to the next (program counters,
   sizes, what is read and what is written) is sent once, when it is translated. A run then
   costs one store for its number and one for each reference's address, straight into the
   ring, and one guarded call where the slot is full or a sample of the call stack is due:

      cursor = *control.cursor;  if (cursor > *control.limit) { stop(); cursor = ... }
      cursor[0] = BLOCK | number
      cursor[1] = address of the first reference ...
      *control.cursor = cursor + words so far        before every exit

   A superblock can be left at several exits. How many addresses follow its number says which
   one it was, unless two exits have the same number of references before them but not of
   instructions: then all but one of them store an EXIT word behind the addresses. The
   cursor covers it if the exit is taken; if not, the next reference takes its place. So what the
   cursor covers makes sense at every moment, should the program be killed or a reference fault.

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#include "tool.h"

#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_machine.h"

enum { OP_READ = 0, OP_WRITE = 1, OP_MODIFY = 2, OP_PREFETCH = 3 };
/* Bits of an address that a program can have: what it asks the processor to prefetch beyond them is nothing. */
enum { ADDRESS_BITS = 47 };
enum { INSNS_MAX = 1024, REFS_MAX = 2048, EXITS_MAX = 512, WRITES_MAX = 512, STATEMENTS_MAX = 1 << 14 };

struct RefInfo {
   UShort insn;
   UShort size;
   UChar op;
   ULong address; /* what it comes from (flow.c) */
   ULong data;    /* the same of what is written */
};

/* An integer register that has come to hold something else. */
struct WriteInfo {
   UShort insn;
   UChar number;
   UInt exits; /* so many are before it */
   ULong origin;
};

struct ExitInfo {
   UShort refs;  /* performed before it */
   UShort insns; /* begun before it, its own included */
   Bool marked;
   UChar branches; /* EXIT_* of wire.h */
   ULong origin;   /* what its branch comes from */
};

/* One superblock on its way through. Static: translation is serialised by Valgrind. */
static struct {
   IRSB* out; /* NULL while only looking */
   IRTemp cursor;
   Addr again; /* the place in the program that its end always leads to, or 0 */
   Int statement; /* at hand */
   UShort reference[STATEMENTS_MAX]; /* of each statement, counted from 1; 0: none */
   UInt committed; /* words that the stored cursor covers */
   Int committed_exit; /* the exit that the stored cursor stands for, or -1 */

   Addr pc[INSNS_MAX];
   UChar bytes[INSNS_MAX];
   UInt insns;
   struct RefInfo ref[REFS_MAX];
   UInt refs;
   struct ExitInfo exit[EXITS_MAX];
   UInt exits;
   struct WriteInfo write[WRITES_MAX];
   UInt writes;

   /* The reference that a write to the same place by the same instruction would turn into a
      modification: the last one, if it was an unconditional read. */
   IRExpr* last_read;
   Bool overflow;
} b;

static ULong next_number = 0;

Bool instrument_prefetches = False;

/* ---- building IR ---- */

static void emit(IRStmt* statement)
{
   if (b.out)
      addStmtToIRSB(b.out, statement);
}

static IRExpr* temp_of(IRType type, IRExpr* value)
{
   IRTemp t = newIRTemp(b.out->tyenv, type);
   addStmtToIRSB(b.out, IRStmt_WrTmp(t, value));
   return IRExpr_RdTmp(t);
}

static IRExpr* constant(ULong value)
{
   return IRExpr_Const(IRConst_U64(value));
}

/* Stores `word` as word `index` of this run. */
static void store_word(UInt index, IRExpr* word)
{
   IRExpr* at = IRExpr_RdTmp(b.cursor);
   if (index > 0)
      at = temp_of(Ity_I64, IRExpr_Binop(Iop_Add64, at, constant(8 * index)));
   addStmtToIRSB(b.out, IRStmt_Store(Iend_LE, at, word));
}

/* The cursor covers `words` words of this run, and one more if `marked` (NULL: no). */
static void commit(UInt words, IRExpr* marked)
{
   IRExpr* end =
      temp_of(Ity_I64, IRExpr_Binop(Iop_Add64, IRExpr_RdTmp(b.cursor), constant(8 * words)));
   if (marked) {
      IRExpr* one = temp_of(Ity_I64, IRExpr_Unop(Iop_1Uto64, marked));
      IRExpr* bytes = temp_of(Ity_I64, IRExpr_Binop(Iop_Shl64, one, IRExpr_Const(IRConst_U8(3))));
      end = temp_of(Ity_I64, IRExpr_Binop(Iop_Add64, end, bytes));
   }
   addStmtToIRSB(b.out, IRStmt_Store(Iend_LE, constant((Addr)&ring_control.cursor), end));
}

/* The entry: room in the slot, then the superblock's number. */
static void begin_run(ULong number)
{
   IRExpr* cursor_at = constant((Addr)&ring_control.cursor);
   IRExpr* cursor = temp_of(Ity_I64, IRExpr_Load(Iend_LE, Ity_I64, cursor_at));
   IRExpr* limit =
      temp_of(Ity_I64, IRExpr_Load(Iend_LE, Ity_I64, constant((Addr)&ring_control.limit)));
   IRExpr* full = temp_of(Ity_I1, IRExpr_Binop(Iop_CmpLT64U, limit, cursor));
   /* All registers are in the guest's state here, so a stack can be unwound. */
   IRDirty* stop = unsafeIRDirty_0_N(0, "ring_stop", VG_(fnptr_to_fnentry)(&ring_stop),
                                     mkIRExprVec_0());
   stop->guard = full;
   addStmtToIRSB(b.out, IRStmt_Dirty(stop));
   b.cursor = newIRTemp(b.out->tyenv, Ity_I64);
   addStmtToIRSB(b.out,
                 IRStmt_WrTmp(b.cursor, IRExpr_Load(Iend_LE, Ity_I64, cursor_at)));
   store_word(0, constant(WORD_BLOCK | number));
}

/* ---- what a superblock holds ---- */

static void saw_instruction(Addr pc, UInt bytes)
{
   if (b.insns == INSNS_MAX) {
      b.overflow = True;
      return;
   }
   b.pc[b.insns] = pc;
   b.bytes[b.insns] = bytes;
   b.insns++;
   b.last_read = NULL;
}

/* A reference by the current instruction to `addr`, an atom; performed only if `guard` (NULL:
   always). `data`: what is written, if it is one value. The store of its address is emitted here, before the access
   itself. */
static void saw_reference(UInt op, IRExpr* addr, Int size, IRExpr* guard, IRExpr* data)
{
   if (op != OP_READ && guard == NULL && b.last_read != NULL &&
       b.ref[b.refs - 1].size == size && eqIRAtom(b.last_read, addr)) {
      b.ref[b.refs - 1].op = OP_MODIFY;
      b.ref[b.refs - 1].data = data ? flow_origin(data) : 0;
      b.last_read = NULL;
      if (b.statement < STATEMENTS_MAX)
         b.reference[b.statement] = b.refs;
      return;
   }
   if (b.refs == REFS_MAX || b.insns == 0) {
      b.overflow = True;
      return;
   }
   b.ref[b.refs].insn = b.insns - 1;
   b.ref[b.refs].size = size;
   b.ref[b.refs].op = op;
   b.ref[b.refs].address = op == OP_PREFETCH ? 0 : flow_origin(addr);
   b.ref[b.refs].data = data ? flow_origin(data) : 0;
   b.refs++;
   if (b.statement < STATEMENTS_MAX)
      b.reference[b.statement] = b.refs;
   b.last_read = op == OP_READ && guard == NULL ? addr : NULL;
   if (b.out) {
      IRExpr* word = addr;
      if (guard)
         word = temp_of(Ity_I64, IRExpr_ITE(guard, addr, constant(WORD_NULL)));
      store_word(b.refs, word);
   }
}

/* The latest reference is carried out by a locked instruction, which waits for the one before. Its address is said to
   come from itself, as no other's does. */
static void saw_locked(void)
{
   ULong own, *address;
   if (b.refs == 0)
      return;
   own = (ULong)b.refs;
   address = &b.ref[b.refs - 1].address;
   *address = (*address & 0xffff) | own << 16 | (*address >> 16) << 32;
}

/* A place where the superblock is left if `guard` (NULL: always), for `next` if that is known only at run time (NULL: it
   is known now). The first look numbers the exits; the second, which meets them in the same order, stores the cursor. */
static void saw_exit(IRExpr* guard, IRExpr* next)
{
   UInt i;
   b.last_read = NULL;
   for (i = 0; i < b.exits; i++)
      if (b.exit[i].refs == b.refs && b.exit[i].insns == b.insns)
         break;
   if (i == b.exits) {
      tl_assert(b.out == NULL);
      if (b.exits == EXITS_MAX) {
         b.overflow = True;
         return;
      }
      b.exit[i].refs = b.refs;
      b.exit[i].insns = b.insns;
      b.exit[i].marked = False;
      b.exit[i].branches = 0;
      b.exit[i].origin = 0;
      b.exits++;
   }
   /* A string instruction that repeats is a loop here, and none to a processor. */
   if (!b.out && (guard || next) && (b.insns == 0 || b.again != b.pc[b.insns - 1])) {
      b.exit[i].branches |= guard ? EXIT_CONDITIONAL : EXIT_INDIRECT;
      b.exit[i].origin = flow_both(b.exit[i].origin, flow_origin(guard ? guard : next));
   }
   if (b.out && b.committed_exit != (Int)i) {
      if (b.exit[i].marked)
         store_word(1 + b.refs, constant(WORD_EXIT | i));
      commit(1 + b.refs, b.exit[i].marked ? guard : NULL);
      b.committed_exit = b.exit[i].marked ? -1 : (Int)i;
   }
}

/* The instruction that begins at `pc` may be a prefetch, which has no statements of its own. */
static void saw_prefetch(Addr pc, UInt bytes)
{
   struct Prefetch prefetch;
   IRExpr *address, *high, *guard;
   if (!prefetch_decode(pc, bytes, &prefetch))
      return;
   address = guard = constant(0);
   if (b.out) {
      IRTemp possible = newIRTemp(b.out->tyenv, Ity_I1);
      address = prefetch_address(b.out, &prefetch);
      high = temp_of(Ity_I64, IRExpr_Binop(Iop_Shr64, address, IRExpr_Const(IRConst_U8(ADDRESS_BITS))));
      addStmtToIRSB(b.out, IRStmt_WrTmp(possible, IRExpr_Binop(Iop_CmpEQ64, high, constant(0))));
      guard = IRExpr_RdTmp(possible);
   }
   saw_reference(OP_PREFETCH, address, 1, guard, NULL);
}

static void saw_statement(IRStmt* s, IRTypeEnv* types)
{
   switch (s->tag) {
   case Ist_IMark:
      saw_instruction(s->Ist.IMark.addr + s->Ist.IMark.delta, s->Ist.IMark.len);
      break;
   case Ist_WrTmp: {
      IRExpr* e = s->Ist.WrTmp.data;
      if (e->tag == Iex_Load)
         saw_reference(OP_READ, e->Iex.Load.addr, sizeofIRType(e->Iex.Load.ty), NULL, NULL);
      break;
   }
   case Ist_Store:
      saw_reference(OP_WRITE, s->Ist.Store.addr,
                    sizeofIRType(typeOfIRExpr(types, s->Ist.Store.data)), NULL, s->Ist.Store.data);
      break;
   case Ist_LoadG: {
      IRLoadG* g = s->Ist.LoadG.details;
      IRType result = Ity_INVALID, type = Ity_INVALID;
      typeOfIRLoadGOp(g->cvt, &result, &type);
      saw_reference(OP_READ, g->addr, sizeofIRType(type), g->guard, NULL);
      break;
   }
   case Ist_StoreG: {
      IRStoreG* g = s->Ist.StoreG.details;
      saw_reference(OP_WRITE, g->addr, sizeofIRType(typeOfIRExpr(types, g->data)), g->guard, NULL);
      break;
   }
   case Ist_CAS: {
      /* One read-modify-write, whether or not it succeeds; it takes in the plain read of the
         old value by which a locked instruction begins. */
      IRCAS* cas = s->Ist.CAS.details;
      Int size = sizeofIRType(typeOfIRExpr(types, cas->dataLo));
      if (cas->dataHi != NULL)
         size *= 2;
      saw_reference(OP_MODIFY, cas->addr, size, NULL, NULL);
      saw_locked();
      break;
   }
   case Ist_LLSC:
      if (s->Ist.LLSC.storedata == NULL)
         saw_reference(OP_READ, s->Ist.LLSC.addr,
                       sizeofIRType(typeOfIRTemp(types, s->Ist.LLSC.result)), NULL, NULL);
      else
         saw_reference(OP_WRITE, s->Ist.LLSC.addr,
                       sizeofIRType(typeOfIRExpr(types, s->Ist.LLSC.storedata)), NULL, NULL);
      b.last_read = NULL;
      break;
   case Ist_Dirty: {
      /* The helpers by which Valgrind runs the instructions that it does not translate. */
      IRDirty* d = s->Ist.Dirty.details;
      IRExpr* guard = d->guard;
      UInt op = d->mFx == Ifx_Read ? OP_READ : d->mFx == Ifx_Write ? OP_WRITE : OP_MODIFY;
      if (guard && guard->tag == Iex_Const && guard->Iex.Const.con->Ico.U1)
         guard = NULL;
      if (d->mFx != Ifx_None)
         saw_reference(op, d->mAddr, d->mSize, guard, NULL);
      break;
   }
   case Ist_Exit:
      saw_exit(s->Ist.Exit.guard, NULL);
      break;
   default:
      break;
   }
}

UInt instrument_reference(Int statement)
{
   return statement < STATEMENTS_MAX ? b.reference[statement] : 0;
}

/* After a statement was seen the first time: what flows. Registers that are written twice before anybody can leave
   count once. */
static void saw_flow(IRStmt* s, IRTypeEnv* types)
{
   ULong origin = 0;
   UInt i;
   Int number = flow_statement(s, types, b.refs, &origin);
   if (number < 0)
      return;
   for (i = 0; i < b.writes; i++)
      if (b.write[i].number == number && b.write[i].exits == b.exits)
         break;
   if (i == WRITES_MAX) {
      b.overflow = True;
      return;
   }
   b.write[i].insn = b.insns - 1;
   b.write[i].number = number;
   b.write[i].exits = b.exits;
   b.write[i].origin = origin;
   b.writes += i == b.writes;
}

/* Walks the statements from `first` on; with b.out, copies them too. */
static void walk(IRSB* in, Int first)
{
   Int i;
   b.insns = b.refs = 0;
   b.again = in->next->tag == Iex_Const ? in->next->Iex.Const.con->Ico.U64 : 0;
   if (!b.out) {
      b.writes = 0;
      flow_begin();
   }
   b.last_read = NULL;
   b.committed_exit = -1;
   for (i = first; i < in->stmts_used; i++) {
      IRStmt* s = in->stmts[i];
      b.statement = i;
      if (i < STATEMENTS_MAX)
         b.reference[i] = 0;
      if (!s || s->tag == Ist_NoOp)
         continue;
      saw_statement(s, in->tyenv);
      if (!b.out)
         saw_flow(s, in->tyenv);
      emit(s);
      if (instrument_prefetches && s->tag == Ist_IMark)
         saw_prefetch(s->Ist.IMark.addr, s->Ist.IMark.len);
   }
   /* The end, which is never marked. Processors know where a return goes. */
   saw_exit(NULL, in->next->tag == Iex_Const || in->jumpkind == Ijk_Ret ? NULL : in->next);
}

/* The end needs no marker; neither does the first exit with fewer references. */
static void mark_exits(void)
{
   UInt i, j;
   for (i = 0; i + 1 < b.exits; i++) {
      b.exit[i].marked = b.exit[i].refs == b.exit[b.exits - 1].refs;
      for (j = 0; j < i && !b.exit[i].marked; j++)
         b.exit[i].marked = b.exit[j].refs == b.exit[i].refs;
   }
}

/* Words that it takes to describe the superblock. */
static UInt described(void)
{
   return 2 + b.insns + 3 * b.refs + 2 * b.exits + 2 * b.writes;
}

static void announce(ULong number)
{
   ULong* w = ring_record(RECORD_BLOCK, described());
   ULong reads = 0;
   UInt i;
   *w++ = number;
   *w++ = b.insns | (ULong)b.refs << 16 | (ULong)b.exits << 32 | (ULong)b.writes << 48;
   for (i = 0; i < b.insns; i++)
      *w++ = b.pc[i] | (ULong)b.bytes[i] << 56;
   for (i = 0; i < b.refs; i++)
      *w++ = b.ref[i].insn | (ULong)b.ref[i].size << 16 | (ULong)b.ref[i].op << 32;
   for (i = 0; i < b.exits; i++)
      *w++ = b.exit[i].refs | (ULong)b.exit[i].insns << 16 | (ULong)b.exit[i].marked << 32 |
             (ULong)b.exit[i].branches << 40;
   for (i = 0; i < b.refs; i++) {
      *w++ = b.ref[i].address;
      *w++ = b.ref[i].data;
   }
   for (i = 0; i < b.exits; i++)
      *w++ = b.exit[i].origin;
   for (i = 0; i < b.writes; i++) {
      *w++ = b.write[i].insn | (ULong)b.write[i].number << 16;
      *w++ = b.write[i].origin;
   }
   ring_commit();
   for (i = 0; i < b.refs && i < 64; i++)
      reads |= (ULong)(b.ref[i].op != OP_WRITE && b.ref[i].op != OP_MODIFY) << i;
   spinning_block(number, reads);
}

IRSB* instrument(VgCallbackClosure* closure, IRSB* in, const VexGuestLayout* layout,
                 const VexGuestExtents* extents, const VexArchInfo* host, IRType gWordTy,
                 IRType hWordTy)
{
   Int first = 0, i;
   if (!ring_alive || memory_is_wrapper(closure->readdr))
      return in;
   while (first < in->stmts_used && in->stmts[first]->tag != Ist_IMark)
      first++;
   if (first == in->stmts_used)
      return in;

   b.out = NULL;
   b.exits = 0;
   b.overflow = False;
   walk(in, first);
   /* No translation comes near these bounds: Valgrind's own are lower. */
   tl_assert(!b.overflow && described() < BLOCK_WORDS_MAX);
   mark_exits();
   announce(next_number);
   latency_of_block(next_number, in, first);

   b.out = deepCopyIRSBExceptStmts(in);
   for (i = 0; i < first; i++)
      addStmtToIRSB(b.out, in->stmts[i]);
   hooks_instrument(b.out, closure->nraddr);
   begin_run(next_number);
   walk(in, first);
   next_number++;
   return b.out;
}
