//===- own.cpp - memory that a thread shares with nobody
//-------------------===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "summary/own.h"
#include "summary/names.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace domicile {

/// Deeper nobody looks for it.
static constexpr unsigned MostSteps = 4;

static bool isOwn(const Value *Pointer, unsigned Depth);

/// Whether all that is stored at \p Offset of \p Variable are addresses of the
/// thread's own memory. The end of a reduction may be given its own address.
static bool holdsOwn(const AllocaInst &Variable, int64_t Offset,
                     unsigned Depth) {
  const DataLayout &Layout = Variable.getDataLayout();
  bool Any = false;
  SmallVector<std::pair<const Value *, int64_t>, 8> Work{{&Variable, 0}};
  while (!Work.empty()) {
    auto [Address, At] = Work.pop_back_val();
    for (const User *U : Address->users()) {
      if (auto *Step = dyn_cast<GEPOperator>(U)) {
        APInt Further(64, 0);
        if (!Step->accumulateConstantOffset(Layout, Further))
          return false;
        Work.push_back({Step, At + Further.getSExtValue()});
      } else if (auto *Store = dyn_cast<StoreInst>(U)) {
        if (Store->getValueOperand() == Address) {
          if (!isa<AllocaInst>(getUnderlyingObject(Store->getPointerOperand())))
            return false;
        } else if (At == Offset) {
          if (!isOwn(Store->getValueOperand(), Depth + 1))
            return false;
          Any = true;
        }
      } else if (!isa<LoadInst>(U) && !calls(U, "__kmpc_") &&
                 !calls(U, "llvm.lifetime")) {
        return false;
      }
    }
  }
  return Any;
}

static bool isOwn(const Value *Pointer, unsigned Depth) {
  if (Depth > MostSteps)
    return false;
  const Value *Object = getUnderlyingObject(Pointer);
  if (isa<AllocaInst>(Object))
    return true;
  if (auto *Global = dyn_cast<GlobalVariable>(Object))
    return Global->isThreadLocal();
  if (auto *Call = dyn_cast<CallBase>(Object))
    return Call->returnDoesNotAlias() || calls(Call, "malloc") ||
           calls(Call, "_Zn") || calls(Call, "__kmpc_alloc") ||
           calls(Call, "__kmpc_threadprivate_cached") ||
           calls(Call, "llvm.threadlocal.address");
  auto *Load = dyn_cast<LoadInst>(Object);
  if (!Load)
    return false;
  APInt At(64, 0);
  const Value *Holder =
      Load->getPointerOperand()->stripAndAccumulateConstantOffsets(
          Load->getDataLayout(), At, /*AllowNonInbounds=*/true);
  if (auto *Variable = dyn_cast<AllocaInst>(Holder))
    return holdsOwn(*Variable, At.getSExtValue(), Depth);
  // A variable that holds another's address.
  auto *Outer = dyn_cast<LoadInst>(Holder);
  if (!Outer)
    return false;
  auto *Pointed = dyn_cast<AllocaInst>(
      Outer->getPointerOperand()->stripPointerCasts());
  if (!Pointed)
    return false;
  for (const User *U : Pointed->users())
    if (auto *Store = dyn_cast<StoreInst>(U))
      if (Store->getPointerOperand() == Pointed) {
        auto *Variable = dyn_cast<AllocaInst>(Store->getValueOperand());
        if (!Variable || !holdsOwn(*Variable, At.getSExtValue(), Depth + 1))
          return false;
      }
  return holdsOwn(*Pointed, 0, Depth);
}

bool isOwn(const Value *Pointer) { return isOwn(Pointer, 0); }

} // namespace domicile
