//===- translate.cpp - what the analysis knows, as instructions
//------------===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "summary/translate.h"
#include "summary/hoist.h"
#include "summary/names.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"

using namespace llvm;

namespace domicile {

Value *Translator::write(const SCEV *S) {
  if (Value *Known = Written.lookup(S))
    return Known;
  return Written[S] = make(S);
}

/// The largest or smallest operand.
Value *Translator::fold(const SCEV *S, CmpInst::Predicate Keep) {
  Value *Best = nullptr;
  for (const SCEV *Part : S->operands()) {
    Value *Next = write(Part);
    Best = Best ? To.CreateSelect(To.CreateICmp(Keep, Best, Next), Best, Next)
                : Next;
  }
  return Best;
}

/// Never traps: by zero is by one.
Value *Translator::divide(Value *A, Value *B, bool Signed, bool Remainder) {
  Type *Ty = B->getType();
  Value *Zero = ConstantInt::get(Ty, 0), *One = ConstantInt::get(Ty, 1);
  if (!Signed) {
    Value *By = To.CreateSelect(To.CreateICmpEQ(B, Zero), One, B);
    return Remainder ? To.CreateURem(A, By) : To.CreateUDiv(A, By);
  }
  // The most negative number by minus one traps too.
  Value *Minus = To.CreateICmpEQ(B, ConstantInt::getAllOnesValue(Ty));
  Value *Odd = To.CreateOr(Minus, To.CreateICmpEQ(B, Zero));
  Value *By = To.CreateSelect(Odd, One, B);
  if (Remainder)
    return To.CreateSelect(Minus, Zero, To.CreateSRem(A, By));
  return To.CreateSelect(Minus, To.CreateNeg(A), To.CreateSDiv(A, By));
}

Value *Translator::make(const SCEV *S) {
  switch (S->getSCEVType()) {
  case scConstant:
    return cast<SCEVConstant>(S)->getValue();
  case scUnknown:
    return write(cast<SCEVUnknown>(S)->getValue());
  case scTruncate:
    return To.CreateTrunc(write(S->operands()[0]), S->getType());
  case scZeroExtend:
    return To.CreateZExt(write(S->operands()[0]), S->getType());
  case scSignExtend:
    return To.CreateSExt(write(S->operands()[0]), S->getType());
  case scPtrToInt:
    return To.CreatePtrToInt(write(S->operands()[0]), S->getType());
  case scAddExpr: {
    Value *Pointer = nullptr, *Sum = nullptr;
    for (const SCEV *Part : S->operands()) {
      Value *Next = write(Part);
      if (Next->getType()->isPointerTy())
        Pointer = Next;
      else
        Sum = Sum ? To.CreateAdd(Sum, Next) : Next;
    }
    return Pointer ? To.CreateGEP(To.getInt8Ty(), Pointer, Sum) : Sum;
  }
  case scMulExpr: {
    Value *Product = nullptr;
    for (const SCEV *Part : S->operands()) {
      Value *Next = write(Part);
      Product = Product ? To.CreateMul(Product, Next) : Next;
    }
    return Product;
  }
  case scUDivExpr:
    return divide(write(S->operands()[0]), write(S->operands()[1]), false,
                  false);
  case scSMaxExpr:
    return fold(S, CmpInst::ICMP_SGT);
  case scUMaxExpr:
    return fold(S, CmpInst::ICMP_UGT);
  case scSMinExpr:
    return fold(S, CmpInst::ICMP_SLT);
  case scUMinExpr:
  case scSequentialUMinExpr:
    return fold(S, CmpInst::ICMP_ULT);
  case scAddRecExpr:
  case scVScale:
  case scCouldNotCompute:
    break;
  }
  llvm_unreachable("not known before the region");
}

Value *Translator::write(Value *V) {
  if (isa<GlobalVariable>(V) || isa<Argument>(V) || isHoisted(V))
    return Leaf(V);
  if (isa<Constant>(V))
    return V;
  if (Value *Known = Copied.lookup(V))
    return Known;
  Value *Made = copy(cast<Instruction>(*V));
  return Copied[V] = Made;
}

Value *Translator::copy(Instruction &I) {
  if (auto *Call = dyn_cast<CallBase>(&I)) {
    StringRef Name = calleeName(*Call);
    return divide(write(Call->getArgOperand(0)), write(Call->getArgOperand(1)),
                  Name.contains(".s"), Name.starts_with(RemainderName));
  }
  switch (I.getOpcode()) {
  case Instruction::SDiv:
  case Instruction::UDiv:
  case Instruction::SRem:
  case Instruction::URem:
    return divide(write(I.getOperand(0)), write(I.getOperand(1)),
                  I.getOpcode() == Instruction::SDiv ||
                      I.getOpcode() == Instruction::SRem,
                  I.getOpcode() == Instruction::SRem ||
                      I.getOpcode() == Instruction::URem);
  default:
    break;
  }
  SmallVector<Value *, 4> Operands;
  for (Value *Operand : I.operands())
    Operands.push_back(write(Operand));
  Instruction *Made = I.clone();
  Made->dropPoisonGeneratingFlags();
  Made->dropUnknownNonDebugMetadata();
  Made->setDebugLoc(DebugLoc());
  for (unsigned N = 0; N < Operands.size(); ++N)
    Made->setOperand(N, Operands[N]);
  To.Insert(Made);
  // Shifts by too much.
  return isa<BinaryOperator>(Made) && Made->isShift() ? To.CreateFreeze(Made)
                                                      : Made;
}

Value *Translator::write(const Conditions &All) {
  Value *Holds = To.getTrue();
  for (const Condition &One : All) {
    Value *Next = nullptr;
    switch (One.Is) {
    case Condition::Kind::Holds:
      Next = write(One.Bool);
      break;
    case Condition::Kind::Fails:
      Next = To.CreateNot(write(One.Bool));
      break;
    case Condition::Kind::Positive: {
      Value *Count = write(One.Left);
      Next = To.CreateICmpSGT(Count, ConstantInt::get(Count->getType(), 0));
      break;
    }
    case Condition::Kind::Equal:
      Next = To.CreateICmpEQ(write(One.Left), write(One.Right));
      break;
    }
    Holds = To.CreateAnd(Holds, Next);
  }
  return Holds;
}

} // namespace domicile
