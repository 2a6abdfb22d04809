//===- sizes.cpp - what a function put where before it forks
//---------------===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "summary/sizes.h"
#include "summary/names.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace domicile {

Value *storedBefore(Value *Holder, int64_t Offset, CallBase &Fork) {
  auto *Structure = dyn_cast<AllocaInst>(Holder);
  if (!Structure || !Structure->getAllocatedType()->isStructTy())
    return nullptr;
  const DataLayout &Layout = Fork.getModule()->getDataLayout();
  Value *Found = nullptr;
  SmallVector<std::pair<Value *, int64_t>, 8> Work{{Structure, 0}};
  while (!Work.empty()) {
    auto [Address, At] = Work.pop_back_val();
    for (User *U : Address->users()) {
      if (auto *Step = dyn_cast<GetElementPtrInst>(U)) {
        APInt Further(64, 0);
        if (!Step->accumulateConstantOffset(Layout, Further))
          return nullptr;
        Work.push_back({Step, At + Further.getSExtValue()});
        continue;
      }
      if (auto *Store = dyn_cast<StoreInst>(U)) {
        if (Store->getPointerOperand() != Address)
          return nullptr;
        if (At != Offset)
          continue;
        if (Found || Store->getParent() != Fork.getParent() ||
            !Store->comesBefore(&Fork))
          return nullptr;
        Found = Store->getValueOperand();
        continue;
      }
      // Reads of ours, before this fork or another.
      if (isa<LoadInst>(U))
        continue;
      auto *Call = dyn_cast<CallBase>(U);
      if (!Call ||
          !(calls(Call, "__kmpc_fork_call") || calls(Call, "llvm.lifetime")))
        return nullptr;
    }
  }
  return Found;
}

/// Bytes that \p Call allocates: operands to multiply. Empty: it does not.
static SmallVector<Value *, 2> sizeOperands(const CallBase &Call) {
  StringRef Name = calleeName(Call);
  auto Operand = [&](unsigned N) { return Call.getArgOperand(N); };
  if ((Name == "malloc" || Name.starts_with("_Znwm") ||
       Name.starts_with("_Znam")) &&
      Call.arg_size() >= 1)
    return {Operand(0)};
  if (Name == "calloc" && Call.arg_size() == 2)
    return {Operand(0), Operand(1)};
  if ((Name == "aligned_alloc" || Name == "memalign" || Name == "realloc") &&
      Call.arg_size() == 2)
    return {Operand(1)};
  return {};
}

Value *allocatedBytes(Value *Variable, CallBase &Fork) {
  auto *Pointer = dyn_cast<AllocaInst>(Variable);
  if (!Pointer || !Pointer->getAllocatedType()->isPointerTy())
    return nullptr;
  CallBase *Allocation = nullptr;
  for (User *U : Pointer->users()) {
    if (isa<LoadInst>(U))
      continue;
    if (auto *Store = dyn_cast<StoreInst>(U)) {
      auto *Call = dyn_cast<CallBase>(Store->getValueOperand());
      if (Store->getPointerOperand() != Pointer || !Call || Allocation)
        return nullptr;
      Allocation = Call;
      continue;
    }
    auto *Call = dyn_cast<CallBase>(U);
    if (!Call || !(calls(Call, "__kmpc_fork_call") || isa<IntrinsicInst>(Call)))
      return nullptr;
  }
  if (!Allocation)
    return nullptr;
  DominatorTree Dominators(*Fork.getFunction());
  if (!Dominators.dominates(Allocation, &Fork))
    return nullptr;
  IRBuilder<> To(&Fork);
  Value *Bytes = nullptr;
  for (Value *Part : sizeOperands(*Allocation)) {
    Value *Wide = To.CreateZExtOrTrunc(Part, To.getInt64Ty());
    Bytes = Bytes ? To.CreateMul(Bytes, Wide) : Wide;
  }
  return Bytes;
}

} // namespace domicile
