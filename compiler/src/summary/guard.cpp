//===- guard.cpp - describing again only what is new
//--------------------------===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "summary/guard.h"
#include "summary/names.h"
#include "summary/record.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace domicile {

/// Signatures that a fork remembers: arrays swapped, the levels of a multigrid.
static constexpr unsigned Remembered = 8;

static Value *asWord(IRBuilder<> &To, Value *V) {
  Type *Word = To.getInt64Ty();
  if (V->getType()->isPointerTy())
    return To.CreatePtrToInt(V, Word);
  if (V->getType()->isFloatingPointTy())
    V = To.CreateBitCast(V,
                         To.getIntNTy(V->getType()->getPrimitiveSizeInBits()));
  return To.CreateZExtOrTrunc(V, Word);
}

static Value *fromWord(IRBuilder<> &To, Value *Word, Type *Ty) {
  if (Ty->isPointerTy())
    return To.CreateIntToPtr(Word, Ty);
  if (Ty->isFloatingPointTy())
    return To.CreateBitCast(
        To.CreateZExtOrTrunc(Word, To.getIntNTy(Ty->getPrimitiveSizeInBits())),
        Ty);
  return To.CreateZExtOrTrunc(Word, Ty);
}

/// Runs a few times in a program's life: no time of the compiler is spent on
/// it.
static void makeCold(Function &F) {
  F.addFnAttr(Attribute::Cold);
  F.addFnAttr(Attribute::NoInline);
  F.addFnAttr(Attribute::OptimizeNone);
  F.setDoesNotThrow();
}

/// A block that is run only if the library is there.
static Instruction *ifLinked(IRBuilder<> &To, Instruction *Before) {
  Function *Say = sayFunction(*Before->getModule());
  Value *There = To.CreateICmpNE(
      Say, ConstantPointerNull::get(cast<PointerType>(Say->getType())));
  return SplitBlockAndInsertIfThen(There, Before, /*Unreachable=*/false);
}

Value *Guard::input(Value *V) const {
  if (Value *Name = Names.lookup(V))
    return Name;
  assert(isa<Constant>(V) && "an input that was not named");
  return V;
}

Guard::Guard(Module &M) {
  constexpr StringLiteral Name = "domicile.summaries";
  LLVMContext &Context = M.getContext();
  Function *F = M.getFunction(Name);
  if (!F) {
    F = Function::Create(FunctionType::get(Type::getVoidTy(Context), false),
                         GlobalValue::InternalLinkage, Name, M);
    makeCold(*F);
    BasicBlock *Entry = BasicBlock::Create(Context, "", F);
    Instruction *End = ReturnInst::Create(Context, Entry);
    IRBuilder<> First(End);
    ifLinked(First, End);
    appendToGlobalCtors(M, F, 65535);
  }
  // Behind what is there already.
  BasicBlock *Then = F->getEntryBlock().getTerminator()->getSuccessor(0);
  To = std::make_unique<IRBuilder<>>(Then->getTerminator());
}

Guard::Guard(CallBase &Fork, IRBuilder<> &Here, ArrayRef<Value *> Inputs) {
  Module &M = *Fork.getModule();
  LLVMContext &Context = M.getContext();
  Type *Word = Type::getInt64Ty(Context);
  const unsigned Words = Inputs.size();

  // Entry by entry: 1 if it is valid, then the signature.
  auto *EntryTy = ArrayType::get(Word, Words + 1);
  auto *TableTy = ArrayType::get(EntryTy, Remembered);
  auto *Table =
      new GlobalVariable(M, TableTy, false, GlobalValue::InternalLinkage,
                         ConstantAggregateZero::get(TableTy), "domicile.known");
  Table->setAlignment(Align(64));
  auto *Turn = new GlobalVariable(M, Word, false, GlobalValue::InternalLinkage,
                                  ConstantInt::get(Word, 0), "domicile.turn");
  auto Load = [&](IRBuilder<> &B, Value *Address) {
    LoadInst *L = B.CreateAlignedLoad(Word, Address, Align(8));
    L->setAtomic(AtomicOrdering::Monotonic);
    return L;
  };
  auto Store = [&](IRBuilder<> &B, Value *V, Value *Address) {
    B.CreateAlignedStore(V, Address, Align(8))
        ->setAtomic(AtomicOrdering::Monotonic);
  };
  auto Differs = [&](IRBuilder<> &B, Value *Entry, ArrayRef<Value *> Values) {
    Value *Any = B.CreateXor(Load(B, Entry), ConstantInt::get(Word, 1));
    for (unsigned N = 0; N < Words; ++N) {
      Value *Address = B.CreateConstGEP2_64(EntryTy, Entry, 0, N + 1);
      Any = B.CreateOr(Any, B.CreateXor(Load(B, Address), Values[N]));
    }
    return B.CreateICmpNE(Any, ConstantInt::get(Word, 0));
  };

  // The cold function: known after all? within another region? else: described.
  SmallVector<Type *, 16> Types(Words, Word);
  Function *F = Function::Create(
      FunctionType::get(Type::getVoidTy(Context), Types, false),
      GlobalValue::InternalLinkage, "domicile.describe", M);
  makeCold(*F);
  SmallVector<Value *, 16> Arguments;
  for (Argument &A : F->args())
    Arguments.push_back(&A);
  auto *Entry = BasicBlock::Create(Context, "", F);
  auto *Search = BasicBlock::Create(Context, "search", F);
  auto *Next = BasicBlock::Create(Context, "next", F);
  auto *New = BasicBlock::Create(Context, "new", F);
  auto *Known = BasicBlock::Create(Context, "known", F);
  ReturnInst::Create(Context, Known);
  IRBuilder<> B(Entry);
  B.CreateBr(Search);
  B.SetInsertPoint(Search);
  PHINode *Number = B.CreatePHI(Word, 2);
  Number->addIncoming(ConstantInt::get(Word, 0), Entry);
  B.CreateCondBr(Differs(B, B.CreateGEP(EntryTy, Table, Number), Arguments),
                 Next, Known);
  B.SetInsertPoint(Next);
  Value *Following = B.CreateAdd(Number, ConstantInt::get(Word, 1));
  Number->addIncoming(Following, Next);
  B.CreateCondBr(B.CreateICmpULT(Following, ConstantInt::get(Word, Remembered)),
                 Search, New);
  B.SetInsertPoint(New);
  Instruction *End = ReturnInst::Create(Context, New);
  B.SetInsertPoint(End);
  Instruction *Linked = ifLinked(B, End);
  B.SetInsertPoint(Linked);
  // A region within a region has another team than the one that is predicted.
  auto InParallel = M.getOrInsertFunction(
      "omp_in_parallel", FunctionType::get(Type::getInt32Ty(Context), false));
  Value *Outside = B.CreateICmpEQ(B.CreateCall(InParallel), B.getInt32(0));
  Instruction *Describe = SplitBlockAndInsertIfThen(Outside, Linked, false);
  B.SetInsertPoint(Describe);
  Value *Place = Load(B, Turn);
  Store(B, B.CreateAdd(Place, ConstantInt::get(Word, 1)), Turn);
  Value *Victim =
      B.CreateGEP(EntryTy, Table,
                  B.CreateAnd(Place, ConstantInt::get(Word, Remembered - 1)));
  Store(B, ConstantInt::get(Word, 0), Victim);
  for (unsigned N = 0; N < Words; ++N)
    Store(B, Arguments[N], B.CreateConstGEP2_64(EntryTy, Victim, 0, N + 1));
  Store(B, ConstantInt::get(Word, 1), Victim);
  for (unsigned N = 0; N < Words; ++N)
    Names[Inputs[N]] = fromWord(B, Arguments[N], Inputs[N]->getType());
  To = std::make_unique<IRBuilder<>>(Describe);

  // Before the fork: the first signature, without a call.
  SmallVector<Value *, 16> Values;
  for (Value *V : Inputs)
    Values.push_back(asWord(Here, V));
  Value *IsNew = Differs(Here, Table, Values);
  Instruction *Then = SplitBlockAndInsertIfThen(
      IsNew, &Fork, false, MDBuilder(Context).createBranchWeights(1, 2000));
  IRBuilder<> Slow(Then);
  Slow.SetCurrentDebugLocation(Fork.getDebugLoc());
  Slow.CreateCall(F, Values);
}

Value *usualThreads(IRBuilder<> &Here) {
  Module &M = *Here.GetInsertBlock()->getModule();
  auto Callee = M.getOrInsertFunction(
      "omp_get_max_threads", FunctionType::get(Here.getInt32Ty(), false));
  CallInst *Call = Here.CreateCall(Callee);
  Call->setDoesNotThrow();
  return Call;
}

} // namespace domicile
