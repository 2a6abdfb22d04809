//===- deadend.cpp - ways through a region that end the program
//-----------===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "summary/deadend.h"
#include "summary/names.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace domicile {

using Blocks = SmallPtrSet<BasicBlock *, 16>;

/// Blocks from which the program does not come back to the region's end: they
/// stop it themselves, or lead only to such.
static Blocks deadEnds(Function &Region) {
  Blocks Dead;
  SmallVector<BasicBlock *, 16> Work;
  for (BasicBlock &Block : Region)
    if (isa<UnreachableInst>(Block.getTerminator()))
      Work.push_back(&Block);
  while (!Work.empty()) {
    BasicBlock *Block = Work.pop_back_val();
    if (!Dead.insert(Block).second)
      continue;
    for (BasicBlock *Before : predecessors(Block))
      if (all_of(successors(Before),
                 [&](BasicBlock *Next) { return Dead.count(Next); }))
        Work.push_back(Before);
  }
  return Dead;
}

/// What is looked at to decide is looked at all the same.
static void keepUsed(Value *Condition, Instruction *Before) {
  if (isa<Constant>(Condition))
    return;
  Module &M = *Before->getModule();
  Type *Ty = Condition->getType();
  auto Callee = M.getOrInsertFunction(
      (CheckedName + "." + Twine(Ty->getIntegerBitWidth())).str(),
      FunctionType::get(Type::getVoidTy(M.getContext()), {Ty}, false));
  auto *F = cast<Function>(Callee.getCallee());
  F->setMemoryEffects(MemoryEffects::inaccessibleMemOnly());
  F->setDoesNotThrow();
  F->addFnAttr(Attribute::WillReturn);
  IRBuilder<>(Before).CreateCall(F, {Condition});
}

/// Cases that end the program are not taken; what would be "all others" is then
/// one of those that are left.
static void leaveCases(SwitchInst &Choice, const Blocks &Dead) {
  BasicBlock *Block = Choice.getParent();
  for (auto Case = Choice.case_begin(); Case != Choice.case_end();) {
    if (!Dead.count(Case->getCaseSuccessor())) {
      ++Case;
      continue;
    }
    Case->getCaseSuccessor()->removePredecessor(Block);
    Case = Choice.removeCase(Case);
  }
  if (!Dead.count(Choice.getDefaultDest()) || !Choice.getNumCases())
    return;
  BasicBlock *Left = Choice.case_begin()->getCaseSuccessor();
  Choice.getDefaultDest()->removePredecessor(Block);
  // Its edge becomes the default's, with the same values.
  Choice.setDefaultDest(Left);
  Choice.removeCase(Choice.case_begin());
}

void dropDeadEnds(Function &Region) {
  const Blocks Dead = deadEnds(Region);
  for (BasicBlock &Block : Region) {
    if (Dead.count(&Block))
      continue;
    Instruction *End = Block.getTerminator();
    if (auto *Call = dyn_cast<InvokeInst>(End)) {
      if (Dead.count(Call->getUnwindDest()) &&
          !Dead.count(Call->getNormalDest()))
        changeToCall(Call);
    } else if (auto *Branch = dyn_cast<BranchInst>(End)) {
      if (!Branch->isConditional())
        continue;
      bool First = Dead.count(Branch->getSuccessor(0));
      if (First == bool(Dead.count(Branch->getSuccessor(1))))
        continue;
      Branch->getSuccessor(First ? 0 : 1)->removePredecessor(&Block);
      BasicBlock *Left = Branch->getSuccessor(First ? 1 : 0);
      keepUsed(Branch->getCondition(), Branch);
      BranchInst::Create(Left, Branch->getIterator())
          ->setDebugLoc(Branch->getDebugLoc());
      Branch->eraseFromParent();
    } else if (auto *Choice = dyn_cast<SwitchInst>(End)) {
      leaveCases(*Choice, Dead);
    }
  }
  removeUnreachableBlocks(Region);
}

} // namespace domicile
