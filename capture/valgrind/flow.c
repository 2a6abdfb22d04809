/* Data flow in a superblock: from which of its loads, and from which registers at its entry, an address, a register or
   the way a branch goes comes.

   What a value comes from, its *origin*, is one word:

     bits 0..15    integer registers at the entry, by their number in the instruction set
     bits 16..31   a reference of the superblock that loads, counted from 1; 0: none
     bits 32..47   another, an earlier one; bits 48..63 a third

   The address of a locked instruction's reference comes from that reference itself, too: that marks it (instrument.c).

   A value comes from all that it is computed of, and what is loaded comes from the load alone. Values that go through
   other registers (vectors, flags) or memory and leave the superblock there come from nothing. Of more than three loads
   the latest three count.

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#include "tool.h"

#include "pub_tool_guest.h"
#include "pub_tool_libcbase.h"

enum { TEMPS_MAX = 1 << 14, REGISTERS = 16 };
#define FIRST_REGISTER ((Int)offsetof(VexGuestArchState, guest_RAX))

static ULong of_temp[TEMPS_MAX];
static ULong of_register[REGISTERS];
static Bool written[REGISTERS];

/* The registers' numbers in the order of the guest's state are those of the instruction set. */
static Int register_at(Int offset)
{
   Int place = offset - FIRST_REGISTER;
   return place >= 0 && place < 8 * REGISTERS ? place / 8 : -1;
}

ULong flow_both(ULong a, ULong b)
{
   ULong all = (a | b) & 0xffff;
   UInt of_a[3], of_b[3], i = 0, j = 0, shift;
   UInt k;
   if (a == b || b == 0)
      return a;
   if (a == 0)
      return b;
   for (k = 0; k < 3; k++) {
      of_a[k] = (a >> (16 + 16 * k)) & 0xffff;
      of_b[k] = (b >> (16 + 16 * k)) & 0xffff;
   }
   /* Both have their latest first. */
   for (shift = 16; shift < 64; shift += 16) {
      UInt x = i < 3 ? of_a[i] : 0, y = j < 3 ? of_b[j] : 0;
      UInt latest = x > y ? x : y;
      i += x == latest;
      j += y == latest;
      all |= (ULong)latest << shift;
   }
   return all;
}

ULong flow_origin(IRExpr* e)
{
   ULong origin = 0;
   Int i;
   switch (e->tag) {
   case Iex_RdTmp:
      return e->Iex.RdTmp.tmp < TEMPS_MAX ? of_temp[e->Iex.RdTmp.tmp] : 0;
   case Iex_Get:
      i = register_at(e->Iex.Get.offset);
      return i >= 0 ? of_register[i] : 0;
   case Iex_Unop:
      return flow_origin(e->Iex.Unop.arg);
   case Iex_Binop:
      return flow_both(flow_origin(e->Iex.Binop.arg1), flow_origin(e->Iex.Binop.arg2));
   case Iex_Triop: {
      IRTriop* op = e->Iex.Triop.details;
      return flow_both(flow_origin(op->arg1), flow_both(flow_origin(op->arg2), flow_origin(op->arg3)));
   }
   case Iex_Qop: {
      IRQop* op = e->Iex.Qop.details;
      return flow_both(flow_both(flow_origin(op->arg1), flow_origin(op->arg2)),
                       flow_both(flow_origin(op->arg3), flow_origin(op->arg4)));
   }
   case Iex_ITE:
      return flow_both(flow_origin(e->Iex.ITE.cond),
                       flow_both(flow_origin(e->Iex.ITE.iftrue), flow_origin(e->Iex.ITE.iffalse)));
   case Iex_CCall:
      for (i = 0; e->Iex.CCall.args[i]; i++)
         origin = flow_both(origin, flow_origin(e->Iex.CCall.args[i]));
      return origin;
   default:
      return 0;
   }
}

void flow_begin(void)
{
   UInt i;
   VG_(memset)(of_temp, 0, sizeof of_temp);
   for (i = 0; i < REGISTERS; i++) {
      of_register[i] = 1ULL << i;
      written[i] = False;
   }
}

static void set(IRTemp temp, ULong origin)
{
   if (temp != IRTemp_INVALID && temp < TEMPS_MAX)
      of_temp[temp] = origin;
}

Int flow_statement(IRStmt* s, IRTypeEnv* types, UInt refs, ULong* origin)
{
   ULong load = (ULong)refs << 16;
   Int number;
   switch (s->tag) {
   case Ist_WrTmp:
      set(s->Ist.WrTmp.tmp,
          s->Ist.WrTmp.data->tag == Iex_Load ? load : flow_origin(s->Ist.WrTmp.data));
      return -1;
   case Ist_LoadG:
      set(s->Ist.LoadG.details->dst, flow_both(load, flow_origin(s->Ist.LoadG.details->alt)));
      return -1;
   case Ist_CAS:
      set(s->Ist.CAS.details->oldLo, load);
      set(s->Ist.CAS.details->oldHi, load);
      return -1;
   case Ist_LLSC:
      if (s->Ist.LLSC.storedata == NULL)
         set(s->Ist.LLSC.result, load);
      return -1;
   case Ist_Dirty: {
      /* What a helper returns comes from what it read, if anything. It may write registers, too. */
      IRDirty* d = s->Ist.Dirty.details;
      set(d->tmp, d->mFx == Ifx_Read || d->mFx == Ifx_Modify ? load : 0);
      return -1;
   }
   case Ist_Put:
      number = register_at(s->Ist.Put.offset);
      if (number < 0)
         return -1;
      *origin = flow_origin(s->Ist.Put.data);
      /* What is left of a register that is written in part stays. */
      if (sizeofIRType(typeOfIRExpr(types, s->Ist.Put.data)) < 4)
         *origin = flow_both(*origin, of_register[number]);
      of_register[number] = *origin;
      if (!written[number] && *origin == 1ULL << number)
         return -1;
      written[number] = True;
      return number;
   default:
      return -1;
   }
}
