/* How long the instructions of a superblock wait for each other.

   For each part of the guest's state that a superblock writes, this follows the data flow back to the parts that were
   there when it was entered, and adds up the clocks that the instructions on the way take:

      after `add rax, [rbx]`:  rax = max(rax + 1, rbx + 5)

   The recorder plays these through on samples of the run, and so finds how many clocks each superblock takes where
   nothing misses. Registers and flags are followed, and values that go through memory: each load's value is a part of
   the state of its own, and each store's is one at the end. The recorder, which knows the addresses, joins them.
   Branches that were foreseen wrongly are not followed.

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#include "tool.h"

#include "pub_tool_guest.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"

/* Parts of the state: 16 integer registers, 16 vector registers, the flags, the x87 stack, and the order of locked
   instructions, each of which waits for the one before. */
enum {
   INTEGERS = 16,
   VECTORS = 16,
   FLAGS = INTEGERS + VECTORS,
   X87 = FLAGS + 1,
   ORDER = X87 + 1,
   PARTS = ORDER + 1,
   /* After them, what the first references of a superblock load. */
   LOADS = 20,
   SOURCES = PARTS + LOADS,
   STORES = 20, /* of which as many are followed */
   /* In the record, references follow from here. */
   FIRST_REFERENCE = 64,
   REFERENCES = 128,
   NOTHING = -1
};

/* Clocks of instructions: the least of what Agner Fog's "Instruction tables" (2022) give for AMD's Zen 2 to 4 and
   Intel's Skylake to Golden Cove. */
enum {
   SIMPLE = 1,
   DIVIDE = 12,
   FLOAT_DIVIDE = 11,
   FLOAT_ROOT = 13,
   CONVERT = 4,
   HELPER = 20, /* what Valgrind runs by a helper of its own: mostly slow, whatever it is */
};

/* Those that programs wait for most; the recorder, which can time them here, says what they are. */
Int clocks_load = 4, clocks_multiply = 3, clocks_float_add = 3, clocks_float_multiply = 3, clocks_locked = 18;

/* No chain within one superblock is longer. */
enum { CLOCKS_MAX = 4095 };

/* How much later than each part of the state at the entry a value is there; NOTHING: it does not come from it. */
struct Value {
   Short after[SOURCES];
   /* Simple operations of the instruction that made it are one clock, whatever their number in IR; addresses cost
      nothing beyond their load. They are charged when the value leaves the instruction. */
   UChar pending;
   UShort insn;
};

static struct Value* temps = NULL;
static Int temps_room = 0;
static struct Value state[PARTS];
/* The values that are written, by store. */
static struct Value stored[STORES];
static UInt stored_by[STORES], stores;
/* Of the statement at hand, counted from 1; 0: none. */
static UInt reference;
static UShort insn;
/* The last instruction that wrote flags. */
static UShort flags_insn;

static struct Value constant_value(void)
{
   struct Value v;
   Int i;
   v.pending = 0;
   for (i = 0; i < SOURCES; i++)
      v.after[i] = NOTHING;
   v.insn = insn;
   return v;
}

static void add(struct Value* v, Int clocks)
{
   Int i;
   for (i = 0; i < SOURCES; i++)
      if (v->after[i] != NOTHING)
         v->after[i] = v->after[i] + clocks > CLOCKS_MAX ? CLOCKS_MAX : v->after[i] + clocks;
}

static void settle(struct Value* v)
{
   if (v->pending)
      add(v, SIMPLE);
   v->pending = 0;
   v->insn = insn;
}

static void join(struct Value* v, const struct Value* w)
{
   Int i;
   for (i = 0; i < SOURCES; i++)
      if (w->after[i] > v->after[i])
         v->after[i] = w->after[i];
   v->pending |= w->pending;
}

/* The part at an offset of the guest's state, or NOTHING. */
static Int part_at(Int offset)
{
   const Int integers = offsetof(VexGuestArchState, guest_RAX);
   const Int flags = offsetof(VexGuestArchState, guest_CC_OP), flags_end = offsetof(VexGuestArchState, guest_DFLAG);
   const Int vectors = offsetof(VexGuestArchState, guest_YMM0);
   const Int x87 = offsetof(VexGuestArchState, guest_FPREG);
   if (offset >= integers && offset < integers + 8 * INTEGERS)
      return (offset - integers) / 8;
   if (offset >= flags && offset < flags_end)
      return FLAGS;
   if (offset >= vectors && offset < vectors + 32 * VECTORS)
      return INTEGERS + (offset - vectors) / 32;
   if (offset >= x87 && offset < x87 + 8 * 8)
      return X87;
   return NOTHING;
}

static struct Value atom(const IRExpr* e)
{
   struct Value v;
   if (e->tag != Iex_RdTmp)
      return constant_value();
   v = temps[e->Iex.RdTmp.tmp];
   if (v.insn != insn)
      settle(&v);
   return v;
}

/* Operations that only give a value another form: the hardware does nothing for them. */
static Bool is_free(IROp op)
{
   switch (op) {
   case Iop_8Uto16: case Iop_8Uto32: case Iop_8Uto64: case Iop_16Uto32: case Iop_16Uto64: case Iop_32Uto64:
   case Iop_8Sto16: case Iop_8Sto32: case Iop_8Sto64: case Iop_16Sto32: case Iop_16Sto64: case Iop_32Sto64:
   case Iop_64to8: case Iop_64to16: case Iop_64to32: case Iop_32to8: case Iop_32to16: case Iop_16to8:
   case Iop_64HIto32: case Iop_128to64: case Iop_128HIto64: case Iop_64HLto128: case Iop_1Uto8: case Iop_1Uto32:
   case Iop_1Uto64: case Iop_64to1: case Iop_32to1: case Iop_V128to64: case Iop_V128HIto64: case Iop_64HLtoV128:
   case Iop_64UtoV128: case Iop_32UtoV128: case Iop_V128to32: case Iop_SetV128lo64: case Iop_SetV128lo32:
   case Iop_V256toV128_0: case Iop_V256toV128_1: case Iop_V128HLtoV256: case Iop_V256to64_0: case Iop_V256to64_1:
   case Iop_V256to64_2: case Iop_V256to64_3: case Iop_64x4toV256: case Iop_ReinterpF64asI64:
   case Iop_ReinterpI64asF64: case Iop_ReinterpF32asI32: case Iop_ReinterpI32asF32:
      return True;
   default:
      return False;
   }
}

/* Clocks of an operation that is none of the simple ones; 0: it is one of those. */
static Int clocks_of(IROp op)
{
   switch (op) {
   case Iop_Mul8: case Iop_Mul16: case Iop_Mul32: case Iop_Mul64: case Iop_MullS8: case Iop_MullS16:
   case Iop_MullS32: case Iop_MullS64: case Iop_MullU8: case Iop_MullU16: case Iop_MullU32: case Iop_MullU64:
   case Iop_Mul16x8: case Iop_Mul32x4: case Iop_MulHi16Ux8: case Iop_MulHi16Sx8: case Iop_MullEven32Ux4:
   case Iop_Mul16x16: case Iop_Mul32x8:
      return clocks_multiply;
   case Iop_DivU32: case Iop_DivS32: case Iop_DivU64: case Iop_DivS64: case Iop_DivModU64to32:
   case Iop_DivModS64to32: case Iop_DivModU128to64: case Iop_DivModS128to64: case Iop_DivModS64to64:
      return DIVIDE;
   case Iop_AddF64: case Iop_SubF64: case Iop_AddF32: case Iop_SubF32: case Iop_CmpF64: case Iop_CmpF32:
   case Iop_Add64F0x2: case Iop_Sub64F0x2: case Iop_Add32F0x4: case Iop_Sub32F0x4: case Iop_Add64Fx2:
   case Iop_Sub64Fx2: case Iop_Add32Fx4: case Iop_Sub32Fx4: case Iop_Add64Fx4: case Iop_Sub64Fx4:
   case Iop_Add32Fx8: case Iop_Sub32Fx8:
      return clocks_float_add;
   case Iop_MulF64: case Iop_MulF32: case Iop_Mul64F0x2: case Iop_Mul32F0x4: case Iop_Mul64Fx2:
   case Iop_Mul32Fx4: case Iop_Mul64Fx4: case Iop_Mul32Fx8: case Iop_MAddF64: case Iop_MSubF64:
   case Iop_MAddF32: case Iop_MSubF32:
      return clocks_float_multiply;
   case Iop_DivF64: case Iop_DivF32: case Iop_Div64F0x2: case Iop_Div32F0x4: case Iop_Div64Fx2:
   case Iop_Div32Fx4: case Iop_Div64Fx4: case Iop_Div32Fx8:
      return FLOAT_DIVIDE;
   case Iop_SqrtF64: case Iop_SqrtF32: case Iop_Sqrt64F0x2: case Iop_Sqrt32F0x4: case Iop_Sqrt64Fx2:
   case Iop_Sqrt32Fx4: case Iop_Sqrt64Fx4: case Iop_Sqrt32Fx8:
      return FLOAT_ROOT;
   case Iop_F64toI32S: case Iop_F64toI64S: case Iop_I32StoF64: case Iop_I64StoF64: case Iop_F32toI32S:
   case Iop_F32toI64S: case Iop_I32StoF32: case Iop_I64StoF32: case Iop_F32toF64: case Iop_F64toF32:
      return CONVERT;
   default:
      return 0;
   }
}

static struct Value operation(IROp op, IRExpr* const* of, Int count)
{
   struct Value v = constant_value();
   Int i, clocks = clocks_of(op);
   for (i = 0; i < count; i++) {
      struct Value w = atom(of[i]);
      join(&v, &w);
   }
   if (clocks > 0) {
      add(&v, clocks);
      v.pending = 0;
   } else if (!is_free(op))
      v.pending = 1;
   return v;
}

static struct Value loaded(IRExpr* address, Int clocks)
{
   struct Value v = atom(address);
   v.pending = 0;
   add(&v, clocks);
   if (reference > 0 && reference <= LOADS)
      v.after[PARTS + reference - 1] = 0;
   return v;
}

/* A plain store of a value. */
static void store(IRExpr* data)
{
   struct Value v = atom(data);
   if (reference == 0 || reference > REFERENCES || stores == STORES)
      return;
   settle(&v);
   stored_by[stores] = reference - 1;
   stored[stores++] = v;
}

static struct Value locked(IRExpr* address)
{
   struct Value v = atom(address);
   v.pending = 0;
   join(&v, &state[ORDER]);
   add(&v, clocks_locked);
   state[ORDER] = v;
   return v;
}

static struct Value expression(IRExpr* e)
{
   struct Value v = constant_value();
   IRExpr* of[4];
   Int i, part;
   switch (e->tag) {
   case Iex_RdTmp:
      return atom(e);
   case Iex_Get:
      part = part_at(e->Iex.Get.offset);
      return part == NOTHING ? v : state[part];
   case Iex_GetI:
      return state[X87];
   case Iex_Unop:
      of[0] = e->Iex.Unop.arg;
      return operation(e->Iex.Unop.op, of, 1);
   case Iex_Binop:
      of[0] = e->Iex.Binop.arg1, of[1] = e->Iex.Binop.arg2;
      return operation(e->Iex.Binop.op, of, 2);
   case Iex_Triop:
      of[0] = e->Iex.Triop.details->arg1, of[1] = e->Iex.Triop.details->arg2, of[2] = e->Iex.Triop.details->arg3;
      return operation(e->Iex.Triop.details->op, of, 3);
   case Iex_Qop:
      of[0] = e->Iex.Qop.details->arg1, of[1] = e->Iex.Qop.details->arg2;
      of[2] = e->Iex.Qop.details->arg3, of[3] = e->Iex.Qop.details->arg4;
      return operation(e->Iex.Qop.details->op, of, 4);
   case Iex_Load:
      return loaded(e->Iex.Load.addr, clocks_load);
   case Iex_ITE: {
      struct Value w = atom(e->Iex.ITE.cond);
      join(&v, &w);
      w = atom(e->Iex.ITE.iftrue);
      join(&v, &w);
      w = atom(e->Iex.ITE.iffalse);
      join(&v, &w);
      v.pending = 1;
      return v;
   }
   case Iex_CCall:
      for (i = 0; e->Iex.CCall.args[i]; i++) {
         struct Value w = atom(e->Iex.CCall.args[i]);
         join(&v, &w);
      }
      v.pending = 1;
      return v;
   default:
      return v;
   }
}

/* Writes a part. Flags are several words, which one instruction writes together. */
static void put(Int part, struct Value v)
{
   if (part == NOTHING)
      return;
   /* The stack engine adds to the stack pointer ahead of everything else. */
   if (part == (offsetof(VexGuestArchState, guest_RSP) - offsetof(VexGuestArchState, guest_RAX)) / 8)
      v.pending = 0;
   settle(&v);
   if (part == FLAGS && flags_insn == insn) {
      join(&state[part], &v);
      return;
   }
   if (part == FLAGS)
      flags_insn = insn;
   state[part] = v;
}

static void statement(const IRStmt* s)
{
   switch (s->tag) {
   case Ist_IMark:
      insn++;
      break;
   case Ist_WrTmp:
      temps[s->Ist.WrTmp.tmp] = expression(s->Ist.WrTmp.data);
      break;
   case Ist_Put:
      put(part_at(s->Ist.Put.offset), atom(s->Ist.Put.data));
      break;
   case Ist_PutI:
      put(X87, atom(s->Ist.PutI.details->data));
      break;
   case Ist_LoadG: {
      const IRLoadG* g = s->Ist.LoadG.details;
      struct Value v = loaded(g->addr, clocks_load), other = atom(g->alt);
      join(&v, &other);
      temps[g->dst] = v;
      break;
   }
   case Ist_Store:
      store(s->Ist.Store.data);
      break;
   case Ist_CAS:
      temps[s->Ist.CAS.details->oldLo] = locked(s->Ist.CAS.details->addr);
      if (s->Ist.CAS.details->oldHi != IRTemp_INVALID)
         temps[s->Ist.CAS.details->oldHi] = temps[s->Ist.CAS.details->oldLo];
      break;
   case Ist_LLSC:
      temps[s->Ist.LLSC.result] = locked(s->Ist.LLSC.addr);
      break;
   case Ist_Dirty:
      if (s->Ist.Dirty.details->tmp != IRTemp_INVALID) {
         struct Value v = constant_value();
         Int i;
         for (i = 0; s->Ist.Dirty.details->args[i]; i++)
            if (!is_IRExpr_VECRET_or_GSPTR(s->Ist.Dirty.details->args[i])) {
               struct Value w = atom(s->Ist.Dirty.details->args[i]);
               join(&v, &w);
            }
         v.pending = 0;
         add(&v, HELPER);
         temps[s->Ist.Dirty.details->tmp] = v;
      }
      break;
   default:
      break;
   }
}

/* A source's number in the record. */
static ULong named(Int source)
{
   return source < PARTS ? (ULong)source : (ULong)(FIRST_REFERENCE + source - PARTS);
}

/* Words for the ways to a value, written where there is room (NULL: only counted). `own`: the part that it is the value of, or NOTHING. */
static UInt ways(const struct Value* v, ULong to, Int own, ULong* w)
{
   UInt words = 0;
   Bool fresh = True;
   Int j;
   for (j = 0; j < SOURCES; j++)
      if (v->after[j] != NOTHING && !(own == j && v->after[j] == 0)) {
         if (w)
            w[words] = to | named(j) << 8 | (ULong)v->after[j] << 16;
         words++, fresh = False;
      }
   /* A value that comes from nothing is there at once. */
   if (fresh && (own == NOTHING || v->after[own] == NOTHING)) {
      if (w)
         w[words] = to | 0xffULL << 8;
      words++;
   }
   return words;
}

void latency_of_block(ULong number, const IRSB* block, Int first)
{
   Int i;
   UInt words = 0, k;
   ULong* w;
   if (block->tyenv->types_used > temps_room) {
      temps_room = 2 * block->tyenv->types_used;
      temps = VG_(realloc)("domicile.latency", temps, temps_room * sizeof *temps);
   }
   insn = flags_insn = 0;
   stores = 0;
   for (i = 0; i < block->tyenv->types_used; i++)
      temps[i] = constant_value();
   for (i = 0; i < PARTS; i++) {
      state[i] = constant_value();
      state[i].after[i] = 0;
   }
   for (i = first; i < block->stmts_used; i++)
      if (block->stmts[i]) {
         reference = instrument_reference(i);
         statement(block->stmts[i]);
      }

   for (i = 0; i < PARTS; i++)
      words += ways(&state[i], i, i, NULL);
   for (k = 0; k < stores; k++)
      words += ways(&stored[k], FIRST_REFERENCE + stored_by[k], NOTHING, NULL);
   if (words == 0)
      return;
   w = ring_record(RECORD_LATENCY, 1 + words);
   *w++ = number;
   for (i = 0; i < PARTS; i++)
      w += ways(&state[i], i, i, w);
   for (k = 0; k < stores; k++)
      w += ways(&stored[k], FIRST_REFERENCE + stored_by[k], NOTHING, w);
   ring_commit();
}
