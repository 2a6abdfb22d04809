/* Software prefetches: Valgrind translates them to nothing, so they are found in the program's own code, and the
   address is computed from the guest's registers as the instruction begins.

   For that the registers must be up to date at each instruction: `--px-default=allregs-at-each-insn`, which
   `domicile record --prefetches` gives.

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#include "tool.h"

#include "pub_tool_guest.h"

#define GUEST(name) ((Int)offsetof(VexGuestArchState, guest_##name))

static const Int registers[16] = {
   GUEST(RAX), GUEST(RCX), GUEST(RDX), GUEST(RBX), GUEST(RSP), GUEST(RBP), GUEST(RSI), GUEST(RDI),
   GUEST(R8),  GUEST(R9),  GUEST(R10), GUEST(R11), GUEST(R12), GUEST(R13), GUEST(R14), GUEST(R15),
};

static Long signed_32(const UChar* at)
{
   return (Int)(at[0] | (UInt)at[1] << 8 | (UInt)at[2] << 16 | (UInt)at[3] << 24);
}

Bool prefetch_decode(Addr pc, UInt bytes, struct Prefetch* p)
{
   const UChar *code = (const UChar*)pc, *end = code + bytes;
   UInt rex = 0, modrm, mod, kind, rm;
   p->base = p->index = p->segment = -1;
   p->shift = 0;
   p->displacement = 0;
   p->narrow = False;
   for (; code < end; code++) {
      if (*code == 0x67)
         p->narrow = True;
      else if (*code == 0x64)
         p->segment = GUEST(FS_CONST);
      else if (*code == 0x65)
         p->segment = GUEST(GS_CONST);
      else if (*code != 0x66 && *code != 0xf2 && *code != 0xf3 && *code != 0x2e && *code != 0x36 &&
               *code != 0x3e && *code != 0x26)
         break;
   }
   if (code < end && (*code & 0xf0) == 0x40)
      rex = *code++;
   /* The opcode's two bytes, and ModRM. */
   if (end - code < 3 || code[0] != 0x0f || (code[1] != 0x18 && code[1] != 0x0d))
      return False;
   modrm = code[2];
   mod = modrm >> 6;
   kind = modrm >> 3 & 7;
   rm = modrm & 7;
   /* prefetchnta, t0, t1, t2; prefetch, prefetchw, prefetchwt1. The others do nothing, or fetch code. */
   if (mod == 3 || kind > (code[1] == 0x18 ? 3 : 2))
      return False;
   code += 3;
   if (rm == 4) {
      UInt sib, index;
      if (code == end)
         return False;
      sib = *code++;
      index = (sib >> 3 & 7) | (rex & 2) << 2;
      if (index != 4)
         p->index = registers[index];
      p->shift = sib >> 6;
      if ((sib & 7) != 5 || mod != 0)
         p->base = registers[(sib & 7) | (rex & 1) << 3];
      else
         mod = 2; /* no base, and four bytes */
   } else if (rm == 5 && mod == 0) {
      p->displacement = pc + bytes; /* relative to the next instruction */
      mod = 2;
   } else {
      p->base = registers[rm | (rex & 1) << 3];
   }
   if (mod == 1 && end - code == 1)
      p->displacement += (signed char)*code;
   else if (mod == 2 && end - code == 4)
      p->displacement += signed_32(code);
   else if (mod != 0 || end != code)
      return False; /* not what the processor would take it for */
   return True;
}

static IRExpr* temp_of(IRSB* out, IRExpr* value)
{
   IRTemp t = newIRTemp(out->tyenv, Ity_I64);
   addStmtToIRSB(out, IRStmt_WrTmp(t, value));
   return IRExpr_RdTmp(t);
}

static IRExpr* constant(ULong value)
{
   return IRExpr_Const(IRConst_U64(value));
}

static IRExpr* register_of(IRSB* out, Int offset)
{
   return temp_of(out, IRExpr_Get(offset, Ity_I64));
}

static IRExpr* sum(IRSB* out, IRExpr* a, IRExpr* b)
{
   return temp_of(out, IRExpr_Binop(Iop_Add64, a, b));
}

IRExpr* prefetch_address(IRSB* out, const struct Prefetch* p)
{
   IRExpr* address = constant(p->displacement);
   if (p->base >= 0)
      address = sum(out, register_of(out, p->base), address);
   if (p->index >= 0) {
      IRExpr* scaled = temp_of(out, IRExpr_Binop(Iop_Shl64, register_of(out, p->index),
                                                 IRExpr_Const(IRConst_U8(p->shift))));
      address = sum(out, address, scaled);
   }
   if (p->narrow)
      address = temp_of(out, IRExpr_Binop(Iop_And64, address, constant(0xffffffff)));
   if (p->segment >= 0)
      address = sum(out, address, register_of(out, p->segment));
   return address;
}
