//===- arithmetic.cpp - numbers that are easy to follow
//--------------------===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "summary/arithmetic.h"
#include "summary/names.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace domicile {

Function *opaque(Module &M, const Twine &Name, Type *Ty, unsigned Arity) {
  SmallVector<Type *, 2> Types(Arity, Ty);
  auto Callee =
      M.getOrInsertFunction(Name.str(), FunctionType::get(Ty, Types, false));
  auto *F = cast<Function>(Callee.getCallee());
  F->setDoesNotAccessMemory();
  F->setDoesNotThrow();
  F->addFnAttr(Attribute::WillReturn);
  return F;
}

/// Signed overflow is not defined in Fortran either, but flang does not say so.
void neverWraps(Function &Region) {
  for (Instruction &I : instructions(Region))
    if (I.getOpcode() == Instruction::Add ||
        I.getOpcode() == Instruction::Sub || I.getOpcode() == Instruction::Mul)
      I.setHasNoSignedWrap();
}

/// Whether \p Variable is a loop's counter: all that it gets within loops is
/// what one of them counts (after that loop, what it came to).
static bool isCounter(AllocaInst &Variable, LoopInfo &Loops) {
  if (Variable.isArrayAllocation() ||
      !Variable.getAllocatedType()->isIntegerTy())
    return false;
  bool Counts = false;
  for (User *U : Variable.users()) {
    auto *Store = dyn_cast<StoreInst>(U);
    if (!Store || Store->getPointerOperand() != &Variable)
      continue;
    const Loop *L = Loops.getLoopFor(Store->getParent());
    if (!L)
      continue;
    // `start + step * counter` in the loops that threads share.
    SmallVector<Value *, 8> Work{Store->getValueOperand()};
    bool Counted = false;
    while (!Work.empty()) {
      Value *V = Work.pop_back_val();
      if (auto *Phi = dyn_cast<PHINode>(V)) {
        if (!Loops.isLoopHeader(Phi->getParent()))
          return false;
        Counted = true;
        continue;
      }
      if (isa<BinaryOperator>(V) || isa<CastInst>(V)) {
        auto *I = cast<Instruction>(V);
        Work.append(I->value_op_begin(), I->value_op_end());
        continue;
      }
      auto *I = dyn_cast<Instruction>(V);
      if (I && L->contains(I))
        return false;
    }
    if (!Counted)
      return false;
    Counts = true;
  }
  return Counts;
}

/// A callee may not change the counter of a loop around the call: it gets the
/// address of a copy, so that the counter can become a value.
void copyCounters(Function &Region) {
  DominatorTree Dominators(Region);
  LoopInfo Loops(Dominators);
  SmallDenseMap<AllocaInst *, bool, 8> Counter;
  for (Instruction &I : instructions(Region)) {
    auto *Call = dyn_cast<CallInst>(&I);
    Function *Callee = Call ? Call->getCalledFunction() : nullptr;
    if (!Callee || !Callee->isDeclaration() || Callee->isIntrinsic() ||
        Callee->getName().starts_with("__kmpc_") ||
        !Loops.getLoopFor(Call->getParent()))
      continue;
    for (llvm::Use &Given : Call->args()) {
      auto *Variable = dyn_cast<AllocaInst>(Given);
      if (!Variable)
        continue;
      auto [Known, New] = Counter.try_emplace(Variable, false);
      if (New)
        Known->second = isCounter(*Variable, Loops);
      if (!Known->second)
        continue;
      IRBuilder<> First(&*Region.getEntryBlock().getFirstInsertionPt());
      Type *Ty = Variable->getAllocatedType();
      AllocaInst *Copy = First.CreateAlloca(Ty);
      IRBuilder<> At(Call);
      At.CreateStore(At.CreateLoad(Ty, Variable), Copy);
      Given.set(Copy);
    }
  }
}

/// flang passes numbers by address, even to functions that only look at them. A
/// function that is not in this module is taken to leave the numbers that it is
/// given as they are (a loop's counter it may not change anyway): it gets their
/// values instead, so that the variables can become values themselves.
void passValues(Function &Region) {
  Module &M = *Region.getParent();
  for (Instruction &I : make_early_inc_range(instructions(Region))) {
    auto *Call = dyn_cast<CallInst>(&I);
    Function *Callee = Call ? Call->getCalledFunction() : nullptr;
    if (!Callee || !Callee->isDeclaration() || Callee->isIntrinsic() ||
        Call->getType()->isVoidTy() ||
        Callee->getName().starts_with("_Fortran"))
      continue;
    SmallVector<Value *, 4> Values;
    IRBuilder<> At(Call);
    bool Numbers = !Call->arg_empty();
    for (Value *Given : Call->args()) {
      auto *Variable = dyn_cast<AllocaInst>(Given);
      Numbers = Numbers && Variable && !Variable->isArrayAllocation() &&
                (Variable->getAllocatedType()->isIntegerTy() ||
                 Variable->getAllocatedType()->isFloatingPointTy());
    }
    if (!Numbers)
      continue;
    SmallVector<Type *, 4> Types;
    for (Value *Given : Call->args()) {
      Values.push_back(
          At.CreateLoad(cast<AllocaInst>(Given)->getAllocatedType(), Given));
      Types.push_back(Values.back()->getType());
    }
    // Named after it, for the remarks.
    Function *ByValue =
        Function::Create(FunctionType::get(Call->getType(), Types, false),
                         GlobalValue::ExternalLinkage, Callee->getName(), M);
    ByValue->setDoesNotThrow();
    Call->replaceAllUsesWith(At.CreateCall(ByValue, Values));
    Call->eraseFromParent();
  }
}

/// Remainders and quotients stay whole: in
/// ScalarEvolution's terms `i % n` would be `i - n * (i / n)`.
void keepDivisions(Function &Region) {
  Module &M = *Region.getParent();
  for (Instruction &I : make_early_inc_range(instructions(Region))) {
    unsigned Does = I.getOpcode();
    bool Signed = Does == Instruction::SRem || Does == Instruction::SDiv;
    StringRef Name;
    if (Does == Instruction::SRem || Does == Instruction::URem)
      Name = RemainderName;
    else if (Does == Instruction::SDiv || Does == Instruction::UDiv)
      Name = QuotientName;
    else
      continue;
    if (isa<Constant>(I.getOperand(0)) || match(I.getOperand(1), m_One()))
      continue;
    if (!I.getType()->isIntegerTy(32) && !I.getType()->isIntegerTy(64))
      continue;
    IRBuilder<> At(&I);
    Type *Ty = I.getType();
    Function *F = opaque(
        M, Name + (Signed ? ".s" : ".u") + Twine(Ty->getIntegerBitWidth()), Ty,
        2);
    I.replaceAllUsesWith(At.CreateCall(F, {I.getOperand(0), I.getOperand(1)}));
    I.eraseFromParent();
  }
}

/// What is known not to be negative may as well be extended with its sign:
/// ScalarEvolution follows that through differences.
void extendSigned(Function &Region) {
  for (Instruction &I : make_early_inc_range(instructions(Region)))
    if (auto *Wide = dyn_cast<ZExtInst>(&I))
      if (Wide->hasNonNeg()) {
        IRBuilder<> At(Wide);
        Wide->replaceAllUsesWith(
            At.CreateSExt(Wide->getOperand(0), Wide->getType()));
        Wide->eraseFromParent();
      }
}

/// Loops end: a counter that is compared with the last iteration does not run
/// past the end of its type first. (`i <= last` alone does not say so.)
void countersEnd(Function &Region, FunctionAnalysisManager &Analyses) {
  LoopInfo &Loops = Analyses.getResult<LoopAnalysis>(Region);
  for (Loop *L : Loops.getLoopsInPreorder()) {
    BasicBlock *Latch = L->getLoopLatch(), *Exit = L->getExitingBlock();
    auto *Branch = Exit ? dyn_cast<BranchInst>(Exit->getTerminator()) : nullptr;
    if (!Latch || !Branch || !Branch->isConditional())
      continue;
    auto *Compare = dyn_cast<ICmpInst>(Branch->getCondition());
    if (!Compare)
      continue;
    for (PHINode &Counter : L->getHeader()->phis()) {
      auto *Next =
          dyn_cast<Instruction>(Counter.getIncomingValueForBlock(Latch));
      if (!Next || !match(Next, m_Add(m_Specific(&Counter), m_One())))
        continue;
      for (Value *Side : Compare->operands()) {
        if (Side != &Counter && Side != Next)
          continue;
        if (Compare->isUnsigned())
          Next->setHasNoUnsignedWrap();
        if (Compare->isSigned())
          Next->setHasNoSignedWrap();
      }
    }
  }
}

} // namespace domicile
