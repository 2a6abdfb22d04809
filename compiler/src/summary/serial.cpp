//===- serial.cpp - a parallel region as one thread would run all of it
//----===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "summary/serial.h"
#include "summary/arithmetic.h"
#include "summary/deadend.h"
#include "summary/hoist.h"
#include "summary/names.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/IndVarSimplify.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/LCSSA.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/Mem2Reg.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace domicile {

/// A region with more instructions than this takes no more callees in: what
/// they touch is then not known.
static constexpr unsigned MostInstructions = 40000;
static constexpr unsigned MostRounds = 12;

static Function *marker(Module &M, StringRef Name, ArrayRef<Type *> Types) {
  auto Callee = M.getOrInsertFunction(
      Name, FunctionType::get(Type::getVoidTy(M.getContext()), Types, false));
  auto *F = cast<Function>(Callee.getCallee());
  // Neither removed nor in the way: it touches nothing that the region sees.
  F->setMemoryEffects(MemoryEffects::inaccessibleMemOnly());
  F->setDoesNotThrow();
  F->addFnAttr(Attribute::WillReturn);
  return F;
}

static void inlineCallees(Function &Region) {
  for (unsigned Round = 0; Round < MostRounds; ++Round) {
    SmallVector<CallBase *, 16> Calls;
    for (Instruction &I : instructions(Region))
      if (auto *Call = dyn_cast<CallBase>(&I))
        if (Function *Callee = Call->getCalledFunction())
          if (!Callee->isDeclaration() && Callee != &Region &&
              !Callee->isVarArg())
            Calls.push_back(Call);
    bool Changed = false;
    for (CallBase *Call : Calls) {
      if (Region.getInstructionCount() +
              Call->getCalledFunction()->getInstructionCount() >
          MostInstructions)
        continue;
      InlineFunctionInfo Info;
      Changed |= InlineFunction(*Call, Info).isSuccess();
    }
    if (!Changed)
      return;
  }
}

/// flang loads whole descriptors; what is taken out of them is loaded alone.
static void splitAggregateLoads(Function &Region) {
  SmallVector<LoadInst *, 16> Loads;
  for (Instruction &I : instructions(Region))
    if (auto *Load = dyn_cast<LoadInst>(&I))
      if (Load->getType()->isAggregateType())
        Loads.push_back(Load);
  for (LoadInst *Load : Loads) {
    for (User *U : make_early_inc_range(Load->users())) {
      auto *Extract = dyn_cast<ExtractValueInst>(U);
      if (!Extract)
        continue;
      IRBuilder<> At(Load);
      SmallVector<Value *, 4> Path{At.getInt32(0)};
      for (unsigned Index : Extract->indices())
        Path.push_back(At.getInt32(Index));
      Value *Field =
          At.CreateGEP(Load->getType(), Load->getPointerOperand(), Path);
      Extract->replaceAllUsesWith(At.CreateLoad(Extract->getType(), Field));
      Extract->eraseFromParent();
    }
    // Copied as a whole from one variable to another: member by member.
    for (User *U : make_early_inc_range(Load->users())) {
      auto *Store = dyn_cast<StoreInst>(U);
      if (!Store || Store->getValueOperand() != Load)
        continue;
      IRBuilder<> At(Store);
      SmallVector<std::pair<Type *, SmallVector<Value *, 4>>, 8> Work;
      Work.push_back({Load->getType(), {At.getInt32(0)}});
      while (!Work.empty()) {
        auto [Ty, Path] = Work.pop_back_val();
        unsigned Members = isa<StructType>(Ty)  ? Ty->getStructNumElements()
                           : isa<ArrayType>(Ty) ? Ty->getArrayNumElements()
                                                : 0;
        if (Members) {
          for (unsigned M = 0; M < Members; ++M) {
            Work.push_back({GetElementPtrInst::getTypeAtIndex(Ty, M), Path});
            Work.back().second.push_back(At.getInt32(M));
          }
          continue;
        }
        IRBuilder<> AtLoad(Load);
        Value *From =
            AtLoad.CreateGEP(Load->getType(), Load->getPointerOperand(), Path);
        Value *Part = AtLoad.CreateLoad(Ty, From);
        At.CreateStore(Part, At.CreateGEP(Load->getType(),
                                          Store->getPointerOperand(), Path));
      }
      Store->eraseFromParent();
    }
    if (Load->use_empty())
      Load->eraseFromParent();
  }
}

/// `schedule(static, c)`: a loop over the thread's pieces around the loop over
/// one piece. With the whole range in the first piece, the outer one is left
/// after its first turn.
static void leaveDispatchLoop(CallBase &Begin, Function &Region) {
  DominatorTree Dominators(Region);
  LoopInfo Loops(Dominators);
  Loop *Around = Loops.getLoopFor(Begin.getParent());
  for (Loop *L : Loops.getLoopsInPreorder()) {
    if (L->getParentLoop() != Around || L->isInnermost() ||
        !Dominators.dominates(Begin.getParent(), L->getHeader()))
      continue;
    // Of several, the one that comes first: no other work-shared loop between.
    bool Later = any_of(Region, [&](BasicBlock &B) {
      return any_of(B, [&](Instruction &I) {
        return &I != &Begin && calls(&I, BeginName) &&
               Dominators.dominates(&Begin, &I) &&
               Dominators.dominates(&I, &L->getHeader()->front());
      });
    });
    BasicBlock *Latch = L->getLoopLatch();
    SmallVector<BasicBlock *, 2> Exits;
    L->getUniqueExitBlocks(Exits);
    if (Later || !Latch || Exits.size() != 1 || isa<PHINode>(Exits[0]->front()))
      continue;
    auto *Branch = dyn_cast<BranchInst>(Latch->getTerminator());
    if (!Branch || Branch->isConditional())
      continue;
    L->getHeader()->removePredecessor(Latch);
    Branch->setSuccessor(0, Exits[0]);
    return;
  }
}

/// Simplified together with the loop's condition, a bound under a condition
/// (`n < 1 ? 0 : n`) would become part of it, and no longer be a bound.
static void keepBound(CallBase &Begin) {
  auto *Upper = dyn_cast<AllocaInst>(Begin.getArgOperand(5));
  if (!Upper)
    return;
  DominatorTree Dominators(*Begin.getFunction());
  SmallVector<StoreInst *, 2> Stores;
  for (User *U : Upper->users())
    if (auto *Store = dyn_cast<StoreInst>(U))
      if (Store->getPointerOperand() == Upper &&
          Dominators.dominates(Store, &Begin))
        Stores.push_back(Store);
  for (StoreInst *Store : Stores) {
    Value *Bound = Store->getValueOperand();
    Type *Ty = Bound->getType();
    if (isa<Constant>(Bound) || !Ty->isIntegerTy())
      continue;
    IRBuilder<> At(Store);
    Store->setOperand(
        0, At.CreateCall(
               opaque(*Begin.getModule(),
                      BoundName + "." + Twine(Ty->getIntegerBitWidth()), Ty, 1),
               {Bound}));
  }
}

static void releaseBounds(Function &Region, bool ConstantOnly) {
  for (Instruction &I : make_early_inc_range(instructions(Region)))
    if (calls(&I, BoundName)) {
      Value *Bound = cast<CallBase>(I).getArgOperand(0);
      if (ConstantOnly && !isa<Constant>(Bound))
        continue;
      I.replaceAllUsesWith(Bound);
      I.eraseFromParent();
    }
}

/// SROA looks for variables in the entry block only; flang and inlined calls
/// have them elsewhere.
static void liftVariables(Function &Region) {
  Instruction *First = &*Region.getEntryBlock().getFirstInsertionPt();
  for (Instruction &I : make_early_inc_range(instructions(Region)))
    if (auto *Variable = dyn_cast<AllocaInst>(&I))
      if (Variable != First && isa<ConstantInt>(Variable->getArraySize()))
        Variable->moveBefore(First);
}

/// Work-shared loops go over all their iterations: without the call, the bounds
/// stay what they were before it.
static void dealAll(Function &Region) {
  Module &M = *Region.getParent();
  Type *I32 = Type::getInt32Ty(M.getContext());
  Type *I64 = Type::getInt64Ty(M.getContext());
  SmallVector<CallBase *, 8> Begins, Ends;
  for (Instruction &I : instructions(Region)) {
    if (calls(&I, "__kmpc_for_static_init_"))
      Begins.push_back(cast<CallBase>(&I));
    else if (calls(&I, "__kmpc_for_static_fini"))
      Ends.push_back(cast<CallBase>(&I));
  }
  Function *BeginMarker = marker(M, BeginName, {I32, I64});
  Function *EndMarker = marker(M, EndName, {});
  for (CallBase *End : Ends) {
    IRBuilder<> At(End);
    At.CreateCall(EndMarker);
    End->eraseFromParent();
  }
  SmallVector<CallBase *, 8> Dispatched;
  for (CallBase *Begin : Begins) {
    keepBound(*Begin);
    IRBuilder<> At(Begin);
    Value *Chunk = At.CreateZExtOrTrunc(Begin->getArgOperand(8), I64);
    auto *Mark = At.CreateCall(BeginMarker, {Begin->getArgOperand(2), Chunk});
    auto *Schedule = dyn_cast<ConstantInt>(Begin->getArgOperand(2));
    if (Schedule && (Schedule->getZExtValue() & 0xffff) == 33)
      Dispatched.push_back(Mark);
    Begin->eraseFromParent();
  }
  for (CallBase *Mark : Dispatched)
    leaveDispatchLoop(*Mark, Region);
}

void serialise(Function &Region, bool Fortran,
               FunctionAnalysisManager &Analyses) {
  inlineCallees(Region);
  dropDeadEnds(Region);
  liftVariables(Region);
  splitAggregateLoads(Region);
  markDescriptors(Region);
  dealAll(Region);
  if (Fortran) {
    neverWraps(Region);
    passValues(Region);
    copyCounters(Region);
  }

  FunctionPassManager First;
  First.addPass(SROAPass(SROAOptions::PreserveCFG));
  First.addPass(EarlyCSEPass());
  First.run(Region, Analyses);
  keepDivisions(Region);
  FunctionPassManager Combine;
  Combine.addPass(InstCombinePass());
  Analyses.invalidate(Region, PreservedAnalyses::none());
  Combine.run(Region, Analyses);
  Analyses.invalidate(Region, PreservedAnalyses::none());

  releaseBounds(Region, /*ConstantOnly=*/true);
  hoistCaptured(Region, Fortran);

  FunctionPassManager Second;
  Second.addPass(SROAPass(SROAOptions::PreserveCFG));
  Second.addPass(EarlyCSEPass());
  Second.addPass(InstCombinePass());
  Second.addPass(SimplifyCFGPass());
  Second.run(Region, Analyses);
  Analyses.invalidate(Region, PreservedAnalyses::none());

  releaseBounds(Region, /*ConstantOnly=*/false);
  extendSigned(Region);
  countersEnd(Region, Analyses);
  Analyses.invalidate(Region, PreservedAnalyses::none());
  FunctionPassManager Third;
  Third.addPass(EarlyCSEPass());
  Third.addPass(LoopSimplifyPass());
  Third.addPass(LCSSAPass());
  Third.addPass(createFunctionToLoopPassAdaptor(IndVarSimplifyPass()));
  Third.run(Region, Analyses);
  Analyses.invalidate(Region, PreservedAnalyses::none());
}

} // namespace domicile
