//===- known.cpp - what can be computed before a region
//--------------------===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "summary/known.h"
#include "summary/hoist.h"
#include "summary/names.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace domicile {

/// Deeper than this no bound or address is; it keeps a cycle from running on.
static constexpr unsigned MostDepth = 40;

using Leaves = SmallSetVector<Value *, 16>;

static bool visit(Value *V, Leaves *Found, unsigned Depth = 0) {
  if (isa<ConstantInt>(V) || isa<ConstantPointerNull>(V) ||
      isa<GlobalVariable>(V) || isa<ConstantFP>(V))
    return true;
  if (auto *A = dyn_cast<Argument>(V)) {
    // The first two are the thread's own numbers.
    if (A->getArgNo() < 2)
      return false;
    if (Found)
      Found->insert(V);
    return true;
  }
  if (isHoisted(V)) {
    if (Found)
      Found->insert(V);
    return true;
  }
  auto *I = dyn_cast<Instruction>(V);
  if (!I || Depth > MostDepth)
    return false;
  bool Quotient = calls(I, QuotientName) || calls(I, RemainderName);
  if (!Quotient && !isa<BinaryOperator>(I) && !isa<CastInst>(I) &&
      !isa<CmpInst>(I) && !isa<SelectInst>(I) && !isa<GetElementPtrInst>(I) &&
      !isa<FreezeInst>(I))
    return false;
  if (I->getType()->isVectorTy())
    return false;
  unsigned Operands = Quotient ? 2 : I->getNumOperands();
  for (unsigned N = 0; N < Operands; ++N)
    if (!visit(I->getOperand(N), Found, Depth + 1))
      return false;
  return true;
}

static bool visit(const SCEV *S, Leaves *Found) {
  if (isa<SCEVConstant>(S))
    return true;
  if (isa<SCEVCouldNotCompute>(S) || isa<SCEVAddRecExpr>(S) ||
      isa<SCEVVScale>(S))
    return false;
  if (auto *U = dyn_cast<SCEVUnknown>(S))
    return visit(U->getValue(), Found);
  return all_of(S->operands(),
                [&](const SCEV *Part) { return visit(Part, Found); });
}

bool isKnownBefore(const SCEV *S) { return visit(S, nullptr); }
bool isKnownBefore(const Value *V) {
  return visit(const_cast<Value *>(V), nullptr);
}
void leavesOf(const SCEV *S, Leaves &Found) { visit(S, &Found); }
void leavesOf(Value *V, Leaves &Found) { visit(V, &Found); }

} // namespace domicile
