//===- record.cpp - domicile_loop and domicile_summary as LLVM types
//-------===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "summary/record.h"
#include "summary/names.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace domicile {

/// DOMICILE_SUMMARY_VERSION
static constexpr unsigned Version = 1;

Function *sayFunction(Module &M) {
  LLVMContext &Context = M.getContext();
  auto Callee = M.getOrInsertFunction(
      SayName, FunctionType::get(Type::getVoidTy(Context),
                                 {PointerType::get(Context, 0)}, false));
  auto *F = cast<Function>(Callee.getCallee());
  if (F->isDeclaration()) {
    F->setLinkage(GlobalValue::ExternalWeakLinkage);
    F->setDoesNotThrow();
  }
  return F;
}

static StructType *summaryType(LLVMContext &Context) {
  Type *Pointer = PointerType::get(Context, 0);
  Type *I64 = Type::getInt64Ty(Context), *I32 = Type::getInt32Ty(Context);
  // name, start, bytes, offset, unit, span, {stride, count} * 3, distance,
  // communication, access
  SmallVector<Type *, 16> Members{Pointer, Pointer};
  Members.append(4 + 2 * SummaryRecord::Inner + 1, I64);
  Members.append(2, I32);
  return StructType::get(Context, Members);
}

static StructType *loopType(LLVMContext &Context) {
  Type *Pointer = PointerType::get(Context, 0);
  Type *I64 = Type::getInt64Ty(Context), *I32 = Type::getInt32Ty(Context);
  // version, count, place, iterations, chunk, schedule, reverse, threads,
  // reserved, summaries
  return StructType::get(
      Context, {I32, I32, Pointer, I64, I64, I32, I32, I32, I32, Pointer});
}

static SmallVector<Value *, 16> members(const SummaryRecord &S) {
  SmallVector<Value *, 16> All{S.Name,   S.Start, S.Bytes,
                               S.Offset, S.Unit,  S.Span};
  for (unsigned N = 0; N < SummaryRecord::Inner; ++N) {
    All.push_back(S.Strides[N]);
    All.push_back(S.Counts[N]);
  }
  All.append({S.Distance, S.Communication, S.Access});
  return All;
}

static SmallVector<Value *, 16> members(IRBuilder<> &To, const LoopRecord &L,
                                        Value *Count, Value *Summaries) {
  return {To.getInt32(Version),
          Count,
          L.Place,
          L.Iterations,
          L.Chunk,
          L.Schedule,
          To.getInt32(0),
          L.Threads,
          To.getInt32(0),
          Summaries};
}

static Constant *constantStruct(StructType *Ty, ArrayRef<Value *> Values) {
  SmallVector<Constant *, 16> All;
  for (Value *V : Values) {
    auto *C = dyn_cast<Constant>(V);
    if (!C)
      return nullptr;
    All.push_back(C);
  }
  return ConstantStruct::get(Ty, All);
}

static GlobalVariable *constantData(Module &M, Constant *Value) {
  auto *Made =
      new GlobalVariable(M, Value->getType(), /*isConstant=*/true,
                         GlobalValue::PrivateLinkage, Value, "domicile.data");
  Made->setAlignment(Align(8));
  return Made;
}

static void storeAll(IRBuilder<> &To, StructType *Ty, Value *Address,
                     ArrayRef<Value *> Values) {
  for (unsigned N = 0; N < Values.size(); ++N)
    To.CreateStore(Values[N], To.CreateStructGEP(Ty, Address, N));
}

/// All constant and always so: data of the program.
static bool writeConstant(IRBuilder<> &To, const LoopRecord &Loop,
                          ArrayRef<SummaryRecord> Summaries) {
  Module &M = *To.GetInsertBlock()->getModule();
  StructType *Ty = summaryType(M.getContext());
  SmallVector<Constant *, 8> All;
  auto Sure = [](Value *V) {
    return isa<ConstantInt>(V) && cast<ConstantInt>(V)->isOne();
  };
  auto Never = [](Value *V) {
    return isa<ConstantInt>(V) && cast<ConstantInt>(V)->isZero();
  };
  if (Never(Loop.Present))
    return true;
  if (!Sure(Loop.Present))
    return false;
  for (const SummaryRecord &S : Summaries) {
    if (Never(S.Present))
      continue;
    Constant *Made = constantStruct(Ty, members(S));
    if (!Made || !Sure(S.Present))
      return false;
    All.push_back(Made);
  }
  if (All.empty())
    return true;
  auto *Array = ArrayType::get(Ty, All.size());
  for (Value *V : {Loop.Iterations, Loop.Chunk, Loop.Threads})
    if (!isa<Constant>(V))
      return false;
  GlobalVariable *Data = constantData(M, ConstantArray::get(Array, All));
  Constant *Whole =
      constantStruct(loopType(M.getContext()),
                     members(To, Loop, To.getInt32(All.size()), Data));
  To.CreateCall(sayFunction(M), {constantData(M, Whole)});
  return true;
}

void writeCall(IRBuilder<> &To, const LoopRecord &Loop,
               ArrayRef<SummaryRecord> Summaries) {
  if (writeConstant(To, Loop, Summaries))
    return;
  Module &M = *To.GetInsertBlock()->getModule();
  LLVMContext &Context = M.getContext();
  StructType *Ty = summaryType(Context), *LoopTy = loopType(Context);
  BasicBlock &Entry = To.GetInsertBlock()->getParent()->getEntryBlock();
  IRBuilder<> First(&Entry, Entry.getFirstInsertionPt());
  auto *ArrayTy = ArrayType::get(Ty, Summaries.size());
  Value *Array = First.CreateAlloca(ArrayTy);
  Value *Whole = First.CreateAlloca(LoopTy);
  // Those that do not run are overwritten by the next.
  Value *Count = To.getInt64(0);
  for (const SummaryRecord &S : Summaries) {
    storeAll(To, Ty, To.CreateGEP(Ty, Array, Count), members(S));
    Count = To.CreateAdd(Count, To.CreateZExt(S.Present, To.getInt64Ty()));
  }
  storeAll(To, LoopTy, Whole,
           members(To, Loop, To.CreateTrunc(Count, To.getInt32Ty()), Array));
  Value *Some =
      To.CreateAnd(Loop.Present, To.CreateICmpNE(Count, To.getInt64(0)));
  Instruction *Next = &*To.GetInsertPoint();
  Instruction *Then = SplitBlockAndInsertIfThen(Some, Next, false);
  IRBuilder<>(Then).CreateCall(sayFunction(M), {Whole});
  To.SetInsertPoint(Next);
}

} // namespace domicile
